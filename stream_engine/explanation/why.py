"""Why is a row there? Its minimal supports, and how probable rows are."""

from stream_engine.explanation.budget import DEFAULT_WORK, Budget
from stream_engine.explanation.cheapest import Part, in_order
from stream_engine.explanation.confidence import confidence
from stream_engine.explanation.derivation_tracing import Tokens, Tracer
from stream_engine.explanation.derivation_trees import DerivationGraph
from stream_engine.explanation.faithfulness import Faithfulness, faithfulness_of
from stream_engine.explanation.plan_evaluation import Evaluation
from stream_engine.explanation.restricting import restricted
from stream_engine.explanation.support_sets import Supports, minimal_supports
from streamsql.algebra.operators import Plan
from streamsql.algebra.row_explanations import (
    BaseRow,
    Chance,
    Confidence,
    Confidences,
    Contents,
    Why,
)
from streamsql.data.delta import sort_key
from streamsql.data.types import Row

DISTURBED = (
    "deleting other rows may add rows that also change this one, because an aggregate or "
    "LEFT JOIN reads another one; for this reason the probability is unknown"
)
LOOSE = "deleting rows may create further derivations of it"
UNFOLLOWED = "the budget did not suffice to follow all derivations"


def why(  # noqa: PLR0913 - the question and its bounds
    plan: Plan,
    contents: Contents,
    row: Row,
    *,
    limit: int = 10,
    chance: Chance | None = None,
    work: int = DEFAULT_WORK,
) -> Why:
    """Return the supports of a row of a bound plan's result.

    Args:
        plan: Of the query, as bound.
        contents: Rows of the plan's leaves.
        row: Of the result.
        limit: Max supports to list.
        chance: With it the row's probability is computed.
        work: Max steps of work.

    Raises:
        ExplanationLimitError: Not even the result can be computed within so much work.
        DeploymentError: A probability is requested without the library of decision diagrams.
    """
    budget = Budget(work)
    part = restricted(plan, row)
    root = Evaluation(part, contents, budget.part(0.5)).root
    if row not in root.rows:
        return Why(holds=False)
    graph, tokens = DerivationGraph(), Tokens()
    tracer = Tracer(graph, tokens, budget)
    goal = tracer.node(root, row)
    found = minimal_supports(graph, goal, limit, budget)
    complete = found.complete and tracer.complete
    notes = list(tracer.notes)
    if not tracer.complete:
        notes.append(UNFOLLOWED)
    trust = faithfulness_of(plan)
    if trust.disturbed:
        notes.append(DISTURBED)
    sure = None
    if chance is not None and not trust.disturbed:
        chances = chances_of(tokens, chance)
        known = Supports(found.sets, complete)
        sure = bounded(confidence(graph, goal, known, chances, budget), trust, tracer)
    return Why(
        holds=True,
        supports=_listed(graph, goal, tokens, found.sets[:limit]),
        complete=complete and len(found.sets) <= limit,
        known=len(found.sets),
        confidence=sure,
        notes=tuple(notes),
    )


def bounded(sure: Confidence, trust: Faithfulness, tracer: Tracer) -> Confidence:
    """Return a probability as a lower bound where supports do not say all."""
    if not sure.exact or not (trust.loose or not tracer.complete):
        return sure
    return Confidence(sure.probability, False, LOOSE if trust.loose else UNFOLLOWED)


def _listed(
    graph: DerivationGraph, goal: int, tokens: Tokens, sets: tuple[frozenset[int], ...]
) -> tuple[tuple[BaseRow, ...], ...]:
    """Return base rows in the order in which a derivation uses them: links along their path."""
    part = Part(graph, goal, dict(enumerate(graph.children)))
    return tuple(tuple(map(tokens.base_row, in_order(part, support))) for support in sets)


def chances_of(tokens: Tokens, chance: Chance) -> dict[int, float]:
    """Return the probabilities of the tokens that are not certain."""
    found: dict[int, float] = {}
    for token in tokens:
        probability = chance(tokens.base_row(token))
        if probability is not None and probability < 1.0:
            found[token] = probability
    return found


SUPPORTS = 8
"""Supports to look for when a row has too many to find all."""

LEAST_WORK = 20_000
"""Steps that every row may take."""


def confidences(
    plan: Plan, contents: Contents, *, limit: int, chance: Chance, work: int = DEFAULT_WORK
) -> Confidences:
    """Return the probabilities of the first rows of a bound plan's result.

    Args:
        plan: Of the query, as bound.
        contents: Rows of the plan's leaves.
        limit: Max rows.
        chance: Probability of a base row.
        work: Max steps of work, shared by the rows.

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
