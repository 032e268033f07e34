"""Windows that start full: what the lake has of their sources, asked for and handed to the engine.

A reading is in a window once: as it came, or from the lake. A gateway cuts its packs when a query
begins: those before the cut are the lake's, the others came here. A base site notes the packs that
it hears from then on, and leaves their rows out of what the lake sends.
"""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gateway.observations.observation_reader import PACK
from host.clocks import Clock, wall_clock
from host.mqtt import Message, MessageClient, QueueFull
from stream_engine.snapshot.journal import Note
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.window_reach import Reach, reaches_of
from streamsql.data.events import SourceEvent
from streamsql.errors import DeploymentError
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fill_messages import (
    MAX_AWAITED,
    Cursor,
    Cut,
    FillColumn,
    FillRows,
    FillWanted,
    PackName,
)
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import QueryProblem
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

FILL = "fill"
"""The note on how far the filling of a window has come."""

ANSWER_SECONDS = 5.0
LONGEST_PAUSE = 30.0
PATIENCE_SECONDS = 60.0
"""For which the answer of a query waits for its windows; it is marked as not full afterwards."""

LANDING_SECONDS = 30.0
"""For which packs that the lake should have by now are waited for."""

SETTLE_SECONDS = 10.0
"""After which a base site takes answers: what was published before it listened is there by then."""

MAX_FILLED = 5_000_000
"""Earlier rows that a site takes into the windows over one source of a query: about 1 GB."""

MAX_HEARD = 1_000_000
RECENT = 600_000_000
"""Microseconds before a query began: packs of that time may still be sent again."""


@dataclass(slots=True)
class _Filling:
    """The filling of the windows over one source in one query.

    Attributes:
        cut: Of a gateway; None at a base site.
        heard: Packs that came here since the query began, at a base site.
    """

    query: str
    version: int
    reach: Reach
    since: int
    cut: Cut | None
    began: float
    ask_at: float
    id: str = field(default_factory=lambda: os.urandom(8).hex())
    heard: set[PackName] = field(default_factory=set)
    after: Cursor | None = None
    rows: int = 0
    expected: int = 0
    pause: float = ANSWER_SECONDS
    answered_at: float = 0.0
    waits: str = ""
    told: bool = False

    def awaited(self, now: float) -> tuple[tuple[PackName, ...], int]:
        """Return the packs that have to be in the lake first, and since when their readings are."""
        if self.after is not None or now - self.began > LANDING_SECONDS:
            return (), 0
        if self.cut is not None:
            return self.cut.awaited, self.cut.since
        first: dict[str, PackName] = {}
        for pack in sorted(self.heard):
            first.setdefault(pack[0], pack)
        return tuple(first.values())[:MAX_AWAITED], self.since

    def is_live(self, pack: PackName) -> bool:
        """Whether the rows of a pack came here by themselves."""
        if self.cut is not None:
            return pack[1:] >= (self.cut.epoch, self.cut.number)
        return pack in self.heard


class WindowFills:
    """The fillings of one site.

    Args:
        engine: Of the site.
        client: Of the site.
        topics: Of the federation.
        clock: Of the site, in microseconds.
        is_base: Whether it reads what gateways publish, of all of them.
        static: The static engine's id.

    Attributes:
        catch_up: Applies all events that were ingested.
        cut: Returns where a gateway's packs of a source are cut now; None: it cannot be filled.
        recall: Called with packs that must not count when they come again.
        say: Called with a query and why its windows are not full; None: they are.
    """

    def __init__(  # noqa: PLR0913 - each is one seam
        self,
        engine: RecordedSite,
        client: MessageClient,
        topics: Topics,
        clock: Clock,
        *,
        is_base: bool,
        static: str = "static",
    ) -> None:
        self.cut: Callable[[str], Cut | None] = lambda _source: None
        self.recall: Callable[[str, Iterable[PackName]], None] = lambda _source, _packs: None
        self.say: Callable[[str, QueryProblem | None], None] = lambda _query, _problem: None
        self.catch_up: Callable[[], None] = lambda: None
        self._engine = engine
        self._client = client
        self._topics = topics
        self._clock = clock
        self._is_base = is_base
        self._static = static
        self._fillings: dict[tuple[str, str], _Filling] = {}

    def begin(self, bundle: FragmentBundle, now: float) -> None:
        """Note that a query is about to be installed; `now` is in seconds that only go forward."""
        if bundle in self._engine.bundles():
            return
        self.drop(bundle.query)
        if bundle.fills and self._engine.pending_events:
            self.catch_up()
        self._cut(bundle, now)

    def _cut(self, bundle: FragmentBundle, now: float) -> None:
        """Cut what was published before a query from what comes to it by itself."""
        site = self._engine.site
        for reach in reaches_of(bundle.at(site)):
            if reach.source not in bundle.fills:
                continue
            cut = None if self._is_base else self.cut(reach.source)
            if cut is None and not self._is_base:
                continue
            since = self._clock() - reach.back
            filling = _Filling(bundle.query, bundle.version, reach, since, cut, now, now)
            self._fillings[bundle.query, reach.source] = filling
            self._engine.take_in({}, (FILL, _noted(filling)))

    def drop(self, query: str) -> None:
        """Stop filling a query's windows."""
        for key in [key for key in self._fillings if key[0] == query]:
            del self._fillings[key]

    def heard(self, stream: str, pack: PackName) -> None:
        """Note that a pack came here."""
        for filling in self._fillings.values():
            if filling.reach.source == stream and len(filling.heard) < MAX_HEARD:
                filling.heard.add(pack)

    def is_filling(self, query: str, now: float) -> bool:
        """Whether the answer of a query should wait for its windows."""
        return any(
            name == query and now - max(f.began, f.answered_at) < PATIENCE_SECONDS
            for (name, _source), f in self._fillings.items()
        )

    def next_due(self) -> float | None:
        """Return when `ask` has something to do, or None."""
        return min((filling.ask_at for filling in self._fillings.values()), default=None)

    def ask(self, now: float) -> None:
        """Ask for what is due, while the broker is there."""
        if not self._client.connected:
            return
        for filling in self._fillings.values():
            if filling.ask_at > now:
                continue
            awaited, since = filling.awaited(now)
            columns = tuple(FillColumn(*column) for column in filling.reach.columns)
            gateway = "" if self._is_base else self._engine.site
            wanted = FillWanted(
                filling.id,
                filling.query,
                filling.reach.source,
                columns,
                gateway,
                filling.since,
                awaited,
                since,
                filling.after,
                filling.reach.lateness,
            )
            scope = "all" if self._is_base else "own"
            topic = self._topics.fill_request(self._static, self._engine.site, scope)
            try:
                self._client.publish(topic, encode_packed(wanted))
            except QueueFull:
                filling.ask_at = now + 1.0
                continue
            if now - max(filling.began, filling.answered_at) > PATIENCE_SECONDS:
                self._tell(filling, "the static engine does not answer")
            filling.ask_at = now + filling.pause
            filling.pause = min(filling.pause * 2, LONGEST_PAUSE)

    def take(self, message: Message, now: float) -> None:
        """Ingest an answer of the static engine.

        Raises:
            WireError: It is malformed.
        """
        answer = decode_packed(message.payload, FillRows)
        filling = next((f for f in self._fillings.values() if f.id == answer.id), None)
        if filling is None:
            return
        filling.answered_at, filling.pause = now, ANSWER_SECONDS
        if not answer.kept:
            self._ended(filling)
            return
        if self._is_base and now < filling.began + SETTLE_SECONDS:
            filling.ask_at = filling.began + SETTLE_SECONDS  # what was on its way may be missing
            return
        if answer.problem and not answer.done:
            self._tell(filling, answer.problem)
            filling.ask_at = now + filling.pause
            return
        if answer.missing:
            filling.ask_at = now + 1.0
            self._tell(filling, f"the lake does not have {answer.missing} packs yet")
            return
        if answer.rows and (filling.after is None or _is_later(answer.after, filling.after)):
            self._fill(filling, answer)
        filling.expected = answer.expected
        filling.ask_at = now
        if filling.rows > MAX_FILLED and not answer.done:
            self._give_up(filling)
        elif answer.done:
            self._ended(filling)
        elif now - filling.began > 1.0:
            share = min(filling.rows / max(filling.expected, 1), 0.99)
            self._tell(filling, f"{share:.0%} is there")

    def _fill(self, filling: _Filling, answer: FillRows) -> None:
        live = [filling.is_live(pack) for pack in answer.packs]
        events = [
            SourceEvent(row.row, row.ts, delete=row.withdrawn)
            for row in answer.rows
            if not live[row.pack]
        ]
        filling.after, filling.rows = answer.after, filling.rows + len(answer.rows)
        source = filling.reach.source
        try:
            runs = self._engine.fill(filling.query, source, events, (FILL, _noted(filling)))
        except DeploymentError as error:
            log.warning("query %s is not filled: %s", filling.query, error.message)
            runs = False
        if not runs:  # it was stopped here, or reads the source otherwise
            self._ended(filling)
            return
        if self._is_base:
            recent = {
                answer.packs[row.pack] for row in answer.rows if row.ts >= self._clock() - RECENT
            }
            self.recall(source, sorted(recent - filling.heard))

    def _ended(self, filling: _Filling) -> None:
        self._fillings.pop((filling.query, filling.reach.source), None)
        self._engine.take_in({}, (FILL, (filling.query, filling.version, filling.reach.source)))
        if filling.told:
            self.say(filling.query, None)
        log.info(
            "query %s: %d earlier rows of %s", filling.query, filling.rows, filling.reach.source
        )

    def _give_up(self, filling: _Filling) -> None:
        """End a filling that would take the site's memory; the query goes on with what it has."""
        self._tell(filling, f"it has more than {MAX_FILLED:,} rows here; later ones are missing")
        filling.told = False  # what was said stays
        self._ended(filling)

    def _tell(self, filling: _Filling, why: str) -> None:
        if filling.waits != why:
            filling.waits, filling.told = why, True
            text = f"windows over {filling.reach.source} are being filled from the lake: {why}"
            hint = "its answer grows meanwhile; WITH (backfill = 'no') begins with empty windows"
            site = self._engine.site
            self.say(filling.query, QueryProblem("filling", text, hint, wall_clock(), site))

    # --- restarts -----------------------------------------------------------------------------

    def to_remember(self) -> list[tuple[Any, ...]]:
        """Return plain values that the next life needs."""
        return [(*_noted(f), sorted(f.heard)) for f in self._fillings.values()]

    def resume(
        self,
        remembered: Iterable[tuple[Any, ...]],
        notes: Iterable[Note],
        unsaved: Iterable[str],
        now: float,
    ) -> None:
        """Go on where an earlier life was.

        Args:
            remembered: As `to_remember` has returned it.
            notes: What has been noted since, in order; of packs that came, too.
            unsaved: Queries that restart with empty windows.
            now: In seconds that only go forward.
        """
        known: dict[tuple[str, str], tuple[Any, ...]] = {}
        packs: dict[tuple[str, str], set[PackName]] = {}
        for *noted, before in remembered:
            known[noted[0], noted[2]] = tuple(noted)
            packs[noted[0], noted[2]] = {(g, e, n) for g, e, n in before}
        for kind, content in notes:
            if kind == PACK:
                gateway, stream, epoch, number, *_ = content
                for key in known:
                    if key[1] == stream:
                        packs[key].add((gateway, epoch, number))
            elif kind == FILL:
                key = (content[0], content[2])
                if len(content) == 3 or content[5] is None:  # it has ended, or it begins
                    known.pop(key, None)
                    packs[key] = set()
                if len(content) > 3:
                    known[key] = tuple(content)
        bundles = {bundle.query: bundle for bundle in self._engine.bundles()}
        restarted = set(unsaved)
        for name in restarted & bundles.keys():
            self._cut(bundles[name], now)
        for (query, source), found in known.items():
            bundle = bundles.get(query)
            if bundle is None or query in restarted or bundle.version != found[1]:
                continue
            reach = next(
                (r for r in reaches_of(bundle.at(self._engine.site)) if r.source == source), None
            )
            if reach is not None:
                filling = _restored(reach, found, now)
                filling.heard = packs[query, source]
                self._fillings[query, source] = filling


def _noted(filling: _Filling) -> tuple[Any, ...]:
    cut = filling.cut
    return (
        filling.query,
        filling.version,
        filling.reach.source,
        filling.since,
        None if cut is None else (cut.epoch, cut.number, cut.awaited, cut.since),
        filling.after,
        filling.rows,
    )


def _restored(reach: Reach, noted: tuple[Any, ...], now: float) -> _Filling:
    query, version, _source, since, cut, after, rows = noted
    restored = None
    if cut is not None:
        epoch, number, awaited, first = cut
        restored = Cut(epoch, number, tuple((g, e, n) for g, e, n in awaited), first)
    filling = _Filling(query, version, reach, since, restored, now, now)
    filling.after, filling.rows = None if after is None else tuple(after), rows
    return filling


def _is_later(one: Cursor | None, other: Cursor) -> bool:
    return one is not None and one > other
