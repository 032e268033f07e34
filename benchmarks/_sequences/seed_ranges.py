"""Progress of many sequences, kept in a file: what is done is not done again."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec


class SeedRanges(msgspec.Struct):
    """Seeds that are done, and the counts of their sequences.

    Attributes:
        actions: Of each sequence.
        done: Ranges of seeds, the ends not included.
        counts: Of all of them.
    """

    actions: int
    done: list[tuple[int, int]] = []
    counts: dict[str, int] = {}

    @classmethod
    def read(cls, path: Path | None, actions: int) -> "SeedRanges":
        """Return what a file says; nothing is done where there is none.

        Raises:
            ValueError: The file is of sequences of another length.
        """
        if path is None or not path.exists():
            return cls(actions)
        found = msgspec.json.decode(path.read_bytes(), type=cls)
        if found.actions != actions:
            raise ValueError(f"{path} is of sequences of {found.actions} actions")
        return found

    def write(self, path: Path) -> None:
        """Write the file; whoever reads it finds all of it or what was there before."""
        beside = path.with_name(f".{path.name}.new")
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(self)))
        beside.replace(path)

    @property
    def sequences(self) -> int:
        """The number of seeds that are done."""
        return sum(until - since for since, until in self.done)

    def add(self, since: int, until: int, counts: Counter[str]) -> None:
        """Note that a range of seeds is done."""
        self.counts = dict(Counter(self.counts) + counts)
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self.done, (since, until)]):
            if merged and merged[-1][1] >= start:
                merged[-1] = merged[-1][0], max(merged[-1][1], end)
            else:
                merged.append((start, end))
        self.done = merged

    def left(self, since: int, until: int, most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of at most so many seeds that are not done."""
        gaps = [*self.done, (until, until)]
        for start, end in gaps:
            while since < min(start, until):
                stop = min(since + most, start, until)
                yield since, stop
                since = stop
            since = max(since, end)
