"""One search per group over a common graph, kept under changes of edges and sources."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from stream_engine.recursion.kernels.kernel_graph import Change, Graph

Keys = dict[int, Any]
"""Of one group: node -> key, for the nodes it reaches."""

Old = dict[int, Any]
"""Nodes whose key changed or may have, with the old one; None where there was none."""

At = list[dict[Any, Keys]]
"""Per node: the groups that reach it, with their keys."""

SourceChange = tuple[Any, int, Any, Any]
"""Group, node, its best start key before and now; None while it is no source."""

_SMALL = 24


def most_repaired(elastic: float, reached: int) -> float:
    """Return how many nodes of a group are repaired rather than searched again.

    Args:
        elastic: The share above which they are searched again; a few are always repaired, unless
            it is zero.
        reached: Nodes that the group reaches.
    """
    return _SMALL + elastic * reached if elastic > 0 else 0


class Core(ABC):
    """The algorithm for one group at a time; the graph has changed already when it repairs.

    Keys are such that the end of an edge never has a smaller one than its beginning; "to rest on"
    an edge is to have the key that it gives.
    """

    def __init__(self, graph: Graph, elastic: float) -> None:
        self._out, self._inn = graph.out, graph.inn
        self._elastic = elastic

    @abstractmethod
    def losing(self, at: At, gone: list[Change]) -> dict[Any, list[int]]:
        """Return per group the ends of edges that are gone which may have rested on them alone."""

    @abstractmethod
    def gaining(self, at: At, come: list[Change], *, every: bool) -> dict[Any, list[Change]]:
        """Return per group the new edges whose ends may get better keys.

        Args:
            at: Per node, the groups that reach it.
            come: New edges.
            every: Whether keys may also become worse in this change, so that every edge counts and
                not only one that is enough.
        """

    @abstractmethod
    def rests_on(self, key: Any, start: Any) -> bool:
        """Whether a node with that key (None: not reached) may rest on being a source."""

    @abstractmethod
    def repair(
        self,
        d: Keys,
        sources: Mapping[int, Any],
        lost: list[int],
        come: list[Change],
        started: list[int],
    ) -> Old:
        """Bring the keys of a group up to date after the graph and its sources changed.

        Args:
            d: Changed in place.
            sources: Best start key of every source.
            lost: Nodes that have lost an edge, or a start, on which they rested. Taken apart.
            come: New edges that may give a better key.
            started: Nodes that became sources, or better ones.
        """

    def _again(self, d: Keys, sources: Mapping[int, Any], old: Old) -> Old:
        """Search from the sources; `old` has the nodes that were dropped from `d` so far."""
        before = {**d, **old}
        d.clear()
        self._search(d, sources)
        touched: Old = {b: x for b, x in before.items() if b not in d or self._differs(x, d[b])}
        touched.update((b, None) for b in d if b not in before)
        return touched

    @abstractmethod
    def _search(self, d: Keys, sources: Mapping[int, Any]) -> None:
        """Fill empty keys from the sources."""

    def _differs(self, before: Any, now: Any) -> bool:
        """Whether rows show the difference between two keys."""
        return bool(before != now)


class GroupedSearch:
    """The keys of all groups.

    State: per group its keys, per node the groups that reach it, and the sources. Work per change:
    the groups that reach an edge that changes, and in each what the core repairs.

    Attributes:
        groups: Keys by group; only groups that reach something.
    """

    def __init__(self, graph: Graph, core: Core) -> None:
        self.groups: dict[Any, Keys] = {}
        self.size = 0
        self._graph = graph
        self._core = core
        self._sources: dict[Any, dict[int, Any]] = {}
        self._at: At = []

    def reaching(self, node: int) -> Mapping[Any, Keys]:
        """Return the groups that reach a node, with their keys."""
        return self._at[node]

    def change(
        self, gone: list[Change], come: list[Change], sources: list[SourceChange]
    ) -> Iterator[tuple[Any, Keys, Old]]:
        """Apply changes; yield group by group its keys and the old ones of what was touched.

        Must be exhausted.
        """
        at = self._at
        while len(at) < len(self._graph.out):
            at.append({})
        core = self._core
        lost = core.losing(at, gone) if gone else {}
        better = core.gaining(at, come, every=bool(gone or sources)) if come else {}
        started: dict[Any, list[int]] = {}
        for group, node, old, new in sources:
            d = self.groups.get(group)
            if old is not None and d is not None and core.rests_on(d.get(node), old):
                lost.setdefault(group, []).append(node)
            self._set_source(group, node, new)
            if new is not None:
                started.setdefault(group, []).append(node)
        groups = self.groups
        for group in {**lost, **better, **started}:
            d = groups.get(group)
            if d is None:
                d = groups[group] = {}
            touched = core.repair(
                d,
                self._sources.get(group, {}),
                lost.get(group, []),
                better.get(group, []),
                started.get(group, []),
            )
            if touched:
                self._note(group, d, touched)
                yield group, d, touched
            elif not d:
                del groups[group]

    def _set_source(self, group: Any, node: int, key: Any) -> None:
        if key is not None:
            self._sources.setdefault(group, {})[node] = key
        else:
            sources = self._sources[group]
            del sources[node]
            if not sources:
                del self._sources[group]

    def _note(self, group: Any, d: Keys, touched: Old) -> None:
        """Keep per node the groups that reach it."""
        at = self._at
        for node, old in touched.items():
            if node in d:
                if old is None:
                    at[node][group] = d
                    self.size += 1
            elif old is not None:
                del at[node][group]
                self.size -= 1
        if not d:
            del self.groups[group]
