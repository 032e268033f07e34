"""Which tokens died, here and at other sites."""

from collections.abc import Callable, Iterable, Sequence

from stream_engine.provenance.tokens import (
    MAX_TOKEN,
    SEQUENCE_BITS,
    checked_token,
    epoch_of,
    is_epoch_at_most,
    origin_of,
    site_index_of,
)
from stream_engine.provenance.tombstones import Tombstones
from stream_engine.provenance.varint import VarintReader, write_varint
from streamsql.errors import WireError

DEAD_PORT = "dead"
"""The port of messages that tell all deaths of a site's life at once."""

_MAX_INTERVALS = 4_000_000


class Deaths:
    """Collects deaths until they are worked on, and remembers all of them.

    State: tombstones, and what was noted since the last `take`.
    """

    def __init__(self) -> None:
        self.tombstones = Tombstones()
        self._kills: list[int] = []
        self._lost: list[tuple[int, int]] = []
        self._resumed: dict[int, list[tuple[int, int]]] = {}

    @property
    def has_news(self) -> bool:
        """Whether something was noted since the last `take`."""
        return bool(self._kills or self._lost or self._resumed)

    def note(self, kills: Sequence[int]) -> None:
        """Note tokens another site announced dead.

        Raises:
            WireError: One is no unsigned 64-bit number; then none is noted.
        """
        self._kills.extend([checked_token(token) for token in kills])

    def note_lost_site(self, site_index: int, epoch: int) -> None:
        """Note that all tokens of a site up to an epoch are dead."""
        self._lost.append((site_index, epoch))

    def told(self, origin: int) -> bytes:
        """Return all deaths of an origin (see `origin_of`) for another site to note.

        They are intervals between live tokens, so they are no more than live tokens and one.
        """
        intervals = self.tombstones.intervals(origin)
        out = bytearray()
        write_varint(out, origin)
        write_varint(out, len(intervals))
        last = 0
        for start, end in intervals:
            write_varint(out, start - last)
            write_varint(out, end - start)
            last = end
        return bytes(out)

    def note_told(self, payload: bytes) -> None:
        """Note what `told` returned at another site.

        Raises:
            WireError: It is malformed; then nothing is noted.
        """
        reader = VarintReader(payload)
        origin = reader.read(MAX_TOKEN >> SEQUENCE_BITS)
        intervals: list[tuple[int, int]] = []
        last, most = 0, 1 << SEQUENCE_BITS
        for _ in range(reader.read(_MAX_INTERVALS)):
            start = last + reader.read(most - last)
            last = start + reader.read(most - start)
            if last == start:
                raise WireError("deaths: an empty interval")
            intervals.append((start, last))
        reader.finish()
        self._resumed.setdefault(origin, []).extend(intervals)

    def take(self, own: Iterable[int], known: Callable[[], Iterable[int]]) -> set[int]:
        """Return all tokens that died, and remember them.

        Args:
            own: Tokens of this site that died.
            known: All tokens in use here; asked only when a site was lost, or told all its deaths.
        """
        dead = set(own).union(self._kills)
        for site_index, epoch in self._lost:
            dead.update(
                token
                for token in known()
                if site_index_of(token) == site_index and is_epoch_at_most(epoch_of(token), epoch)
            )
            self.tombstones.add_epochs(site_index, epoch)
        for origin, intervals in self._resumed.items():
            self.tombstones.add_intervals(origin, intervals)
            dead.update(
                token
                for token in known()
                if origin_of(token) == origin and token in self.tombstones
            )
        self.tombstones.add_all(dead)
        self._kills, self._lost, self._resumed = [], [], {}
        return dead
