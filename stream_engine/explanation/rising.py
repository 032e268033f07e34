"""Supports risen from the tokens through a part of a derivation graph, by what is new."""

import heapq
from bisect import insort
from collections.abc import Mapping, Sequence

from stream_engine.explanation.budget import Budget
from stream_engine.explanation.cheapest import Part, costs
from stream_engine.explanation.derivation_trees import Kind
from stream_engine.explanation.masks import Mask, by_size, is_absorbed, least


class TooWideError(Exception):
    """A node has more supports than may be kept."""


class Rising:
    """The least solution in sets of tokens: supports per node.

    Sets that contain a support of the goal are dropped wherever they occur: whatever is made of
    them would be absorbed there.

    Args:
        part: What the goal is made of.
        bits: Position of every token's node in a mask.
        width: Supports a node keeps, smallest first.
        strict: Whether more than that is an error.
        known: Supports of the goal that are known already.

    Attributes:
        values: Supports per node.
        truncated: Nodes that have had more than `width`.
    """

    def __init__(
        self,
        part: Part,
        bits: Mapping[int, int],
        *,
        width: int,
        strict: bool,
        known: Sequence[Mask] = (),
    ) -> None:
        self._part = part
        self._ranks = costs(part, lambda _token: 1.0)
        self._bits = bits
        self._width = width
        self._strict = strict
        self.values: dict[int, list[Mask]] = {part.goal: list(known)}
        self.truncated: set[int] = set()
        self._waiting: dict[int, list[Mask]] = {}
        self._queue: list[tuple[float, int]] = []

    def run(self, budget: Budget) -> None:
        """Rise until nothing is new.

        Raises:
            ExplanationLimitError: The budget is spent; what has risen so far is right.
            TooWideError: A node has too many supports, when that is an error.
        """
        part = self._part
        for node in self._ranks:
            if part.kinds[node] == Kind.TOKEN:
                self._offer(node, [1 << self._bits[node]])
            elif part.kinds[node] == Kind.AND and not part.children[node]:
                self._offer(node, [0])
        while self._queue:
            _, node = heapq.heappop(self._queue)
            new = self._absorbed(node, self._waiting.pop(node), budget)
            if new:
                for parent in part.parents.get(node, ()):
                    self._offer(parent, self._risen(parent, node, new, budget))

    def _offer(self, node: int, masks: list[Mask]) -> None:
        if not masks:
            return
        waiting = self._waiting.get(node)
        if waiting is None:
            self._waiting[node] = list(masks)
            heapq.heappush(self._queue, (self._ranks[node], node))
        else:
            waiting.extend(masks)

    def _absorbed(self, node: int, offered: list[Mask], budget: Budget) -> list[Mask]:
        """Add supports to a node; return those that are new to it."""
        value = self.values.get(node, [])
        useless = self.values[self._part.goal]
        new: list[Mask] = []
        for mask in sorted(set(offered), key=by_size):
            if (
                len(value) >= self._width
                and not self._strict
                and by_size(mask) > by_size(value[-1])
            ):
                self.truncated.add(node)
                break  # the rest is larger still
            budget.spend(1 + len(value) + len(useless), "comparing supports")
            if is_absorbed(mask, value) or is_absorbed(mask, useless):
                continue
            value = [old for old in value if old & mask != mask]
            insort(value, mask, key=by_size)
            new.append(mask)
            if len(value) > self._width:
                if self._strict:
                    raise TooWideError
                self.truncated.add(node)
                value.pop()
        if not new:
            return new
        self.values[node] = value
        kept = set(value)
        return [mask for mask in new if mask in kept]

    def _risen(self, parent: int, child: int, new: list[Mask], budget: Budget) -> list[Mask]:
        """Return the supports a parent gets from new ones of a child."""
        if self._part.kinds[parent] == Kind.OR:
            return new
        masks = new
        others = [self.values.get(n, []) for n in self._part.children[parent] if n != child]
        for other in sorted(others, key=len):
            budget.spend(len(masks) * len(other), "combining supports")
            masks = least({a | b for a in masks for b in other}, self._width)
            if len(masks) > self._width:
                if self._strict:
                    raise TooWideError
                self.truncated.add(parent)
        return masks
