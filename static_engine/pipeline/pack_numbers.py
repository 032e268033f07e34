"""Sets of packs: numbers of packs per gateway and epoch, as compressed bitmaps."""

from collections.abc import Iterable, Iterator, Mapping

from pyroaring import BitMap64

PackKey = tuple[str, int]
"""Gateway and epoch."""
SerializedPacks = Mapping[PackKey, bytes]
"""Bitmaps as `BitMap64.serialize` writes them."""


class PackNumbers:
    """A set of packs.

    Args:
        known: What it has from the beginning; a bitmap is read when it is asked for.
    """

    def __init__(self, known: SerializedPacks | None = None) -> None:
        self._unread: dict[PackKey, bytes] = dict(known or {})
        self._read: dict[PackKey, BitMap64] = {}

    def __bool__(self) -> bool:
        return bool(self._unread or self._read)

    def has(self, gateway: str, epoch: int, seq: int) -> bool:
        """Whether it has a pack."""
        key = (gateway, epoch)
        numbers = self._read.get(key)
        if numbers is None:
            serialized = self._unread.pop(key, None)
            if serialized is None:
                return False
            numbers = self._read[key] = BitMap64.deserialize(serialized)
        return seq in numbers

    def add(self, gateway: str, epoch: int, seq: int) -> None:
        """Add a pack."""
        self.has(gateway, epoch, seq)
        self._read.setdefault((gateway, epoch), BitMap64()).add(seq)

    def add_all(self, gateway: str, epoch: int, numbers: Iterable[int]) -> None:
        """Add packs of one gateway and epoch."""
        self.has(gateway, epoch, 0)
        self._read.setdefault((gateway, epoch), BitMap64()).update(numbers)

    def items(self) -> Iterator[tuple[PackKey, BitMap64]]:
        """Yield the numbers by gateway and epoch."""
        for key in list(self._unread):
            self.has(*key, 0)
        yield from self._read.items()

    def serialized(self) -> dict[PackKey, bytes]:
        """Return all of it as bytes."""
        return {key: numbers.serialize() for key, numbers in self.items()}
