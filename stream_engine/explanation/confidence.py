"""How probable a row is when base rows hold independently, each with a probability of its own.

Exact where the row's decision diagram fits: one pass over it, from the constants up, in which a
node is worth p times its high child plus 1 - p times its low one. Otherwise a lower bound, from
the supports that were found.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from math import log
from typing import Any

from stream_engine.explanation.budget import Budget, ExplanationLimitError
from stream_engine.explanation.cheapest import Part, costs, derivation
from stream_engine.explanation.derivation_trees import DerivationGraph, Kind
from stream_engine.explanation.support_sets import Supports
from stream_engine.provenance.annotation import AnnotationTooWideError
from stream_engine.provenance.encodings import encoding_named
from streamsql.algebra.row_explanations import Confidence
from streamsql.errors import RecursionLimitError

MAX_NODES = 50_000
"""Inner nodes of a row's decision diagram."""

FIRST_TOKENS = 16
MAX_DERIVATIONS = 100
"""Max derivations whose tokens a lower bound covers."""

_TOO_LARGE = (AnnotationTooWideError, ExplanationLimitError, RecursionLimitError)


def of_supports(supports: Iterable[frozenset[int]], chances: Mapping[int, float]) -> float:
    """Return the probability that all tokens of some support hold.

    Args:
        supports: Sets of tokens.
        chances: Probability of every token that is not certain.

    Raises:
        AnnotationTooWideError: The decision diagram is too large.
        DeploymentError: The library of decision diagrams is not installed.
    """
    encoding = _encoding()
    diagram = encoding.false
    for support in supports:
        part = encoding.true
        for token in sorted(support & chances.keys()):
            part = encoding.conjoin(part, encoding.of_token(token))
        diagram = encoding.disjoin(diagram, part)
    return _weighed(encoding, diagram, chances)


def of_derivations(
    graph: DerivationGraph,
    goal: int,
    chances: Mapping[int, float],
    budget: Budget,
    among: Container[int] | None = None,
) -> float:
    """Return the probability that a node holds, from its derivations.

    `chances` are the probabilities of the tokens that are not certain. With `among` all other
    uncertain tokens are taken to be absent, which gives a lower bound.

    Raises:
        AnnotationTooWideError: A decision diagram is too large.
        ExplanationLimitError: It takes too much work.
        DeploymentError: The library of decision diagrams is not installed.
    """
    encoding = _encoding()
    part = graph.below(goal)  # nearest first: a good order of variables in networks
    values: dict[int, Any] = dict.fromkeys(part, encoding.false)
    parents: dict[int, list[int]] = {}
    waiting: dict[int, None] = {}
    for node in part:
        for child in graph.children[node]:
            parents.setdefault(child, []).append(node)
    for node in part:
        token = graph.tokens[node]
        if graph.kinds[node] == Kind.TOKEN and token in chances:
            if among is None or token in among:
                values[node] = encoding.of_token(token)
        elif graph.kinds[node] == Kind.TOKEN or not graph.children[node]:
            values[node] = encoding.true if graph.kinds[node] != Kind.OR else encoding.false
        if not encoding.is_false(values[node]):
            waiting.update(dict.fromkeys(parents.get(node, ())))
    while waiting:
        node = next(iter(waiting))
        del waiting[node]
        value = _combined(encoding, graph.kinds[node], [values[c] for c in graph.children[node]])
        size = encoding.size(value)
        budget.spend(10 + size, "building the decision diagram")
        if size > MAX_NODES:
            raise AnnotationTooWideError(values[node])
        if not encoding.implies(value, values[node]):
            values[node] = value
            waiting.update(dict.fromkeys(parents.get(node, ())))
    return _weighed(encoding, values[goal], chances)


def lower_bound(
    graph: DerivationGraph, goal: int, chances: Mapping[int, float], budget: Budget
) -> float:
    """Return a lower bound of a node's probability: exact for a growing part of its tokens.

    The part grows by the most probable derivations, those of tokens used before less and less, as
    long as decision diagrams fit.

    Raises:
        DeploymentError: The library of decision diagrams is not installed.
    """
    part = Part(graph, goal, dict(enumerate(graph.children)))
    used: Counter[int] = Counter()
    best, tried, wanted = 0.0, 0, FIRST_TOKENS

    def weight(token: int) -> float | None:
        chance = chances.get(token, 1.0)
        return None if chance <= 0.0 else (0.01 - log(chance)) * (1 + used[token])

    try:
        for _ in range(MAX_DERIVATIONS):
            found = costs(part, weight)
            if goal not in found:
                break
            used.update(derivation(part, found))
            budget.spend(len(found), "looking for probable derivations")
            if len(used) >= wanted:
                best = max(best, of_derivations(graph, goal, chances, budget.part(0.4), used))
                tried, wanted = len(used), wanted * 3 // 2
        if len(used) > tried:
            best = max(best, of_derivations(graph, goal, chances, budget.part(0.4), used))
    except _TOO_LARGE:
        return best
    return best


def _combined(encoding: Any, kind: Kind, parts: list[Any]) -> Any:
    if kind == Kind.AND:
        value = encoding.true
        for part in parts:
            value = encoding.conjoin(value, part)
        return value
    value = encoding.false
    for part in parts:
        value = encoding.disjoin(value, part)
    return value


def confidence(
    graph: DerivationGraph,
    goal: int,
    supports: Supports,
    chances: Mapping[int, float],
    budget: Budget,
) -> Confidence:
    """Return the probability that a row holds, exact or a lower bound.

    Args:
        graph: Its derivations.
        goal: Its node.
        supports: Its minimal supports, as far as found.
        chances: Probability of every token that is not certain.
        budget: Bounds the work on derivations when there are too many supports.

    Raises:
        DeploymentError: The library of decision diagrams is not installed.
    """
    try:
        if supports.complete:
            return Confidence(of_supports(supports.sets, chances), True)
        return Confidence(of_derivations(graph, goal, chances, budget), True)
    except _TOO_LARGE:
        pass  # fewer of its supports give a lower bound
    best = lower_bound(graph, goal, chances, budget)
    known = list(supports.sets)
    while known:
        try:
            best = max(best, of_supports(known, chances))
            break
        except _TOO_LARGE:
            known = known[: len(known) // 2]
    return Confidence(best, False, "there are more combinations than the budget allows to weigh")


def _weighed(encoding: Any, diagram: Any, chances: Mapping[int, float]) -> float:
    """Return the probability of a diagram in one pass over its nodes."""
    if encoding.is_false(diagram):
        return 0.0
    worth = [0.0, 1.0]
    for token, low, high in encoding.nodes(diagram):
        chance = chances[token]
        worth.append(chance * worth[high] + (1.0 - chance) * worth[low])
    return worth[-1]


def _encoding() -> Any:
    return encoding_named("bdd", width=MAX_NODES // 32)
