"""An order for a trial, carried out: plan, readings of the lake, engines, messages."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from deploy.history.happenings import Happening, Presence, after_grace, merged
from deploy.history.lake_happenings import Absences, KeptReadings, KeptSource
from deploy.history.replayed_alarm import ReplayedAlarm
from deploy.history.replayed_federation import ReplayedFederation
from deploy.history.trial_run import TrialRun
from federated_optimizer import Topology
from federated_optimizer import plan as place
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryMessage,
    HistoryOrder,
    HistoryProgress,
)
from streamsql.algebra.operators import (
    HopWindow,
    Scan,
    Window,
    WindowKind,
    walk_plan,
    walk_relation,
)
from streamsql.algebra.streams import Emit
from streamsql.binder import BoundQuery
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.durations import duration_text
from streamsql.errors import DeploymentError

PROGRESS_SECONDS = 0.5
_LONGEST_REST = 0.5


class KeptPast(KeptReadings, Protocol):
    """A lake as far as trials read it."""

    def kept_sources(self) -> list[str]:
        """Return the names of the sources that it keeps."""

    def presences(self, since: int, until: int) -> list[Presence]:
        """Return the states of gateways in an interval, by time, and before it the last ones."""


@dataclass(slots=True)
class OrderRun:
    """One trial.

    Args:
        order: What is tried on which past.
        lake: The past.
        seconds: A clock that only goes forward.
        rest: Waits for some seconds.
    """

    order: HistoryOrder
    lake: KeptPast
    seconds: Callable[[], float] = time.monotonic
    rest: Callable[[float], None] = time.sleep

    def messages(self) -> Iterator[HistoryMessage]:
        """Yield what happens, and every half second how far it has come.

        Raises:
            FederationError: The query fails, or reads what is not kept.
        """
        order, began = self.order, self.seconds()
        self._check_kept()
        presences = self.lake.presences(order.since - self._longest(), order.until)
        absences = absences_of(presences, order.until)
        topology = self._topology()
        bundle = place(order.query, topology, query="trial")
        federation = ReplayedFederation(bundle, static=topology.static, tables=order.tables)
        streams: list[Iterable[Happening]] = [after_grace(presences, order.grace)]
        for definition in order.sources:
            roles = {
                True: definition.name in federation.read_directly,
                False: definition.name in federation.read_at_gateways,
            }
            since = order.since - self._lookback(definition)
            for direct in (role for role, is_read in roles.items() if is_read):
                kept = KeptSource(self.lake, definition, direct, absences)
                streams.append(kept.readings(since, order.until + 1))
        run = TrialRun(
            federation,
            merged(streams),
            order.since,
            order.until,
            None if order.alarm is None else ReplayedAlarm(order.alarm),
            bundle.emit == Emit.STREAM,
            self._pace(began),
        )
        yield HistoryProgress(0, 0, self.seconds() - began, tuple(self._notes()))
        told = self.seconds()
        for message in run.run():
            yield message
            if self.seconds() - told >= PROGRESS_SECONDS:
                told = self.seconds()
                yield HistoryProgress(run.now, run.readings, told - began)
        yield HistoryProgress(run.now, run.readings, self.seconds() - began)

    def _check_kept(self) -> None:
        kept = {name.lower() for name in self.lake.kept_sources()}
        for source in self.order.sources:
            if source.name.lower() not in kept:
                raise DeploymentError(
                    f"the lake keeps nothing of source {source.name}",
                    hint="what is kept is kept from when it was asked for on; see the page Data",
                    code="no_history",
                )

    def _pace(self, began: float) -> Callable[[int], None]:
        order = self.order
        if order.speed is None:
            return lambda _now: None
        speed = order.speed * 1_000_000

        def wait(now: int) -> None:
            due = began + (now - order.since) / speed
            while (left := due - self.seconds()) > 0:
                self.rest(min(left, _LONGEST_REST))

        return wait

    def _topology(self) -> Topology:
        """Return the sites of today and those of the past."""
        order = self.order
        gateways: dict[str, frozenset[str]] = dict(order.topology.gateways)
        for definition in order.sources:
            kept = KeptSource(self.lake, definition, direct=False)
            since = order.since - self._lookback(definition)
            for gateway in kept.gateways(since, order.until + 1):
                if gateway not in order.topology.bases:
                    name = frozenset({definition.name.lower()})
                    gateways[gateway] = gateways.get(gateway, frozenset()) | name
        return replace(order.topology, gateways=gateways, absent=frozenset())

    def _longest(self) -> int:
        return max(map(self._lookback, self.order.sources), default=0)

    def _lookback(self, source: SourceDefinition) -> int:
        return reach_of(self.order.query, source, self.order.lookback)

    def _notes(self) -> Iterator[str]:
        """Yield what of the time before the interval is not known."""
        for source in self.order.sources:
            if source.key and source.ttl is None:
                back = duration_text(self._lookback(source))
                yield (
                    f"rows of {source.name} with no reading in the {back} before the beginning are "
                    f"left out; WITH (lookback = '…') looks further back"
                )


def reach_of(query: BoundQuery, source: SourceDefinition, lookback: int) -> int:
    """Return how far back readings of a source count, in microseconds.

    `lookback` where no time bounds it: the newest row of a key, the last rows of a window by count.
    """
    reach = 0
    nodes = [*walk_plan(query.plan), *walk_relation(query.plan)]
    windows = [n for n in nodes if isinstance(n, Window) and n.input.source == source.name]
    longest = max((n.size for n in nodes if isinstance(n, HopWindow)), default=0)
    for window in windows:
        size = window.range if window.kind == WindowKind.ROWS else window.size
        reach = max(reach, lookback if size is None else size + (window.slide or 0))
    for scan in nodes:
        if not isinstance(scan, Scan) or scan.source != source.name:
            continue
        if not scan.is_log:
            reach = max(reach, lookback if scan.ttl is None else scan.ttl)
        if scan.lateness is not None:
            # With a watermark all of it runs from earlier on, so that windows begin whole.
            reach = max(reach, scan.lateness + longest)
    return reach


def absences_of(presences: Iterable[Presence], until: int) -> Absences:
    """Return when gateways were away, from and until; one that is not back is so at the end."""
    found: dict[str, list[tuple[int, int]]] = {}
    left: dict[str, int] = {}
    for presence in presences:
        if not presence.online:
            left.setdefault(presence.gateway, presence.at)
        elif presence.gateway in left:
            since = left.pop(presence.gateway)
            found.setdefault(presence.gateway, []).append((since, presence.at))
    for gateway, since in left.items():
        found.setdefault(gateway, []).append((since, max(until, since)))
    return found
