"""The input and output of a registration."""

from collections.abc import Callable
from dataclasses import dataclass

from federated_optimizer.alternatives.recursion.recursions import MUCH, Foresee
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import search_of
from federated_optimizer.search.choosing import NOTHING_RUNS, Running, Search
from federated_optimizer.sharing.computation_index import (
    Allowed,
    ComputationIndex,
    Found,
    Rows,
    rows_told,
)
from federated_optimizer.sharing.strategy import Materialize, Strategy
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN, Statistics
from streamsql.algebra.metrics import BY_BYTES, Metric
from streamsql.algebra.operators import Plan
from streamsql.binder import BoundQuery
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True)
class Sharing:
    """The rules of sharing, and the index of what runs.

    Attributes:
        index: Of the offers of all runs.
        strategy: The parts that are looked for.
        materialize: When a part becomes a node.
        allowed: Returns whether the query may read an offer.
        rows: Returns how many rows an offer has.
        makes_nodes: False where only what is there may be read, as for a query that runs already.
        moves: True if running queries move to what costs less: a node that they will read may be
            made.
    """

    index: ComputationIndex
    strategy: Strategy = Strategy.ALL
    materialize: Materialize = Materialize.WANTED_TWICE
    allowed: Allowed = lambda _offer: True
    rows: Rows = rows_told
    makes_nodes: bool = True
    moves: bool = True

    @property
    def is_eager(self) -> bool:
        """True if parts become nodes at once."""
        return self.materialize == Materialize.EAGER


@dataclass(frozen=True, slots=True)
class Planning:
    """Everything that plans rest on, as for `planning.plan`.

    `reads` are the runs whose results the query reads now: it goes on to, whatever that costs.
    `search` returns the search among the plans of a query. Tests that plan the same queries
    thousands of times remember them.
    """

    topology: Topology
    statistics: Statistics = NOTHING_KNOWN
    metric: Metric = BY_BYTES
    foresee: Foresee | None = None
    running: Running = NOTHING_RUNS
    version: int = 1
    text: str = ""
    replanned: bool = False
    much: float = MUCH
    reads: frozenset[str] = frozenset()
    search: Callable[[BoundQuery, Topology, Statistics, Metric], Search] = search_of


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that has to run before those that read it.

    Attributes:
        plan: What it computes, over sources.
        bundle: Of its run.
        widens: The run that it takes the place of, under that name and its next version; empty:
            none. The columns of that run stay in their places, and new ones follow.
        tells: The relations that queries of others read whose columns it has.
    """

    plan: Plan
    bundle: FragmentBundle
    widens: str = ""
    tells: frozenset[Read] = frozenset()


@dataclass(frozen=True, slots=True)
class Registration:
    """A query over what runs.

    Attributes:
        nodes: New ones, in the order in which they have to be deployed.
        bundle: Of the query.
        logical: The query's plan over sources.
        used: The offers that it reads, with what it does to their rows.
        equal: The run whose result is the query's, with the same columns and names; empty: none.
            Then `bundle` is that run's, and there is nothing to deploy.
    """

    nodes: tuple[NewNode, ...]
    bundle: FragmentBundle
    logical: Plan
    used: tuple[Found, ...]
    equal: str = ""
