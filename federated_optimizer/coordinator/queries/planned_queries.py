"""A planned query: its bundle, and what it computes."""

from dataclasses import dataclass

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.network.shareable import REFUSED, why_alone
from streamsql.algebra.operators import Plan, SortKey
from streamsql.binder import BoundQuery
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True)
class Planned:
    """A bundle, what its author should know, how its result is shown, and what it reads.

    Attributes:
        alone: Why only one query can read the bundle, in words; empty: any number can.
        logical: What it computes: the normalized plan over sources, before anything of it is read
            from other runs; None: nobody has to know.
    """

    bundle: FragmentBundle
    warnings: tuple[str, ...]
    order: tuple[SortKey, ...] = ()
    reads: frozenset[Read] = frozenset()
    alone: str = ""
    logical: Plan | None = None

    @classmethod
    def of(
        cls, bound: BoundQuery, bundle: FragmentBundle, logical: Plan | None = None
    ) -> "Planned":
        """Return a bound query with its bundle; `logical` is its normalized plan."""
        alone = why_alone(bundle) if bound.shared else REFUSED
        warnings = list(bound.warnings)
        if bound.asked and bundle.alternative not in (0, bound.asked):
            warnings.append(
                f"it asks for plan {bound.asked}, which there is not with the sites and "
                f"definitions of now: it runs plan {bundle.alternative}"
            )
        return cls(bundle, tuple(warnings), bound.order, bound.reads, alone, logical)


def planned_of(query: RunningQuery) -> Planned:
    """Return what a query runs as a plan."""
    return Planned(
        query.bundle, query.warnings, query.order, query.reads, query.alone, query.logical
    )
