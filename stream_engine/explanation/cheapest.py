"""The cheapest derivation of a goal, when every token has a weight (Knuth, 1977)."""

import heapq
from collections.abc import Callable, Mapping, Sequence

from stream_engine.explanation.derivation_trees import DerivationGraph, Kind

Children = Mapping[int, Sequence[int]]
"""The nodes of a part of a graph with their children in it."""

Weight = Callable[[int], float | None]
"""Weight of a token, at least 0; None for one that is not there."""


class Part:
    """The nodes below a goal with their children and parents; kinds and tokens of all nodes."""

    def __init__(self, graph: DerivationGraph, goal: int, children: Children) -> None:
        self.goal = goal
        self.kinds = graph.kinds
        self.tokens = graph.tokens
        self.children: dict[int, list[int]] = {goal: list(children[goal])}
        for node in (queue := [goal]):
            for child in self.children[node]:
                if child not in self.children:
                    self.children[child] = list(children[child])
                    queue.append(child)
        self.parents: dict[int, list[int]] = {}
        for node, below in self.children.items():
            for child in below:
                self.parents.setdefault(child, []).append(node)

    def above(self, nodes: set[int]) -> set[int]:
        """Return nodes and everything that is made of them."""
        found = set(nodes)
        waiting = list(nodes)
        while waiting:
            for parent in self.parents.get(waiting.pop(), ()):
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return found


def costs(part: Part, weight: Weight) -> dict[int, float]:
    """Return the cost of the cheapest derivation of every node that has one.

    A derivation costs the sum of its tokens' weights, each as often as it is used.
    """
    missing: dict[int, int] = {}
    sums: dict[int, float] = {}
    queue: list[tuple[float, int]] = []
    for node, children in part.children.items():
        if part.kinds[node] == Kind.TOKEN:
            own = weight(part.tokens[node])
            if own is not None:
                queue.append((own, node))
        elif part.kinds[node] == Kind.AND:
            missing[node], sums[node] = len(children), 0.0
            if not children:
                queue.append((0.0, node))
    heapq.heapify(queue)
    found: dict[int, float] = {}
    while queue:
        cost, node = heapq.heappop(queue)
        if node in found:
            continue
        found[node] = cost
        for parent in part.parents.get(node, ()):
            if part.kinds[parent] == Kind.OR:
                heapq.heappush(queue, (cost, parent))
                continue
            missing[parent] -= 1
            sums[parent] += cost
            if not missing[parent]:
                heapq.heappush(queue, (sums[parent], parent))
    return found


def derivation(part: Part, found: Mapping[int, float]) -> list[int]:
    """Return the tokens of the goal's cheapest derivation, each once, in the order of the rules.

    `found` is what `costs` returned; the goal must be in it.
    """
    order = {node: number for number, node in enumerate(found)}
    tokens: dict[int, None] = {}
    seen: set[int] = set()
    waiting = [part.goal]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if part.kinds[node] == Kind.TOKEN:
            tokens[part.tokens[node]] = None
        elif part.kinds[node] == Kind.OR:
            # The child found first: of equal costs another one may rest on this node itself.
            waiting.append(min((c for c in part.children[node] if c in order), key=order.get))  # type: ignore[arg-type]
        else:
            waiting.extend(reversed(part.children[node]))
    return list(tokens)


def in_order(part: Part, support: frozenset[int]) -> list[int]:
    """Return the tokens of a support in the order in which a derivation uses them."""
    found = costs(part, lambda token: 1.0 if token in support else None)
    if part.goal not in found:
        return sorted(support)
    used = derivation(part, found)
    return used + sorted(support - set(used))
