"""The classical baseline for deletions in recursive views: delete and rederive (DRed).

Set semantics, no annotations. A deletion removes everything that has a derivation through what was
deleted, then derives again what has another one. Written for reachability, with indexes, so that
it is as fast as plain Python allows.
"""

from benchmarks._recursive.workloads import Link

Pair = tuple[str, str]


class DeleteRederive:
    """Maintains pairs of connected nodes by DRed.

    State: links by both ends, and for every node what it reaches.
    """

    def __init__(self) -> None:
        self._after: dict[str, dict[str, int]] = {}
        self._before: dict[str, dict[str, int]] = {}
        self._reached: dict[str, set[str]] = {}

    def update(self, sign: int, link: Link) -> None:
        """Insert or delete a link; parallel links of different cost are counted."""
        source, target, _ = link
        after = self._after.setdefault(source, {})
        before = self._before.setdefault(target, {})
        count = after.get(target, 0) + sign
        if count:
            after[target] = before[source] = count
        else:
            del after[target], before[source]
        if sign > 0 and count == 1:
            self._insert([(source, target), *self._through(source, target)])
        elif sign < 0 and not count:
            self._delete(source, target)

    def load(self, links: tuple[Link, ...]) -> None:
        """Insert many links."""
        for link in links:
            self.update(1, link)

    def digest(self) -> tuple[int, int]:
        """Return the number of rows, and 0 for their costs."""
        return sum(map(len, self._reached.values())), 0

    def _through(self, source: str, target: str) -> list[Pair]:
        """Return what a link derives together with the pairs there are."""
        return [(source, end) for end in self._reached.get(target, ())]

    def _insert(self, todo: list[Pair]) -> None:
        """Add pairs and everything that follows, semi-naively."""
        while todo:
            source, end = todo.pop()
            reached = self._reached.setdefault(source, set())
            if end not in reached:
                reached.add(end)
                todo.extend((earlier, end) for earlier in self._before.get(source, ()))

    def _delete(self, source: str, target: str) -> None:
        """Over-delete, then derive again."""
        deleted: set[Pair] = set()
        todo = [(source, target), *self._through(source, target)]
        while todo:
            pair = todo.pop()
            start, end = pair
            if pair not in deleted and end in self._reached.get(start, ()):
                deleted.add(pair)
                todo.extend((earlier, end) for earlier in self._before.get(start, ()))
        for start, end in deleted:
            self._reached[start].discard(end)
        again = [pair for pair in deleted if self._is_derivable(pair)]
        self._insert(again)

    def _is_derivable(self, pair: Pair) -> bool:
        start, end = pair
        after = self._after.get(start, {})
        return end in after or any(end in self._reached.get(middle, ()) for middle in after)
