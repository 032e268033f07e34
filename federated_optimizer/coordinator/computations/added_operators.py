"""Operators that a run adds to what it reads from others, counted by kind."""

from streamsql.algebra.expressions import conjuncts
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    OverWindow,
    Plan,
    SessionWindow,
    SetOperation,
    StreamWindow,
    TopN,
    UnionAll,
    Window,
    Younger,
    walk_plan,
)
from streamsql.wire.fragments import FragmentBundle

_KINDS: tuple[tuple[str, tuple[type[Plan], ...]], ...] = (
    ("filter", (Filter,)),
    ("join", (Join, AsOfJoin)),
    ("aggregate", (Aggregate,)),
    ("duplicate removal", (Distinct,)),
    ("set operation", (SetOperation, UnionAll)),
    ("recursion", (Fixpoint,)),
    ("window", (Window, HopWindow, SessionWindow, StreamWindow, OverWindow, Younger)),
    ("ordering", (TopN,)),
)
"""Kinds in words, as they are counted: conditions each; columns that are chosen are none."""


def added_operators(bundle: FragmentBundle) -> dict[str, int]:
    """Return how many operators of each kind the fragments have that a run computes itself."""
    counts: dict[str, int] = {}
    nodes = [node for fragment in bundle.own for node in walk_plan(fragment.plan)]
    for kind, types in _KINDS:
        found = [node for node in nodes if isinstance(node, types)]
        count = sum(len(conjuncts(n.predicate)) if isinstance(n, Filter) else 1 for n in found)
        if count:
            counts[kind] = count
    return counts


def added_words(counts: dict[str, int]) -> str:
    """Return the counts in words.

    Examples:
        >>> added_words({"filter": 1, "join": 2})
        '1 filter, 2 joins'
        >>> added_words({})
        'nothing'
    """
    said = (f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items())
    return ", ".join(said) or "nothing"
