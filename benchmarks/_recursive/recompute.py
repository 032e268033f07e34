"""Peers that compute the whole view again after every update, with the best libraries there are.

The links are kept in the library's own structure where it has one; the view is a matrix over nodes:
Booleans for reachable, costs for cheapest paths. A node reaches itself where a cycle leads back.
"""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._recursive.workloads import Link, LinkTrace

Matrix = NDArray[Any]


class Recompute:
    """Links by number, and the view as a matrix.

    Args:
        trace: Gives the nodes.
        compute: From this object to the new view.
        listed: Whether an update also lists the rows that have changed, as an engine tells them.

    Attributes:
        changes: The rows that came or changed their cost, and those that went, of the last update.
    """

    def __init__(
        self, trace: LinkTrace, compute: "Callable[[Recompute], Matrix]", *, listed: bool = False
    ) -> None:
        names = sorted({node for link in trace.links for node in link[:2]})
        self.number = {name: number for number, name in enumerate(names)}
        self.size = len(names)
        self.links: dict[tuple[int, int], int] = {}
        self.view: Matrix = np.zeros((self.size, self.size), bool)
        self._names = names
        self._compute = compute
        self._listed = listed
        self._stale = False
        self.changes: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]] = ([], [])

    def update(self, sign: int, link: Link) -> None:
        """Insert or delete a link and compute the view."""
        ends = (self.number[link[0]], self.number[link[1]])
        if sign > 0:
            self.links[ends] = link[2]
        else:
            del self.links[ends]
        before, self.view, self._stale = self.view, self._compute(self), False
        if self._listed:
            different = np.argwhere(before != self.view)
            self.changes = self._rows(self.view, different), self._rows(before, different)

    def _rows(self, view: Matrix, cells: Matrix) -> list[tuple[Any, ...]]:
        """Return the rows of some cells of a view, with the names of their nodes."""
        names, boolean = self._names, view.dtype == bool
        values = view[cells[:, 0], cells[:, 1]]
        present = values if boolean else np.isfinite(values)
        ends = [(names[a], names[b]) for a, b in cells[present].tolist()]
        if boolean:
            return list(ends)
        return [(*pair, cost) for pair, cost in zip(ends, values[present].tolist(), strict=True)]

    def load(self, links: tuple[Link, ...]) -> None:
        """Insert links; the view is computed when somebody asks for it."""
        for source, target, cost in links:
            self.links[self.number[source], self.number[target]] = cost
        self._stale = True

    def digest(self) -> tuple[int, int]:
        """Return the number of rows, and the sum of their costs (0 for reachable)."""
        if self._stale:
            self.view, self._stale = self._compute(self), False
        if self.view.dtype == bool:
            return int(self.view.sum()), 0
        finite = self.view[np.isfinite(self.view)]
        return int(finite.size), int(finite.sum())

    def arrays(self) -> tuple[Matrix, Matrix, Matrix]:
        """Return sources, targets and costs of all links."""
        ends = np.array(list(self.links), dtype=np.int32).reshape(-1, 2)
        costs = np.fromiter(self.links.values(), float, len(self.links))
        return ends[:, 0], ends[:, 1], costs


def _with_cycles(distances: Matrix, peer: Recompute) -> Matrix:
    """Replace the diagonal, where libraries have 0, by the cheapest cycle through each node."""
    sources, targets, costs = peer.arrays()
    best = np.full(peer.size, np.inf)
    np.minimum.at(best, targets, distances[targets, sources] + costs)
    np.fill_diagonal(distances, best)
    return distances


def scipy_cheapest(peer: Recompute) -> Matrix:
    """Return all cheapest paths by scipy's Dijkstra."""
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415

    sources, targets, costs = peer.arrays()
    graph = csr_array((costs, (sources, targets)), shape=(peer.size, peer.size))
    return _with_cycles(dijkstra(graph), peer)


def scipy_reachable(peer: Recompute) -> Matrix:
    """Return the closure by strong components (scipy) and sets of bits over them."""
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    sources, targets, _ = peer.arrays()
    ones = np.ones(len(sources), dtype=np.int8)
    graph = csr_array((ones, (sources, targets)), shape=(peer.size, peer.size))
    count, label = connected_components(graph, connection="strong")
    after: list[set[int]] = [set() for _ in range(count)]
    cyclic = np.bincount(label, minlength=count) > 1
    for a, b in zip(label[sources].tolist(), label[targets].tolist(), strict=True):
        if a != b:
            after[a].add(b)
    cyclic[label[sources[sources == targets]]] = True
    reached = np.zeros((count, count), bool)
    # scipy numbers strong components in reverse topological order of the condensation.
    order = range(count) if _is_reverse_topological(after) else _reverse_topological(after)
    for component in order:
        row = reached[component]
        row[component] = cyclic[component]
        for following in after[component]:
            row |= reached[following]
            row[following] = True
    view: Matrix = reached[np.ix_(label, label)]
    return view


def _is_reverse_topological(after: list[set[int]]) -> bool:
    return all(following < number for number, row in enumerate(after) for following in row)


def _reverse_topological(after: list[set[int]]) -> list[int]:
    order: list[int] = []
    done = [False] * len(after)
    for start in range(len(after)):
        stack = [(start, iter(after[start]))]
        while stack:
            node, rest = stack[-1]
            following = next((n for n in rest if not done[n]), None)
            if following is not None:
                stack.append((following, iter(after[following])))
                continue
            stack.pop()
            if not done[node]:
                done[node] = True
                order.append(node)
    return order


def rustworkx_cheapest(peer: Recompute) -> Matrix:
    """Return all cheapest paths by rustworkx."""
    import rustworkx  # noqa: PLC0415

    graph = _rustworkx_graph(peer, rustworkx)
    found = rustworkx.all_pairs_dijkstra_path_lengths(graph, float)
    result = np.full((peer.size, peer.size), np.inf)
    for node in range(peer.size):
        lengths = found[node]
        result[node, list(lengths.keys())] = list(lengths.values())
    np.fill_diagonal(result, 0)
    return _with_cycles(result, peer)


def rustworkx_reachable(peer: Recompute) -> Matrix:
    """Return the closure by rustworkx' distances."""
    import rustworkx  # noqa: PLC0415

    graph = _rustworkx_graph(peer, rustworkx)
    hops = rustworkx.distance_matrix(graph, null_value=float("inf"))
    np.fill_diagonal(hops, 0)
    sources, targets, _ = peer.arrays()
    reached: Matrix = np.isfinite(hops)
    np.fill_diagonal(reached, False)
    np.logical_or.at(reached, (targets, targets), np.isfinite(hops[targets, sources]))
    return reached


def _rustworkx_graph(peer: Recompute, rustworkx: Any) -> Any:
    graph = rustworkx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(range(peer.size))
    graph.add_edges_from([(a, b, cost) for (a, b), cost in peer.links.items()])
    return graph


def recomputers(query: str) -> dict[str, Callable[[Recompute], Matrix]]:
    """Return the ways to compute "reachable" or "cheapest" that this machine can import."""
    found: dict[str, Callable[[Recompute], Matrix]] = {}
    if importlib.util.find_spec("scipy"):
        found["scipy"] = scipy_reachable if query == "reachable" else scipy_cheapest
    if importlib.util.find_spec("rustworkx"):
        found["rustworkx"] = rustworkx_reachable if query == "reachable" else rustworkx_cheapest
    return found
