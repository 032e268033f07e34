"""Events of a local session in their order, so that any engine can replay them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference.reference_database import Database


@dataclass(frozen=True, slots=True)
class Moment:
    """Events of one source, all at one time; without events only time passed.

    Attributes:
        now: The session's time afterwards, in microseconds since 1970 UTC.
    """

    now: int
    source: str = ""
    events: tuple[SourceEvent, ...] = ()


@dataclass(slots=True)
class History:
    """All moments so far, and the reference database built from them.

    A local session's time is event time: the latest that an inserted row or ADVANCE TIME named.
    """

    moments: list[Moment] = field(default_factory=list)
    database: Database = field(default_factory=Database)
    now: int = 0

    def record(self, source: str, events: tuple[SourceEvent, ...]) -> None:
        """Record events; the time becomes that of the latest of them."""
        before = self.now
        self.now = max([self.now, *(event.ts for event in events if not event.delete)])
        self.moments.append(Moment(self.now, source, events))
        self.database.append(source, list(events), clock=before)

    def discard(self, source: str) -> None:
        """Discard all events of a source; the time stays."""
        self.moments = [
            Moment(moment.now) if moment.source == source else moment for moment in self.moments
        ]
        self.database = Database()
        before = 0
        for moment in self.moments:
            self.database.append(moment.source, list(moment.events), clock=before)
            before = moment.now

    def without_withdrawn(self, sources: frozenset[str]) -> list[Moment]:
        """Return the moments as if rows withdrawn from these bags had never come."""
        gone = Counter(
            (moment.source, event.ts, event.row)
            for moment in self.moments
            if moment.source in sources
            for event in moment.events
            if event.delete
        )
        if not gone:
            return self.moments
        kept = []
        for moment in self.moments:
            if moment.source in sources:
                moment = replace(moment, events=tuple(_remaining(moment, gone)))  # noqa: PLW2901
            kept.append(moment)
        return kept

    def advance(self, to: int) -> None:
        """Let time pass; it never goes back."""
        self.now = max(self.now, to)
        self.moments.append(Moment(self.now))


def _remaining(moment: Moment, gone: Counter[tuple[str, int, Row]]) -> Iterator[SourceEvent]:
    """Yield a moment's arrivals but the withdrawn ones, which are counted down in `gone`."""
    for event in moment.events:
        named = (moment.source, event.ts, event.row)
        if event.delete:
            continue
        if gone[named]:
            gone[named] -= 1
        else:
            yield event
