"""Packs that this incarnation of a gateway has published of each stream: count, and the newest.

The broker forgets a base site that is cut off for long, and what is published then reaches nobody.
Numbers in the order of publishing show a base site what it lacks; what is kept here is sent again.
"""

from collections import deque
from collections.abc import Sequence

MAX_KEPT_BYTES = 4_000_000
"""Payloads of all streams together: minutes of a building, twenty seconds of a gateway at its
limit, which is more than brokers wait for a base site (1.5 times its `keepalive`)."""
MAX_AT_ONCE = 500
"""Packs that are sent again for one request; the asker asks again for the rest."""

MAX_AHEAD = 1_000
"""Publishes that may wait for the broker while older packs are still sent: live lanes go first."""

Published = tuple[int, str, bytes]
"""Number, topic, payload."""


class PublishedPacks:
    """Counts packs per stream, and keeps the newest of them in memory.

    Args:
        life: The gateway's epoch.
        max_bytes: Bound on the payloads kept.
    """

    def __init__(self, life: int, max_bytes: int | None = None) -> None:
        self.life = life
        self._max_bytes = MAX_KEPT_BYTES if max_bytes is None else max_bytes
        self._bytes = 0
        self._next: dict[str, int] = {}
        self._newest: dict[str, int] = {}
        self._kept: dict[str, deque[Published]] = {}
        self._order: deque[str] = deque()

    def next(self, stream: str) -> int:
        """Return the number of the stream's next pack."""
        return self._next.get(stream, 0)

    def newest(self, stream: str) -> int | None:
        """Return a time that no event published is later than, in microseconds; None: unknown."""
        return self._newest.get(stream)

    def reaches(self, stream: str, ts: int) -> None:
        """Note the time of an event that is to be published."""
        self._newest[stream] = max(self._newest.get(stream, ts), ts)

    def add(self, stream: str, topic: str, payload: bytes) -> None:
        """Note that the next pack was published."""
        self._kept.setdefault(stream, deque()).append((self.next(stream), topic, payload))
        self._order.append(stream)
        self._next[stream] = self.next(stream) + 1
        self._bytes += len(payload)
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._kept[self._order.popleft()].popleft()[2])

    def lose(self, stream: str) -> None:
        """Leave a number out, for a pack that will never be published: who reads shall know."""
        self._next[stream] = self.next(stream) + 1

    def since(self, stream: str, number: int) -> Sequence[Published]:
        """Return the packs kept from a number on, the oldest first, at most `MAX_AT_ONCE`."""
        kept = self._kept.get(stream, ())
        return [pack for pack in kept if pack[0] >= number][:MAX_AT_ONCE]
