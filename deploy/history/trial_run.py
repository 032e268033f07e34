"""The run of a query through the past: readings in, changes and alarms at their times out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from deploy.history.happenings import Happening, Presence
from deploy.history.replayed_alarm import ReplayedAlarm
from deploy.history.replayed_federation import ReplayedFederation
from federated_optimizer.coordinator.trials.history_runner import HistoryAlarm, HistoryChanges
from streamsql.data.delta import Delta, accumulate, sort_key
from streamsql.data.types import Row

RESOLUTION = 100_000
"""Microseconds between two steps at least: what happens within is one change, as in a busy site."""

MAX_ROWS_PER_MESSAGE = 1_000


@dataclass(slots=True)
class TrialRun:
    """One run.

    Args:
        federation: The engines; nothing was given to them yet.
        happenings: By time, those before `since` first.
        since: Begin, in microseconds since 1970 UTC.
        until: End.
        alarm: What the rows raise.
        is_stream: The result is a stream, of which nothing is kept.
        passed: Called with the time of every step that is about to be made.

    Attributes:
        now: How far it has come.
        readings: Events ingested.
        view: The result.
    """

    federation: ReplayedFederation
    happenings: Iterable[Happening]
    since: int
    until: int
    alarm: ReplayedAlarm | None = None
    is_stream: bool = False
    passed: Callable[[int], None] = lambda _now: None
    now: int = 0
    readings: int = 0
    view: Delta = field(default_factory=dict)
    _next: Happening | None = None

    def run(self) -> Iterator[HistoryChanges | HistoryAlarm]:
        """Yield what happens, in order; the rows there are at the beginning come first.

        Raises:
            FederationError: The query fails.
        """
        happenings = iter(self.happenings)
        self._next = next(happenings, None)
        self._begin(happenings)
        yield from self._step(self.since, self._taken(happenings, self.since))
        while self.now < self.until:
            at = self._next_time()
            yield from self._step(at, self._taken(happenings, at))
        self.federation.check_rounds()

    def _taken(self, happenings: Iterator[Happening], at: int) -> Delta:
        """Take all that has happened by a time; return how that has changed the result so far."""
        changed: Delta = {}
        while self._next is not None and self._next.at <= at:
            self._take(changed, before=False)
            self._next = next(happenings, None)
            if self.federation.is_full:
                accumulate(changed, self.federation.step(at))
        return changed

    def _begin(self, happenings: Iterator[Happening]) -> None:
        """Take what was before the interval; its changes are of no interest."""
        while self._next is not None and self._next.at < self.since:
            gone: Delta = {}
            self._take(gone, before=True)
            if self.federation.is_full:
                accumulate(gone, self.federation.step(self._next.at))
            if not self.is_stream:
                accumulate(self.view, gone)
            self.now = self._next.at
            self.passed(self.now)
            self._next = next(happenings, None)

    def _take(self, gone: Delta, *, before: bool) -> None:
        happening = self._next
        if isinstance(happening, Presence):
            accumulate(gone, self.federation.present(happening))
        elif happening is not None:
            self.federation.take(happening, before=before)
            self.readings += len(happening.events)

    def _next_time(self) -> int:
        times = [self.until]
        if self._next is not None:
            times.append(self._next.at)
        wakeup = self.federation.next_wakeup()
        if wakeup is not None:
            times.append(wakeup)
        return min(max(min(times), self.now + RESOLUTION), self.until)

    def _step(self, now: int, changed: Delta) -> Iterator[HistoryChanges | HistoryAlarm]:
        self.passed(now)
        is_first = now == self.since
        self.now = now
        accumulate(changed, self.federation.step(now))
        if self.is_stream:
            shown = changed  # what was emitted is permanent, and nobody asks for it again
        else:
            accumulate(self.view, changed)
            shown = dict(self.view) if is_first else changed
        if shown:
            yield from _changes(now, shown)
        if self.alarm is not None:
            away = bool(self.federation.away)
            yield from self.alarm.follow(shown, self.view, now, away=away)


def _changes(at: int, delta: Delta) -> Iterator[HistoryChanges]:
    """Yield a change in messages of bounded size: rows that go first, each kind in order."""
    pairs: list[tuple[int, Row]] = sorted(
        ((weight, row) for row, weight in delta.items()),
        key=lambda pair: (pair[0] > 0, sort_key(pair[1])),
    )
    for begin in range(0, len(pairs), MAX_ROWS_PER_MESSAGE):
        yield HistoryChanges(at, tuple(pairs[begin : begin + MAX_ROWS_PER_MESSAGE]))
