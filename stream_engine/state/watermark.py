"""How far the event time of a source has come at one site, and which events come too late."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamsql.data.events import SourceEvent


@dataclass(frozen=True, slots=True)
class Judged:
    """Events after the watermark has judged them.

    Attributes:
        accepted: In order of arrival.
        late: Likewise.
        watermark: After all of them; None before the first event.
    """

    accepted: Sequence[SourceEvent]
    late: Sequence[SourceEvent]
    watermark: int | None


class Watermark:
    """The greatest event time of a source at one site, less the lateness it allows.

    An event that is older when it arrives is late, a withdrawal too. Events are judged one by one,
    so it does not matter in which batches they come.

    State: two numbers. Work: O(1) an event.

    Attributes:
        late: How many events were late.

    Examples:
        >>> mark = Watermark(lateness=5)
        >>> judged = mark.judge([SourceEvent(("a",), 10), SourceEvent(("b",), 4)])
        >>> judged.late, judged.watermark
        ([SourceEvent(row=('b',), ts=4, delete=False)], 5)
    """

    __slots__ = ("_lateness", "_reached", "late")

    def __init__(self, lateness: int | None) -> None:
        self._lateness = lateness
        self._reached: int | None = None
        self.late = 0

    @property
    def reached(self) -> int | None:
        """The watermark: no event that counts will be older. None before the first event."""
        return self._reached

    def judge(self, events: Sequence[SourceEvent]) -> Judged:
        """Tell the events that count from those that come too late."""
        reached, lateness = self._reached, self._lateness
        late: list[SourceEvent] = []
        if lateness is None:
            for event in events:
                if reached is None or event.ts > reached:
                    reached = event.ts
            self._reached = reached
            return Judged(events, late, reached)
        accepted: list[SourceEvent] = []
        for event in events:
            ts = event.ts
            if reached is None or ts - lateness > reached:
                reached = ts - lateness
            elif ts < reached:
                late.append(event)
                continue
            accepted.append(event)
        self._reached = reached
        self.late += len(late)
        return Judged(accepted, late, reached)
