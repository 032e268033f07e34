"""The minimal supports of a row, from its derivations.

A support is a set of base rows such that the row stays as long as all of them are there, whatever
else goes; it is minimal when no smaller one is inside it. They are the least solution of the
derivation graph in disjunctive normal form under absorption.

A row can have exponentially many. First every node keeps only its few smallest; what comes out is
made minimal. What no support can use any more is cut away: derivations from rows that cannot hold
without the goal holding anyway. Then all supports are looked for, and if a node has too many, those
of the first round are the answer.
"""

import heapq
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stream_engine.explanation.budget import Budget, ExplanationLimitError
from stream_engine.explanation.cheapest import Part, costs, derivation
from stream_engine.explanation.derivation_trees import DerivationGraph, Kind, Rise

Mask = int


def bits_of(mask: Mask) -> Iterator[int]:
    """Yield the positions of a mask, ascending.

    Examples:
        >>> list(bits_of(0b1010))
        [1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def by_size(mask: Mask) -> tuple[int, int]:
    """Return a sort key: smaller sets first."""
    return (mask.bit_count(), mask)


def is_absorbed(mask: Mask, others: Collection[Mask]) -> bool:
    """Whether one of the others is inside a mask.

    Examples:
        >>> is_absorbed(0b111, [0b101]), is_absorbed(0b110, [0b101])
        (True, False)
    """
    for other in others:  # noqa: SIM110 - half the time of any() over a generator
        if other & mask == other:
            return True
    return False


def least(masks: Iterable[Mask], width: int) -> list[Mask]:
    """Return the minimal ones, smallest first; one more than `width` when there are more."""
    kept: list[Mask] = []
    for mask in sorted(masks, key=by_size):
        if not is_absorbed(mask, kept):
            kept.append(mask)
            if len(kept) > width:
                break
    return kept


class TooWideError(Exception):
    """A node has more supports than may be kept."""


class Rising:
    """The least solution in sets of tokens: supports per node, risen by what is new.

    Sets that contain a support of the goal are dropped wherever they occur: whatever is made of
    them would be absorbed there.

    Args:
        part: The nodes below the goal.
        bits: Position of every token's node in a mask.
        width: Supports a node keeps, smallest first.
        strict: Whether more than that is an error.
        known: Known supports of the goal.

    Attributes:
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


WIDE = 256
"""Supports a node may have when all are looked for."""


@dataclass(frozen=True, slots=True)
class Supports:
    """Minimal supports as sets of tokens, smallest first; `complete` if these are all."""

    sets: tuple[frozenset[int], ...]
    complete: bool


def minimal_supports(graph: DerivationGraph, goal: int, wanted: int, budget: Budget) -> Supports:
    """Return all minimal supports of a node, or some of the smallest when there are too many.

    Args:
        graph: The derivations.
        goal: A node that holds when all tokens are alive.
        wanted: How many to look for when not all can be found.
        budget: Bounds the work; once it is spent, the supports found so far are returned.
    """
    part = Part(graph, goal, dict(enumerate(graph.children)))
    nodes = [n for n in part.children if graph.kinds[n] == Kind.TOKEN]
    bits = {node: bit for bit, node in enumerate(nodes)}
    tokens = [graph.tokens[node] for node in nodes]

    some = Rising(part, bits, width=max(wanted, 8), strict=False)
    exact = _run(some, budget.part(0.4))
    if exact and not some.truncated:
        return Supports(_ordered(some.values[goal], tokens), True)
    smallest = derivation(part, costs(part, lambda _token: 1.0))
    places = {token: bit for bit, token in enumerate(tokens)}
    found = {*some.values[goal], sum(1 << places[token] for token in smallest)}
    known = _minimal(Rise(graph, list(part.children)), goal, nodes, found)
    if exact:
        useful = Part(graph, goal, _useful(part, some, known))
        every = Rising(useful, bits, width=max(WIDE, 2 * wanted), strict=True, known=known)
        if _run(every, budget.part(0.6)):
            return Supports(_ordered(every.values[goal], tokens), True)
    return Supports(_ordered(known, tokens), False)


def _run(rising: Rising, budget: Budget) -> bool:
    """Return whether it ran to its end."""
    try:
        rising.run(budget)
    except (TooWideError, ExplanationLimitError):
        return False
    return True


def _useful(part: Part, some: Rising, known: list[Mask]) -> dict[int, list[int]]:
    """Return the children of every node without the derivations that lead to no other support.

    An AND leads to none when one of its children holds only where the goal holds anyway.
    """
    unsure = part.above(some.truncated)
    absorbed = {part.goal}
    for node in part.children:
        masks = some.values.get(node, [])
        if node not in unsure and all(is_absorbed(mask, known) for mask in masks):
            absorbed.add(node)
    useless = {
        node
        for node, children in part.children.items()
        if part.kinds[node] == Kind.AND and not absorbed.isdisjoint(children)
    }
    useless |= absorbed - {part.goal}
    return {
        node: [child for child in children if child not in useless]
        if part.kinds[node] == Kind.OR
        else children
        for node, children in part.children.items()
    }


def _minimal(rise: Rise, goal: int, nodes: list[int], found: Iterable[Mask]) -> list[Mask]:
    """Take away from every set what the goal does not need."""
    result: set[Mask] = set()
    for mask in sorted(found, key=by_size):
        kept = mask
        for bit in bits_of(mask):
            fewer = kept & ~(1 << bit)
            if rise.holds(goal, [nodes[b] for b in bits_of(fewer)]):
                kept = fewer
        result.add(kept)
    return least(result, len(result))


def _ordered(masks: Iterable[Mask], tokens: list[int]) -> tuple[frozenset[int], ...]:
    sets = [frozenset(tokens[bit] for bit in bits_of(mask)) for mask in masks]
    return tuple(sorted(sets, key=lambda s: (len(s), sorted(s))))
