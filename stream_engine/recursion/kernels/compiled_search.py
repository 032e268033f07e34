"""Searches from sources over arrays, compiled by numba; imported only where they are asked for.

Keys are a matrix of nodes by groups, `inf` where a group does not reach a node. Edges are rows of a
table, linked per node in both directions; starts (a group's source and its key) likewise. With
`loose`, keys are ranks: a node keeps any rank above that of some predecessor, as in `reach`;
otherwise they are least sums, as in `costs`. Repairs have no elastic limit: they are never much
slower than a search anew.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

# Columns of the table of edges, of the table of starts, and of the heads of lists per node.
SOURCE, TARGET, OUT_NEXT, OUT_PREVIOUS, IN_NEXT, IN_PREVIOUS = range(6)
GROUP, NODE, NEXT, PREVIOUS = range(4)
OUT, IN, STARTS = range(3)
NOTHING = -1


class Tables(NamedTuple):
    """The graph, the sources and the keys.

    Attributes:
        keys: Per node and group.
        heads: Per node its first edge out, first edge in and first start.
        edges: Per edge its nodes and its neighbours in both lists.
        weights: Per edge.
        starts: Per start its group, its node and its neighbours in the node's list.
        start_keys: Per start.
    """

    keys: Doubles
    heads: Integers
    edges: Integers
    weights: Doubles
    starts: Integers
    start_keys: Doubles


class Changes(NamedTuple):
    """What changes.

    Attributes:
        edges: Per changed edge its row, its source and its target.
        edge_weights: Per changed edge its weight before and after; `inf` where there is none.
        starts: Per changed start its row, its group and its node.
        start_keys: Per changed start its key before and after; `inf` where there is none.
    """

    edges: Integers
    edge_weights: Doubles
    starts: Integers
    start_keys: Doubles


class Scratch(NamedTuple):
    """Memory for one group at a time.

    Attributes:
        mark: Per node whether it is touched; zeros before and after.
        touched: The touched nodes; room for all.
        before: Their keys before.
        length: How many they are, in one element.
        todo: Nodes to look at; room for all edges, changes and nodes.
        heap_keys: A heap of keys, with the same room.
        heap_nodes: Its nodes.
    """

    mark: Integers
    touched: Integers
    before: Doubles
    length: Integers
    todo: Integers
    heap_keys: Doubles
    heap_nodes: Integers


def _compiled(function: Function) -> Function:
    """Compile a function when it is first called; keep the result on disk for later processes.

    Indexes are checked, as in Python: a defect must not write into somebody else's memory.

    Where no folder can be written to, every process compiles for itself.
    """
    try:
        return cast("Function", numba.njit(cache=True, boundscheck=True)(function))
    except RuntimeError:
        return cast("Function", numba.njit(boundscheck=True)(function))


@_compiled
def _link(table: Integers, row: int, links: int, heads: Integers, place: tuple[int, int]) -> None:
    """Put a row first in a list; columns `links` and `links + 1` are its next and previous."""
    head = heads[place]
    table[row, links] = head
    table[row, links + 1] = NOTHING
    if head != NOTHING:
        table[head, links + 1] = row
    heads[place] = row


@_compiled
def _unlink(table: Integers, row: int, links: int, heads: Integers, place: tuple[int, int]) -> None:
    following, previous = table[row, links], table[row, links + 1]
    if following != NOTHING:
        table[following, links + 1] = previous
    if previous != NOTHING:
        table[previous, links] = following
    else:
        heads[place] = following


@_compiled
def _relink(t: Tables, c: Changes) -> None:
    for i in range(len(c.edges)):
        row, a, b = c.edges[i, 0], c.edges[i, 1], c.edges[i, 2]
        t.weights[row] = c.edge_weights[i, 1]
        if c.edge_weights[i, 0] == np.inf:
            t.edges[row, SOURCE] = a
            t.edges[row, TARGET] = b
            _link(t.edges, row, OUT_NEXT, t.heads, (a, OUT))
            _link(t.edges, row, IN_NEXT, t.heads, (b, IN))
        elif c.edge_weights[i, 1] == np.inf:
            _unlink(t.edges, row, OUT_NEXT, t.heads, (a, OUT))
            _unlink(t.edges, row, IN_NEXT, t.heads, (b, IN))
    for i in range(len(c.starts)):
        row, group, node = c.starts[i, 0], c.starts[i, 1], c.starts[i, 2]
        t.start_keys[row] = c.start_keys[i, 1]
        if c.start_keys[i, 0] == np.inf:
            t.starts[row, GROUP] = group
            t.starts[row, NODE] = node
            _link(t.starts, row, NEXT, t.heads, (node, STARTS))
        elif c.start_keys[i, 1] == np.inf:
            _unlink(t.starts, row, NEXT, t.heads, (node, STARTS))


@_compiled
def _push(s: Scratch, size: int, key: float, node: int) -> int:
    """Put a node on the heap; return the heap's new size."""
    keys, nodes = s.heap_keys, s.heap_nodes
    i = size
    while i > 0 and keys[(i - 1) >> 1] > key:
        keys[i], nodes[i] = keys[(i - 1) >> 1], nodes[(i - 1) >> 1]
        i = (i - 1) >> 1
    keys[i], nodes[i] = key, node
    return size + 1


@_compiled
def _drop_first(s: Scratch, size: int) -> int:
    """Take the first node off the heap; return the heap's new size."""
    keys, nodes = s.heap_keys, s.heap_nodes
    size -= 1
    key, node = keys[size], nodes[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], nodes[i] = keys[child], nodes[child]
        i = child
    keys[i], nodes[i] = key, node
    return size


@_compiled
def _stands(t: Tables, group: int, node: int, loose: bool) -> bool:
    """Whether a start, or a predecessor with a smaller key, proves a node's key."""
    x = t.keys[node, group]
    edge = t.heads[node, IN]
    while edge != NOTHING:
        y = t.keys[t.edges[edge, SOURCE], group]
        if y < x and (loose or y + t.weights[edge] == x):
            return True
        edge = t.edges[edge, IN_NEXT]
    start = t.heads[node, STARTS]
    while start != NOTHING:
        if t.starts[start, GROUP] == group and (loose or t.start_keys[start] == x):
            return True
        start = t.starts[start, NEXT]
    return False


@_compiled
def _best(t: Tables, group: int, node: int) -> float:
    """Return the least key that starts and predecessors give a node."""
    best = np.inf
    edge = t.heads[node, IN]
    while edge != NOTHING:
        best = min(best, t.keys[t.edges[edge, SOURCE], group] + t.weights[edge])
        edge = t.edges[edge, IN_NEXT]
    start = t.heads[node, STARTS]
    while start != NOTHING:
        if t.starts[start, GROUP] == group:
            best = min(best, t.start_keys[start])
        start = t.starts[start, NEXT]
    return best


@_compiled
def _rests(x: float, weight: float, z: float, loose: bool) -> bool:
    """Whether a node of key `z` may rest on an edge from one of key `x`."""
    if loose:
        return x < z < np.inf
    return x + weight == z and z < np.inf


@_compiled
def _is_better(x: float, z: float, loose: bool) -> bool:
    """Whether key `x` is to replace key `z`."""
    return x < np.inf and z == np.inf if loose else x < z


@_compiled
def _touch(s: Scratch, node: int, key: float) -> None:
    """Note the key that a node had, if it is not noted yet."""
    if not s.mark[node]:
        s.mark[node] = 1
        s.touched[s.length[0]] = node
        s.before[s.length[0]] = key
        s.length[0] += 1


@_compiled
def _shake(t: Tables, c: Changes, s: Scratch, group: int, loose: bool) -> int:
    """Put on `todo` the nodes that rested on what is gone; return how many."""
    size = 0
    for i in range(len(c.edges)):
        x = t.keys[c.edges[i, 1], group]
        old = c.edge_weights[i, 0]
        if old < np.inf and x < np.inf:
            b = c.edges[i, 2]
            if _rests(x, old, t.keys[b, group], loose):
                s.todo[size] = b
                size += 1
    for i in range(len(c.starts)):
        old = c.start_keys[i, 0]
        if c.starts[i, 1] == group and old < np.inf:
            x = t.keys[c.starts[i, 2], group]
            if x < np.inf if loose else x == old:
                s.todo[size] = c.starts[i, 2]
                size += 1
    return size


@_compiled
def _drop(t: Tables, s: Scratch, group: int, size: int, loose: bool) -> None:
    """Drop the keys that nothing proves any more, beginning with the nodes on `todo`."""
    while size:
        size -= 1
        b = s.todo[size]
        x = t.keys[b, group]
        if x == np.inf or _stands(t, group, b, loose):
            continue
        t.keys[b, group] = np.inf
        _touch(s, b, x)
        edge = t.heads[b, OUT]
        while edge != NOTHING:
            c = t.edges[edge, TARGET]
            if _rests(x, t.weights[edge], t.keys[c, group], loose):
                s.todo[size] = c
                size += 1
            edge = t.edges[edge, OUT_NEXT]


@_compiled
def _offer(t: Tables, c: Changes, s: Scratch, group: int, loose: bool) -> int:
    """Put on the heap what the touched nodes and the ends of new edges may get."""
    size = 0
    for i in range(s.length[0]):
        x = _best(t, group, s.touched[i])
        if x < np.inf:
            size = _push(s, size, x, s.touched[i])
    for i in range(len(c.edges)):
        x = t.keys[c.edges[i, 1], group] + c.edge_weights[i, 1]
        if _is_better(x, t.keys[c.edges[i, 2], group], loose):
            size = _push(s, size, x, c.edges[i, 2])
    for i in range(len(c.starts)):
        if c.starts[i, 1] == group:
            x = c.start_keys[i, 1]
            if _is_better(x, t.keys[c.starts[i, 2], group], loose):
                size = _push(s, size, x, c.starts[i, 2])
    return size


@_compiled
def _settle(t: Tables, s: Scratch, group: int, size: int, loose: bool) -> None:
    """Search on from the nodes on the heap."""
    while size:
        x, a = s.heap_keys[0], s.heap_nodes[0]
        size = _drop_first(s, size)
        if not _is_better(x, t.keys[a, group], loose):
            continue
        _touch(s, a, t.keys[a, group])
        t.keys[a, group] = x
        edge = t.heads[a, OUT]
        while edge != NOTHING:
            b = t.edges[edge, TARGET]
            z = x + t.weights[edge]
            if _is_better(z, t.keys[b, group], loose):
                size = _push(s, size, z, b)
            edge = t.edges[edge, OUT_NEXT]


@_compiled
def maintain(
    tables: tuple[Doubles, Integers, Integers, Doubles, Integers, Doubles],
    changes: tuple[Integers, Doubles, Integers, Doubles],
    scratch: tuple[Integers, Integers, Doubles, Integers, Integers, Doubles, Integers],
    groups: int,
    loose: bool,
) -> tuple[Integers, Doubles]:
    """Change graph and sources, and bring all keys up to date.

    Bare tuples cross into compiled code faster than named ones.

    Returns:
        Per changed key (of ranks only whether there is one counts) its group and node, and what it
        was and is.
    """
    t = Tables(tables[0], tables[1], tables[2], tables[3], tables[4], tables[5])
    c = Changes(changes[0], changes[1], changes[2], changes[3])
    s = Scratch(scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5], scratch[6])
    _relink(t, c)
    found = np.empty((64, 2), np.int64)
    values = np.empty((64, 2), np.float64)
    count = 0
    for group in range(groups):
        s.length[0] = 0
        _drop(t, s, group, _shake(t, c, s, group, loose), loose)
        _settle(t, s, group, _offer(t, c, s, group, loose), loose)
        if count + s.length[0] > len(found):
            room = 2 * (count + s.length[0])
            more, larger = np.empty((room, 2), np.int64), np.empty((room, 2), np.float64)
            more[:count], larger[:count] = found[:count], values[:count]
            found, values = more, larger
        for i in range(s.length[0]):
            b, old = s.touched[i], s.before[i]
            s.mark[b] = 0
            new = t.keys[b, group]
            if (old < np.inf) != (new < np.inf) if loose else old != new:
                found[count, 0], found[count, 1] = group, b
                values[count, 0], values[count, 1] = old, new
                count += 1
    return found[:count], values[:count]
