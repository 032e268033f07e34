"""The minimal supports of a row, from its derivations.

A support is a set of base rows such that the row stays as long as all of them are there, whatever
else goes; it is minimal when no smaller one is inside it. They are the least solution of the
derivation graph in disjunctive normal form under absorption.

A row can have exponentially many. First every node keeps only its few smallest; what comes out is
made minimal. What no support can use any more is cut away: derivations from rows that cannot hold
without the goal holding anyway. Then all supports are looked for, and if a node has too many, those
of the first round are the answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from stream_engine.explanation.budget import Budget, ExplanationLimitError
from stream_engine.explanation.cheapest import Part, costs, derivation
from stream_engine.explanation.derivation_trees import DerivationGraph, Kind, Rise
from stream_engine.explanation.masks import Mask, bits_of, by_size, is_absorbed, least
from stream_engine.explanation.rising import Rising, TooWideError

WIDE = 256
"""Supports a node may have when all are looked for."""


@dataclass(frozen=True, slots=True)
class Supports:
    """What was found.

    Attributes:
        sets: Minimal supports as sets of tokens, smallest first.
        complete: Whether these are all there are.
    """

    sets: tuple[frozenset[int], ...]
    complete: bool


def minimal_supports(graph: DerivationGraph, goal: int, wanted: int, budget: Budget) -> Supports:
    """Return all minimal supports of a node, or some of the smallest when there are too many.

    Args:
        graph: The derivations.
        goal: A node that holds when all tokens are alive.
        wanted: How many to look for when not all can be found.
        budget: Bounds the work; when it is spent, what was found until then is returned.
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
