"""In which order decision diagrams test the tokens of links: depth-first through the network.

Paths that share their first links then share the first nodes of their diagrams. The labeller keeps
a vector of links in depth-first order while links come and go (Liu's thesis, section 3.5, algorithm
3, with the correction that ancestors whose block ends where a link is inserted grow with it). On
graphs with cycles it is a heuristic. The order never changes what an annotation means.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

Node = Hashable


@dataclass(frozen=True, slots=True)
class Edge:
    """A link of the network that the tokens stand for."""

    source: Node
    target: Node


class VariableOrder(Protocol):
    """A total order of tokens that is kept while tokens come and go.

    Attributes:
        vector: All tokens, first tested first.
        moved: How many tokens have changed their place among the others since it was set to 0.
    """

    vector: list[int]
    moved: int

    def insert(self, token: int, edge: Edge | None) -> None:
        """Add a token; one without an edge goes to the end."""

    def follow(self, token: int, predecessor: int | None) -> None:
        """Add a token whose edge is unknown behind another one, or at the end."""

    def delete(self, token: int) -> None:
        """Remove a token, if it is there."""


def _place(vector: list[int], token: int, predecessor: int | None) -> None:
    known = predecessor is not None and predecessor in vector
    vector.insert(vector.index(predecessor) + 1 if known else len(vector), token)  # type: ignore[arg-type]


class ArrivalOrder:
    """Tokens in the order in which they came: the baseline."""

    def __init__(self) -> None:
        self.vector: list[int] = []
        self.moved = 0

    def insert(self, token: int, edge: Edge | None) -> None:  # noqa: ARG002  (all are alike)
        """Add a token at the end."""
        self.vector.append(token)

    def follow(self, token: int, predecessor: int | None) -> None:  # noqa: ARG002  (all are alike)
        """Add a token at the end."""
        self.vector.append(token)

    def delete(self, token: int) -> None:
        """Remove a token, if it is there."""
        if token in self.vector:
            self.vector.remove(token)


class DepthFirstOrder:
    """The incremental labeller: four cases of insertion, and deletion.

    State: the vector; per node the position of the first link that leaves it (`start`) and of the
    last link of its block (`end`). Work per change: proportional to the number of links.
    """

    def __init__(self) -> None:
        self.vector: list[int] = []
        self.moved = 0
        self._edges: dict[int, Edge] = {}
        self._start: dict[Node, int] = {}
        self._end: dict[Node, int] = {}

    def insert(self, token: int, edge: Edge | None) -> None:
        """Put a link behind the block of the node it leaves, and its target's block behind it.

        The cases of the algorithm: (a) a link between new nodes goes to the end; (b) a new node in
        front of a known one goes before that one's block, unless another link leads there already;
        (c, d) a link that leaves a known node goes behind that node's block, and takes a block of
        its target along that no other link holds (from before it too, which the paper leaves out).
        """
        if edge is None:
            self.vector.append(token)
            return
        x, y = edge.source, edge.target
        if x in self._end:
            at = self._end[x] + 1
        elif y in self._start and not self._is_held(y):
            at = self._start[y]
        else:
            at = len(self.vector)
        block: list[int] = []
        if x in self._end and y in self._start and not self._is_held(y):
            first, end = self._start[y], self._end[y] + 1
            if not first <= self._end[x] < end:  # else the link closes a cycle
                block = self.vector[first:end]
                del self.vector[first:end]
                at -= len(block) if first < at else 0
                self.moved += len(block) if first != at else 0
        self._edges[token] = edge
        self.vector[at:at] = [token, *block]
        self._label()

    def _is_held(self, node: Node) -> bool:
        """Whether the link in front of a node's block leads to that node."""
        before = self._start[node] - 1
        edge = self._edges.get(self.vector[before]) if before >= 0 else None
        return edge is not None and edge.target == node

    def follow(self, token: int, predecessor: int | None) -> None:
        """Add a token whose edge is unknown behind another one, or at the end."""
        _place(self.vector, token, predecessor)
        self._label()

    def delete(self, token: int) -> None:
        """Remove a link; what it alone held moves behind the next link that leads to it."""
        if token not in self.vector:
            return
        at = self.vector.index(token)
        edge = self._edges.pop(token, None)
        del self.vector[at]
        if edge is None:
            return
        held = self._start.get(edge.target) == at + 1
        orphans = self.vector[at : self._end[edge.target]] if held else []
        self._label()
        if orphans:
            self._adopt(orphans)
            self._label()

    def _adopt(self, orphans: list[int]) -> None:
        """Move orphaned links behind the first other links that lead to where they start."""
        waiting = dict.fromkeys(orphans)
        sources = {self._edges[token].source for token in orphans if token in self._edges}
        rest = [token for token in self.vector if token not in waiting]
        placed: list[int] = []
        for token in rest:
            placed.append(token)
            edge = self._edges.get(token)
            if edge is not None and edge.target in sources:
                found = self._reachable(edge.target, waiting)
                placed.extend(found)
                for moved in found:
                    del waiting[moved]
                self.moved += len(found)
                sources = {self._edges[t].source for t in waiting if t in self._edges}
        if len(placed) < len(self.vector):  # nothing leads there: they stay a block of their own
            placed.extend(waiting)
        self.vector = placed

    def _reachable(self, start: Node, among: Iterable[int]) -> list[int]:
        leaving: dict[Node, list[int]] = {}
        for token in among:
            if token in self._edges:
                leaving.setdefault(self._edges[token].source, []).append(token)
        return _depth_first(start, leaving, self._edges, set())

    def _label(self) -> None:
        """Compute the blocks of all nodes from the vector, read as a depth-first traversal."""
        self._start, self._end = {}, {}
        path: list[Node] = []
        for at, token in enumerate(self.vector):
            edge = self._edges.get(token)
            if edge is None:
                continue
            while path and path[-1] != edge.source:
                self._end[path.pop()] = at - 1
            if not path:
                path.append(edge.source)
            self._start.setdefault(edge.source, at)
            if edge.target not in self._start and edge.target not in path:
                path.append(edge.target)
        for node in path:
            self._end[node] = len(self.vector) - 1


@dataclass(slots=True)
class RebuiltOrder:
    """A depth-first order computed from scratch whenever the number of tokens has doubled.

    Between two computations new tokens go to the end. It is the oracle of the labeller as well.
    """

    vector: list[int] = field(default_factory=list)
    moved: int = 0
    _edges: dict[int, Edge] = field(default_factory=dict)
    _rebuild_at: int = 16

    def insert(self, token: int, edge: Edge | None) -> None:
        """Add a token."""
        self.vector.append(token)
        if edge is not None:
            self._edges[token] = edge
        if len(self.vector) >= self._rebuild_at:
            self._rebuild_at = 2 * len(self.vector)
            self.moved += len(self.vector)
            self.vector = depth_first(self._edges, self.vector)

    def follow(self, token: int, predecessor: int | None) -> None:
        """Add a token whose edge is unknown behind another one, or at the end."""
        _place(self.vector, token, predecessor)

    def delete(self, token: int) -> None:
        """Remove a token, if it is there."""
        if token in self.vector:
            self.vector.remove(token)
            self._edges.pop(token, None)


def depth_first(edges: dict[int, Edge], tokens: Iterable[int]) -> list[int]:
    """Return tokens in depth-first order: from nodes that no link enters, then from the others."""
    leaving: dict[Node, list[int]] = {}
    entered: set[Node] = set()
    rest: list[int] = []
    for token in tokens:
        edge = edges.get(token)
        if edge is None:
            rest.append(token)
        else:
            leaving.setdefault(edge.source, []).append(token)
            entered.add(edge.target)
    seen: set[Node] = set()
    vector: list[int] = []
    for root in sorted(leaving, key=lambda node: node in entered):
        vector.extend(_depth_first(root, leaving, edges, seen))
    return vector + rest


def _depth_first(
    root: Node, leaving: dict[Node, list[int]], edges: dict[int, Edge], seen: set[Node]
) -> list[int]:
    if root in seen:
        return []
    seen.add(root)
    vector: list[int] = []
    path = [iter(leaving.get(root, ()))]
    while path:
        token = next(path[-1], None)
        if token is None:
            path.pop()
            continue
        vector.append(token)
        target = edges[token].target
        if target not in seen:
            seen.add(target)
            path.append(iter(leaving.get(target, ())))
    return vector


def order_named(name: str) -> VariableOrder:
    """Return an empty order: "dfs", "arrival" or "rebuild"."""
    orders: dict[str, type[ArrivalOrder | DepthFirstOrder | RebuiltOrder]] = {
        "dfs": DepthFirstOrder,
        "arrival": ArrivalOrder,
        "rebuild": RebuiltOrder,
    }
    return orders[name]()
