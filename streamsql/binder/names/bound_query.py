"""A query as the binder hands it on."""

from dataclasses import dataclass

from streamsql.algebra.metrics import Metric
from streamsql.algebra.operators import Plan, SortKey
from streamsql.algebra.streams import Emit
from streamsql.catalog.read_gate import Read
from streamsql.data.schema import Schema


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query ready to be optimized and run.

    Attributes:
        warnings: What its author should know before it runs.
        order: How its result is shown, by output columns; the relation itself has no order.
        reads: The relations that it names, and those that its views name.
        backfill: Whether its windows begin with what the lake has.
        asked: Number of the plan that it asks for; 0: none.
        shared: Whether sites may run it once for all equal queries.
        adapts: Whether its plan may change while it runs.
        metric: By what its plans are compared; None: as the system says.
        heuristics: Whether plans are left out that seldom pay; None: as the system says.
        whole_changes: Whether the changes of one reading must arrive together, because each change
            of the answer acts on the world.
    """

    plan: Plan
    schema: Schema
    emit: Emit
    warnings: tuple[str, ...]
    order: tuple[SortKey, ...] = ()
    reads: frozenset[Read] = frozenset()
    backfill: bool = True
    asked: int = 0
    shared: bool = True
    adapts: bool = True
    metric: Metric | None = None
    heuristics: bool | None = None
    whole_changes: bool = False
