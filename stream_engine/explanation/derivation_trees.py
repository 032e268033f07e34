"""How rows are derived from base rows, as a graph of ANDs and ORs over tokens.

A recursion makes it cyclic: what holds is the least solution, in which nothing supports itself.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum


class Kind(IntEnum):
    """What a node of the graph is."""

    TOKEN = 0
    AND = 1
    OR = 2


class DerivationGraph:
    """Kinds, children and tokens (or 0) by node; the children of an OR may be added later.

    The node `always` is the AND of nothing.
    """

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.children: list[list[int]] = []
        self.tokens: list[int] = []
        self._of_token: dict[int, int] = {}
        self._ands: dict[tuple[int, ...], int] = {}
        self.always = self.all_of(())

    def token(self, token: int) -> int:
        """Return the node of a base row."""
        node = self._of_token.get(token)
        if node is None:
            node = self._of_token[token] = self._new(Kind.TOKEN, [], token)
        return node

    def all_of(self, nodes: Iterable[int]) -> int:
        """Return a node that holds when all of some do, in their order."""
        parts = tuple(dict.fromkeys(nodes))
        if len(parts) == 1:
            return parts[0]
        known = self._ands.get(parts)
        if known is None:
            known = self._ands[parts] = self._new(Kind.AND, list(parts))
        return known

    def any_of(self, nodes: Iterable[int]) -> int:
        """Return a node that holds when one of some does."""
        parts = list(dict.fromkeys(nodes))
        return parts[0] if len(parts) == 1 else self._new(Kind.OR, parts)

    def open_or(self) -> int:
        """Return an OR whose children follow by `add`."""
        return self._new(Kind.OR, [])

    def add(self, node: int, child: int) -> None:
        """Add an alternative to an OR."""
        self.children[node].append(child)

    def below(self, node: int) -> list[int]:
        """Return a node and everything it is made of, nearest first."""
        seen = {node: None}
        for current in (queue := [node]):
            for child in self.children[current]:
                if child not in seen:
                    seen[child] = None
                    queue.append(child)
        return list(seen)

    def _new(self, kind: Kind, children: list[int], token: int = 0) -> int:
        self.kinds.append(kind)
        self.children.append(children)
        self.tokens.append(token)
        return len(self.kinds) - 1


class Rise:
    """Answers what holds when given nodes do, upwards through a part of a graph.

    Work per question: that of what holds (Dowling and Gallier's linear resolution of Horn clauses).

    Args:
        graph: The derivations.
        part: Nodes looked at, closed downwards.
    """

    def __init__(self, graph: DerivationGraph, part: Sequence[int]) -> None:
        self._kinds = graph.kinds
        self._needed = {n: len(graph.children[n]) for n in part if graph.kinds[n] == Kind.AND}
        self._parents: dict[int, list[int]] = {}
        for node in part:
            for child in graph.children[node]:
                self._parents.setdefault(child, []).append(node)
        self._facts = [n for n, count in self._needed.items() if not count]

    def holds(self, goal: int, given: Iterable[int]) -> bool:
        """Whether the goal holds when the given nodes do."""
        true = set(given)
        true.update(self._facts)
        missing: dict[int, int] = {}
        queue = list(true)
        while queue:
            node = queue.pop()
            if node == goal:
                return True
            for parent in self._parents.get(node, ()):
                if parent in true:
                    continue
                if self._kinds[parent] == Kind.AND:
                    left = missing.get(parent, self._needed[parent]) - 1
                    missing[parent] = left
                    if left:
                        continue
                true.add(parent)
                queue.append(parent)
        return False
