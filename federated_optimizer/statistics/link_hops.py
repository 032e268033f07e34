"""Hops between gateways: the fewest links between devices of different gateways on a way."""

from collections.abc import Iterable, Iterator, Mapping

from typing_extensions import override


class LinkHops(Mapping[tuple[str, str], float]):
    """Hops by pairs of gateways that links connect; those from one gateway are found once.

    Args:
        neighbours: Pairs of different gateways with a link between them, in either order.
    """

    def __init__(self, neighbours: Iterable[tuple[str, str]] = ()) -> None:
        self._next: dict[str, set[str]] = {}
        for a, b in neighbours:
            self._next.setdefault(a, set()).add(b)
            self._next.setdefault(b, set()).add(a)
        self._found: dict[str, dict[str, float]] = {}

    def __bool__(self) -> bool:
        """Whether any pair is known."""
        return bool(self._next)

    @override
    def __getitem__(self, key: tuple[str, str]) -> float:
        return self._from(key[0])[key[1]]

    @override
    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((a, b) for a in self._next for b in self._from(a))

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _from(self, start: str) -> dict[str, float]:
        found = self._found.get(start)
        if found is None:
            found, level, hops = {}, {start}, 0
            seen = {start}
            while level:
                hops += 1
                level = {after for each in level for after in self._next.get(each, ())} - seen
                seen |= level
                found.update(dict.fromkeys(level, float(hops)))
            self._found[start] = found
        return found
