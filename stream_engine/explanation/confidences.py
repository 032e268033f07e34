"""How probable the rows of a result are, one by one."""

from dataclasses import dataclass

from stream_engine.explanation.budget import DEFAULT_WORK, Budget
from stream_engine.explanation.confidence import Confidence, confidence
from stream_engine.explanation.derivation_tracing import Tracer
from stream_engine.explanation.derivation_trees import DerivationGraph
from stream_engine.explanation.explained_base_rows import Contents, Tokens
from stream_engine.explanation.faithfulness import faithfulness_of
from stream_engine.explanation.plan_evaluation import Evaluation
from stream_engine.explanation.support_sets import Supports, minimal_supports
from stream_engine.explanation.why import (
    DISTURBED,
    Chance,
    bounded,
    chances_of,
)
from streamsql.algebra.operators import Plan
from streamsql.data.delta import sort_key
from streamsql.data.types import Row

SUPPORTS = 8
"""Supports to look for when a row has too many to find all."""

LEAST_WORK = 20_000
"""Steps that every row may take."""


@dataclass(frozen=True, slots=True)
class Confidences:
    """The probabilities of rows.

    Attributes:
        rows: Rows in order, each with its probability, or None where none can be given.
        total: How many different rows the result has.
        notes: What else to know, in words.
    """

    rows: tuple[tuple[Row, Confidence | None], ...]
    total: int
    notes: tuple[str, ...] = ()


def confidences(
    plan: Plan, contents: Contents, *, limit: int, chance: Chance, work: int = DEFAULT_WORK
) -> Confidences:
    """Return how probable the first rows of a plan's result are.

    Args:
        plan: Of the query, as bound.
        contents: Rows of the plan's leaves.
        limit: Most rows to look at.
        chance: Probability of a base row.
        work: Most steps of work, shared by the rows.

    Raises:
        ExplanationLimitError: Not even the result can be computed within so much work.
        DeploymentError: The library of decision diagrams is not installed.
    """
    budget = Budget(work)
    root = Evaluation(plan, contents, budget.part(0.5)).root
    chosen = sorted(root.rows, key=sort_key)[:limit]
    trust = faithfulness_of(plan)
    if trust.disturbed:
        return Confidences(tuple((row, None) for row in chosen), len(root.rows), (DISTURBED,))
    graph, tokens = DerivationGraph(), Tokens()
    tracer = Tracer(graph, tokens, budget)
    share = max(work // max(len(chosen), 1), LEAST_WORK)
    found: list[tuple[Row, Confidence | None]] = []
    for row in chosen:
        goal = tracer.node(root, row)
        mine = Budget(share)
        supports = minimal_supports(graph, goal, SUPPORTS, mine)
        known = Supports(supports.sets, supports.complete and tracer.complete)
        sure = confidence(graph, goal, known, chances_of(tokens, chance), mine)
        found.append((row, bounded(sure, trust, tracer)))
    return Confidences(tuple(found), len(root.rows))
