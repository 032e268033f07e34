"""Counts of sequences: actions, comparisons, and whatever a set of sequences has to contain.

Answers that agree prove something only where queries really shared, and sites died meanwhile.
"""

import re
from collections import Counter
from collections.abc import Iterator

from federated_optimizer.registering.registration_terms import Registration
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    SetOperation,
    UnionAll,
    Window,
    walk_plan,
)

COMPARED = "comparisons from scratch and alone"
WITH_DUCKDB = "comparisons with DuckDB"
OVER_OTHERS = "queries over rows of others"

SHARED = (
    "selections",
    "inner joins",
    "outer joins",
    "groups",
    "recursions",
    "set operators",
    "windows",
    "windows that are longer",
)
"""Kinds of computations that queries read, by `kinds_of`."""

FORMS = {
    "TUMBLE": r"TUMBLE\(",
    "HOP": r"HOP\(",
    "DATE_TRUNC": r"DATE_TRUNC\(",
    "ROLLUP": r"ROLLUP \(",
    "CUBE": r"CUBE \(",
    "ARG_MIN": r"ARG_MIN\(",
    "ARG_MAX": r"ARG_MAX\(",
    "FILTER": r"FILTER \(",
    "MEDIAN": r"MEDIAN\(",
    "OVER": r"OVER \(",
    "SESSION": r"SESSION\(",
    "SLIDE": r" SLIDE ",
    "STRING_AGG": r"STRING_AGG\(",
    "ALL": r"> ALL \(",
    "aggregates of users": r"(counted|peak|harmonic_mean)\(",
    "aggregates that are expressions": r"(spread|weighted)\(",
}
"""Patterns of texts with forms of which each set has to have queries that share something."""

NEEDED = (
    COMPARED,
    WITH_DUCKDB,
    "queries equal to one that runs",
    OVER_OTHERS,
    "nodes made",
    "nodes widened",
    *(f"read by others: {kind}" for kind in SHARED),
    *(f"over rows of others: {form}" for form in FORMS),
    "sites that die while a node is filled",
    "sites that die while a reader is filled",
    "sites that crash while a reader is filled",
    "sites that are back while a node is filled",
    "queries that end while others read them",
    "readers planned again after an end",
    "deliveries after which messages are under way",
)
"""Counts none of which may be 0 in a set of sequences that proves anything."""


def kinds_of(plan: Plan) -> Iterator[str]:
    """Yield the kinds of what a plan computes; most have one."""
    if any(isinstance(node, Window) for node in walk_plan(plan)):
        yield "windows"
    while isinstance(plan, Project | Filter):
        plan = plan.input
    match plan:
        case Aggregate() | Distinct():
            yield "groups"
        case Fixpoint():
            yield "recursions"
        case SetOperation() | UnionAll():
            yield "set operators"
        case Join(kind=JoinKind.INNER):
            yield "inner joins"
        case Join():
            yield "outer joins"
        case _:
            yield "selections"


def lengths_of(plan: Plan) -> set[int | None]:
    """Return the lengths of the windows of a plan, in microseconds."""
    return {node.size for node in walk_plan(plan) if isinstance(node, Window)}


def note_registration(counts: Counter[str], found: Registration, text: str) -> None:
    """Count what a new query of a text reads and makes."""
    counts["queries"] += 1
    counts["queries equal to one that runs"] += bool(found.equal)
    counts[OVER_OTHERS] += bool(found.used and not found.equal)
    for form, pattern in FORMS.items() if found.used and not found.equal else ():
        counts[f"over rows of others: {form}"] += bool(re.search(pattern, text))
    for node in found.nodes:
        counts["nodes widened" if node.widens else "nodes made"] += 1
    own = lengths_of(found.logical)
    for each in found.used:
        counts["read by others: windows that are longer"] += bool(lengths_of(each.offer.plan) - own)
        for kind in kinds_of(each.offer.plan):
            counts[f"read by others: {kind}"] += 1


def lacking(counts: Counter[str]) -> list[str]:
    """Return what a set of sequences should have had and did not."""
    return [name for name in NEEDED if not counts[name]]
