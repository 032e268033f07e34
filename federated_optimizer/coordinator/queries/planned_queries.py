"""A planned query: its bundle, and what it computes."""

from dataclasses import dataclass, replace

import msgspec

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.network.shareable import REFUSED, why_alone
from streamsql.algebra.operators import Plan, SortKey
from streamsql.binder import BoundQuery
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A run that has to be there before a query that reads it.

    Attributes:
        plan: What it computes, over sources.
        bundle: Under a provisional name.
        reads: The relations that somebody has to be allowed to read for its rows.
        widens: The node in whose place it is, with more columns; empty: none.
        tells: The relations that the queries read that it is made for.
    """

    plan: Plan
    bundle: FragmentBundle
    reads: frozenset[Read]
    widens: str = ""
    tells: frozenset[Read] = frozenset()


@dataclass(frozen=True, slots=True)
class Planned:
    """A bundle, what its author should know, how its result is shown, and what it reads.

    Attributes:
        alone: Why only one query can read the bundle, in words; empty: any number can.
        logical: What it computes: the normalized plan over sources, before anything of it is read
            from other runs; None: nobody has to know.
        nodes: New ones that it reads, each after those that it reads itself.
        whole_changes: As of `BoundQuery`.
    """

    bundle: FragmentBundle
    warnings: tuple[str, ...]
    order: tuple[SortKey, ...] = ()
    reads: frozenset[Read] = frozenset()
    alone: str = ""
    logical: Plan | None = None
    nodes: tuple[PlannedNode, ...] = ()
    whole_changes: bool = False

    @classmethod
    def of(
        cls,
        bound: BoundQuery,
        bundle: FragmentBundle,
        logical: Plan | None = None,
        nodes: tuple[PlannedNode, ...] = (),
    ) -> "Planned":
        """Return a bound query with its bundle, its normalized plan, and new nodes it reads."""
        alone = why_alone(bundle) if bound.shared else REFUSED
        warnings = list(bound.warnings)
        if bound.asked and bundle.alternative not in (0, bound.asked):
            warnings.append(
                f"it asks for plan {bound.asked}, which there is not with the sites and "
                f"definitions of now: it runs plan {bundle.alternative}"
            )
        told = (tuple(warnings), bound.order, bound.reads, alone, logical)
        return cls(bundle, *told, nodes, bound.whole_changes)

    def named(self, run: str) -> "Planned":
        """Return it with the bundle as that of a run."""
        return replace(self, bundle=msgspec.structs.replace(self.bundle, query=run))


def planned_of(query: RunningQuery) -> Planned:
    """Return what a query runs as a plan."""
    told = (query.warnings, query.order, query.reads, query.alone, query.logical)
    return Planned(query.bundle, *told, whole_changes=query.whole_changes)


def offered_plan(query: RunningQuery) -> Plan | None:
    """Return what others may read of a query's run; None: nothing, or nobody knows."""
    return None if query.alone or not query.gathered else query.logical
