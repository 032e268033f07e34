"""Ways to extend a running network by a query: the configurations that are compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from benchmarks._argus.moved_queries import Moves
from federated_optimizer import plan
from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.testing_network import Network
from streamsql.binder import BoundQuery, bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.syntax import Query, parse_statement
from streamsql.wire.fragments import FragmentBundle

OFF = Strategy.OFF.value
WANTED_TWICE = "all, nodes on demand"
"""The product's default: a part becomes a node of its own when a second query wants it.

The first one moves onto it where that saves more than it costs.
"""


Counted = Callable[[str], int | None]
"""Returns how many rows the result of a run has; None where nobody has counted them."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The nodes and fragments that a new query adds to the network.

    Attributes:
        bundles: To install, in this order; one may take the place of a version that runs.
        run: The name of the run whose rows are the answer.
        moved: Runs that older queries have left, and the runs of `bundles` that they read instead.
        ended: Runs that nobody needs any more.
    """

    bundles: tuple[FragmentBundle, ...]
    run: str
    moved: Mapping[str, str] = field(default_factory=dict)
    ended: tuple[str, ...] = ()


class Registry(Protocol):
    """The index of the queries that run."""

    def register(self, text: str) -> Registered:
        """Return what a query's text adds to the network."""
        ...


class Unshared:
    """Each query has fragments of its own."""

    def __init__(self, catalog: Catalog, planning: Planning, _counted: Counted) -> None:
        self._catalog, self._planning = catalog, planning
        self._count = 0

    def register(self, text: str) -> Registered:
        """Return the whole plan of a query."""
        self._count += 1
        name = f"q{self._count}"
        bound = _bound(text, self._catalog)
        known = self._planning
        made = plan(bound, known.topology, query=name, statistics=known.statistics)
        return Registered((made,), name)


class Shared:
    """Queries read what others have computed; rows are known as the product knows them.

    Where nodes are made on demand, older queries move onto them.
    """

    def __init__(
        self,
        catalog: Catalog,
        planning: Planning,
        counted: Counted,
        *,
        strategy: Strategy,
        materialize: Materialize,
    ) -> None:
        self._catalog, self._planning, self._counted = catalog, planning, counted
        sharing = Sharing(ComputationIndex(), strategy, materialize)
        self._network = Network(planning, sharing)
        self._moves = None if sharing.is_eager else Moves(self._network, planning)

    def register(self, text: str) -> Registered:
        """Return what is new, and what changes for others."""
        rows = rows_of(self._counted, self._planning)
        self._network.sharing = replace(self._network.sharing, rows=rows)
        change = self._network.register(_bound(text, self._catalog), text)
        nodes = () if change.registration is None else change.registration.nodes
        made = self._network.reads[change.query]
        if self._moves is None or not nodes:
            return Registered(change.deploy, made)
        moves = list(self._moves.after(nodes, made))
        return Registered(
            (*change.deploy, *(bundle for _run, move in moves for bundle in move.deploy)),
            self._network.reads[change.query],
            {run: move.query for run, move in moves},
            tuple(run for _run, move in moves for run in move.withdraw),
        )


def rows_of(counted: Counted, planning: Planning) -> Callable[[Offer], float]:
    """Return what tells how many rows an offer has: counted of results, estimated of others."""
    known: dict[Offer, float] = {}

    def rows(offer: Offer) -> float:
        if offer not in known:
            known[offer] = _rows(offer)
        return known[offer]

    def _rows(offer: Offer) -> float:
        is_result = bool(offer.fragment) and not offer.bundle.fragment(offer.fragment).consumer
        told = counted(offer.run) if is_result else None
        told = offer.told if told is None else told
        return estimate(offer.plan, planning.statistics).rows if told is None else float(told)

    return rows


def _bound(text: str, catalog: Catalog) -> BoundQuery:
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise TypeError(f"{text!r} is no query")
    return bind_query(statement, catalog)


CONFIGURATIONS: Mapping[str, Callable[[Catalog, Planning, Counted], Registry]] = {
    OFF: Unshared,
    **{
        strategy.value: partial(Shared, strategy=strategy, materialize=Materialize.EAGER)
        for strategy in (
            Strategy.NO_JOINS,
            Strategy.MATCH_PLAN_WITHOUT_CANONICAL_FORMS,
            Strategy.NO_CANONICAL_FORMS,
            Strategy.MATCH_PLAN,
            Strategy.ALL,
        )
    },
    WANTED_TWICE: partial(Shared, strategy=Strategy.ALL, materialize=Materialize.WANTED_TWICE),
}
"""By name: alone, the five of the thesis, and the product's default."""
