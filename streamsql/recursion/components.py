"""Strongly connected components of small graphs: what depends on itself through others."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def components(nodes: Sequence[Node], reads: Mapping[Node, Iterable[Node]]) -> list[list[Node]]:
    """Return the strongly connected components, each after those that it reads.

    Nodes that do not depend on each other stay in the order given, and so do the members of a
    component.

    Args:
        nodes: All of them.
        reads: What each node reads; what is not among the nodes is left out.

    Examples:
        >>> components(["a", "b", "c"], {"a": ["b"], "b": ["a", "c"], "c": []})
        [['c'], ['a', 'b']]
        >>> components(["a", "b"], {"b": ["b"]})
        [['a'], ['b']]
    """
    order = {node: number for number, node in enumerate(nodes)}
    found: list[list[Node]] = []
    numbers: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    path: list[Node] = []
    on_path: set[Node] = set()
    for start in nodes:
        if start in numbers:
            continue
        # Tarjan's algorithm with a stack of its own: (node, its successors still to visit).
        work = [(start, iter(_known(start, reads, order)))]
        while work:
            node, successors = work[-1]
            if node not in numbers:
                numbers[node] = lowest[node] = len(numbers)
                path.append(node)
                on_path.add(node)
            following = next(successors, None)
            if following is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == numbers[node]:
                    cut = path.index(node)
                    members, path = path[cut:], path[:cut]
                    on_path.difference_update(members)
                    found.append(sorted(members, key=order.__getitem__))
            elif following not in numbers:
                work.append((following, iter(_known(following, reads, order))))
            elif following in on_path:
                lowest[node] = min(lowest[node], numbers[following])
    return found


def _known(
    node: Node, reads: Mapping[Node, Iterable[Node]], order: Mapping[Node, int]
) -> list[Node]:
    return sorted({n for n in reads.get(node, ()) if n in order}, key=order.__getitem__)
