"""How far the event time of a source has come, and which of its events are late."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from streamsql.data.events import SourceEvent

HERE = ""
"""The origin of events that a site ingests first itself."""


def site_of(origin: str) -> str:
    """Return the gateway of an origin; what it sends as history has a watermark of its own.

    Examples:
        >>> site_of("gw-1"), site_of("gw-1/hist")
        ('gw-1', 'gw-1')
    """
    return origin.partition("/")[0]


Run = tuple[str, Sequence[SourceEvent]]
"""A gateway's id, or `HERE`, and the events that it ingested, in order of arrival."""


@dataclass(slots=True)
class Judged:
    """Events judged by the watermark, never altered.

    Attributes:
        accepted: In order of arrival.
        late: Likewise.
        reached: The watermark after all of them of every gateway that sent some.
        gone: Origins that are away or removed: they hold no other back.
    """

    # Not frozen: making a frozen one takes three times as long, and every step makes one.

    accepted: Sequence[SourceEvent]
    late: Sequence[SourceEvent]
    reached: Mapping[str, int]
    gone: Collection[str] = ()


class Watermark:
    """The greatest event time of a source at each gateway, less the lateness it allows.

    An event that is older when it arrives is late, a withdrawal too. Events are judged one by one,
    so it does not matter in which batches they come; and each by what the same gateway has sent
    before, so that one whose clock or sensors are ahead makes nobody else's readings late.

    A gateway that is away keeps its mark, so that what it sends when it is back is judged as if it
    had been there; only one that is removed for good loses it.

    State: two numbers a gateway; where the readings of others are not read, that is this site.
    Work: O(1) an event.

    Attributes:
        late: How many events were late.

    Examples:
        >>> mark = Watermark(lateness=5)
        >>> judged = mark.judge([("", [SourceEvent(("a",), 10), SourceEvent(("b",), 4)])])
        >>> judged.late, judged.reached
        ([SourceEvent(row=('b',), ts=4, delete=False)], {'': 5})
        >>> mark.judge([("g2", [SourceEvent(("b",), 4)])]).late
        []
    """

    __slots__ = ("_lateness", "_marks", "late")

    def __init__(self, lateness: int | None) -> None:
        self._lateness = lateness
        self._marks: dict[str, int] = {}
        self.late = 0

    @property
    def reached(self) -> int | None:
        """The least watermark of all gateways; None before the first event."""
        return min(self._marks.values(), default=None)

    def so_far(self) -> Judged:
        """Return no events, and the watermarks of all gateways."""
        return Judged((), (), dict(self._marks))

    def forget(self, origin: str) -> None:
        """Discard a permanently removed gateway's mark: if it ever sends again, it restarts."""
        self._marks.pop(origin, None)

    def judge(self, runs: Sequence[Run]) -> Judged:
        """Separate the events that count from late ones."""
        late: list[SourceEvent] = []
        marks = self._marks
        if len(runs) == 1:
            ((origin, events),) = runs
            accepted = self._judge(origin, events, late)
            reached = {origin: marks[origin]} if events else {}
        else:
            accepted = [e for origin, events in runs for e in self._judge(origin, events, late)]
            reached = {origin: marks[origin] for origin, events in runs if events}
        self.late += len(late)
        return Judged(accepted, late, reached)

    def _judge(
        self, origin: str, events: Sequence[SourceEvent], late: list[SourceEvent]
    ) -> Sequence[SourceEvent]:
        """Return the events that count; add the others to `late`."""
        if not events:
            return events
        reached, lateness = self._marks.get(origin), self._lateness
        if lateness is None:
            newest = max([event.ts for event in events]) if len(events) > 1 else events[0].ts
            self._marks[origin] = newest if reached is None else max(reached, newest)
            return events
        accepted: list[SourceEvent] = []
        for event in events:
            ts = event.ts
            if reached is None or ts - lateness > reached:
                reached = ts - lateness
            elif ts < reached:
                late.append(event)
                continue
            accepted.append(event)
        if reached is not None:
            self._marks[origin] = reached
        return accepted
