"""Losses by restarts: which queries miss which intervals, and until when."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.snapshot.restored import Restored
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.messages import QueryProblem

CODE = "state_lost"
MAX_GAPS = 12
"""Gaps of a query that are named one by one; the nearest of more are named together."""
_MAX_REASON = 500
_HINT = "restart the query to recompute it"
_BEGINNING = -(2**62)


class Loss(msgspec.Struct, frozen=True):
    """A stretch of time that is missing.

    Attributes:
        since: Microseconds, or None: from the beginning.
        until: Microseconds.
        reason: In words.
        gaps: How many gaps there are in it; with one all of it is missing.
        heard: Another site has published what is missing.
        newest: The latest event time of what is missing; None: unknown.
        origin: What the loss is withdrawn by; empty: it never is.
    """

    since: int | None
    until: int
    reason: str
    gaps: int = 1
    heard: bool = False
    newest: int | None = None
    origin: str = ""

    def __str__(self) -> str:
        return sentence([self])

    @property
    def start(self) -> int:
        """When it begins, for comparing."""
        return _BEGINNING if self.since is None else self.since

    @property
    def stretch(self) -> str:
        """From when to when."""
        since = "the beginning" if self.since is None else _shown(self.since)
        several = f" ({self.gaps} gaps)" if self.gaps > 1 else ""
        return f"from {since} to {_shown(self.until)}{several}"

    def with_next(self, other: "Loss", gaps: int) -> "Loss":
        """Return both as one; the reason is that of the first."""
        times = (self.newest, other.newest)
        newest = max(time for time in times if time is not None) if None not in times else None
        heard = self.heard or other.heard
        origin = self.origin if self.origin == other.origin else ""
        until = max(self.until, other.until)
        return Loss(self.since, until, self.reason, gaps, heard, newest, origin)


class SavedLosses(msgspec.Struct, frozen=True):
    """Losses that the next incarnation must know.

    Attributes:
        general: Of every query that is found to have run before the restart.
        queries: By query.
        away_since: Since when this site has not heard the gateways; 0: it hears them.
    """

    general: tuple[Loss, ...] = ()
    queries: dict[str, tuple[Loss, ...]] = {}
    away_since: int = 0


class StateLosses:
    """The losses of all restarts that some query still misses.

    Only queries with a history here miss something for longer than it takes to be told again: all
    others are rebuilt from what sources hold and other sites send.

    Attributes:
        general: Of every query that ran before this restart.
        away_since: Since when this site has not heard the gateways; 0: it hears them.
    """

    def __init__(self) -> None:
        self.general: list[Loss] = []
        self.away_since = 0
        self._losses: dict[str, list[Loss]] = {}

    @staticmethod
    def of(
        restored: Restored, now: int, cut: str, damage: str, before: SavedLosses | None = None
    ) -> "StateLosses":
        """Return what was lost.

        Args:
            restored: What could be restored.
            now: The time of the restart.
            cut: Why the journal's end is missing, or empty.
            damage: Why the snapshot could not be used, or empty.
            before: What former restarts have lost.
        """
        losses = StateLosses()
        if before is not None:
            losses.general = list(before.general)
            losses.away_since = before.away_since
            losses._losses = {query: list(found) for query, found in before.queries.items()}
        if damage:
            losses.general.append(Loss(None, now, damage[:_MAX_REASON]))
        elif cut:
            losses.general.append(Loss(restored.now, now, cut[:_MAX_REASON]))
        losses.general = merged(losses.general)
        for query, (since, reason) in restored.unsaved.items():
            losses._add(query, Loss(since, now, reason[:_MAX_REASON]))
        return losses

    def concerns(self, query: str) -> bool:
        """Whether a query is known to miss something."""
        return query in self._losses

    def saved(self) -> bytes:
        """Return what the next life has to know; nothing if there is nothing."""
        queries = {query: tuple(found) for query, found in self._losses.items()}
        if not (queries or self.general or self.away_since):
            return b""
        return encode_json(SavedLosses(tuple(self.general), queries, self.away_since))

    def find(self, engine: RecordedSite) -> None:
        """Note the queries that run: call it while what ran before the restart is installed."""
        for query in engine.with_history() if self.general else ():
            for loss in self.general:
                self._add(query, loss)

    def missed(self, queries: Iterable[str], loss: Loss) -> None:
        """Add a loss of some queries."""
        for query in queries:
            self._add(query, loss)

    def withdraw(self, origin: str) -> None:
        """Take back the losses of an origin; `due` reports a query that misses nothing any more."""
        for query, losses in self._losses.items():
            self._losses[query] = [loss for loss in losses if loss.origin != origin]

    def all_found(self, engine: RecordedSite) -> None:
        """Forget what nobody misses: all queries that should run are installed by now."""
        self.general = []
        for query in self._losses.keys() - engine.queries.keys():
            del self._losses[query]

    def due(self, engine: RecordedSite, now: int) -> Iterator[tuple[str, QueryProblem | None]]:
        """Yield the problem of each query that misses something, None once when it is over.

        A loss is over when the windows of the query have passed the time that is missing, those by
        count the latest event that may be missing.
        """
        for query in [query for query in self._losses if query in engine.queries]:
            losses = []
            for loss in self._losses[query]:
                memory = engine.memory_of(query, heard=loss.heard, newest=loss.newest)
                if memory is None or now < loss.until + memory:
                    losses.append(loss)
            if losses:
                self._losses[query] = losses
                yield query, QueryProblem(CODE, sentence(losses), _HINT, now, engine.site)
                continue
            del self._losses[query]
            yield query, None

    def _add(self, query: str, loss: Loss) -> None:
        self._losses[query] = merged([*self._losses.get(query, ()), loss])


def decode_losses(content: bytes) -> SavedLosses | None:
    """Return what an earlier life has saved.

    Raises:
        WireError: It is damaged.
    """
    return decode_json(content, SavedLosses) if content else None


def merged(losses: Iterable[Loss]) -> list[Loss]:
    """Return losses in order of time, at most `MAX_GAPS`; those of an origin that touch are one.

    Examples:
        >>> losses = merged([Loss(5, 7, "b"), Loss(0, 2, "a"), Loss(1, 4, "c")])
        >>> [(loss.reason, loss.since, loss.until) for loss in losses]
        [('a', 0, 4), ('b', 5, 7)]
    """
    result: list[Loss] = []
    for loss in sorted(losses, key=lambda loss: (loss.origin, loss.start, loss.until)):
        last = result[-1] if result else None
        if last is not None and loss.origin == last.origin and loss.start <= last.until:
            result[-1] = last.with_next(loss, max(last.gaps, loss.gaps))
        else:
            result.append(loss)
    result.sort(key=lambda loss: (loss.start, loss.until))
    while len(result) > MAX_GAPS:
        between = [b.start - a.until for a, b in pairwise(result)]
        place = between.index(min(between))
        first, second = result[place], result[place + 1]
        result[place : place + 2] = [first.with_next(second, first.gaps + second.gaps)]
    return result


def sentence(losses: Iterable[Loss]) -> str:
    """Return all stretches that are missing, and why.

    Examples:
        >>> sentence([Loss(None, 0, "it was away"), Loss(1, 1_500_000, "it was away")])[:52]
        'what came in from the beginning to 1970-01-01 00:00:'
    """
    by_reason: dict[str, list[str]] = {}
    for loss in losses:
        by_reason.setdefault(loss.reason, []).append(loss.stretch)
    return "; ".join(
        f"the result lacks the input {_listed(stretches)}: {reason}"
        for reason, stretches in by_reason.items()
    )


def _listed(stretches: list[str]) -> str:
    *others, last = stretches
    return f"{', '.join(others)} and {last}" if others else last


def _shown(microseconds: int) -> str:
    moment = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")
