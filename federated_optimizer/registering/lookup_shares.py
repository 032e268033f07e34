"""Shares of looking rows up: readers that are found by one value pay for it together.

A site looks each row of a fragment up once, for all readers that are found by the value of a
column, or of another expression. So the price of that is one reader's alone only as long as there
is no other.
"""

from collections.abc import Iterator
from itertools import islice

from federated_optimizer.sharing.computation_index import ComputationIndex, Found
from federated_optimizer.sharing.forms.blocks import block_of
from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.operators import Plan
from streamsql.wire.bundles.needed_rows import needed_rows
from streamsql.wire.bundles.reader_conditions import RowCondition, Way, ways
from streamsql.wire.fragments import Feed, FragmentBundle

MAX_ASKED = 50
"""Readers of a run, and offers over the same rows, that are looked at."""

Lookup = tuple[str, str, Way]
"""Rows of a run's fragment are found in a way."""

_Ways = tuple[str, str, frozenset[Way]]
"""Rows of a run's fragment are found in several ways: one for each branch of a condition."""


class LookupShares:
    """The shares of one query, each computed once.

    Args:
        index: Of the offers of all runs.
    """

    def __init__(self, index: ComputationIndex) -> None:
        self._index = index
        self._shares: dict[_Ways, float] = {}

    def of(self, found: Found, condition: RowCondition | None) -> float:
        """Return the share of looking rows of an offer up that a query pays.

        Nothing if they are looked up in all its ways in any case. Else queries that differ from it
        in constants alone count as others that will be: otherwise each of them would compute its
        part anew, because it would be the first.
        """
        if condition is None:
            return 1.0
        run, fragment = found.offer.run, found.offer.fragment
        key = run, fragment, ways(condition)
        if key not in self._shares:
            missing = {(run, fragment, way) for way in ways(condition)}
            for bundle in islice(self._index.readers(run), MAX_ASKED):
                missing.difference_update(lookups(bundle))
            self._shares[key] = 1.0 / (1 + self._alike(found.wanted)) if missing else 0.0
        return self._shares[key]

    def of_feed(self, feed: Feed, condition: RowCondition) -> float:
        """Return the share of looking up what a bundle reads; all of it if `of` was not asked."""
        return self._shares.get((feed.run, feed.source, ways(condition)), 1.0)

    def _alike(self, wanted: Plan) -> int:
        """Return how many runs have a result that differs from a plan in constants alone."""
        form = _without_constants(wanted)
        offers = islice(self._index.with_inputs(wanted), MAX_ASKED)
        return len({offer.run for offer in offers if _without_constants(offer.plan) == form})


def lookups(bundle: FragmentBundle) -> Iterator[Lookup]:
    """Yield how sites find what a bundle needs of the rows that it reads of other runs."""
    plans = [fragment.plan for fragment in bundle.own]
    for feed in bundle.feeds:
        schema = bundle.fragment(feed.fragment).plan.schema
        condition = needed_rows(plans, feed.fragment, schema).condition
        if condition is not None:
            for way in ways(condition):
                yield feed.run, feed.source, way


def _without_constants(plan: Plan) -> frozenset[str]:
    """Return the predicates of a plan's block without the constants in them."""
    return frozenset(repr(_emptied(predicate)) for predicate in block_of(plan).predicates)


def _emptied(expression: Expression) -> Expression:
    match expression:
        case Literal(dtype=dtype):
            return Literal(None, dtype)
        case Call(function=name, arguments=arguments, dtype=dtype):
            return Call(name, tuple(map(_emptied, arguments)), dtype)
        case _:
            return expression
