"""The parts of a plan that are nodes where these are made eagerly: joins, and work of the base."""

from collections.abc import Iterator

from federated_optimizer.alternatives.pieces import BasePiece, NetworkPiece
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.network.topology import Topology
from federated_optimizer.sharing.forms.blocks import block_of
from federated_optimizer.sharing.node_offers import is_node_leaf
from federated_optimizer.sharing.run_offers import is_selection_of_sources
from federated_optimizer.statistics.passing_rows import passed
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Filter, Fixpoint, Plan, Project

SELECTIVE = 0.3
"""Share of rows that a selection lets through at most to be a node: as measured, else estimated."""


def eager_parts(plan: Plan, topology: Topology, statistics: Statistics) -> Iterator[Plan]:
    """Yield joins with what stands right above them, other operators, and selective selections.

    Each comes after those below it. Joins are yielded wherever they are computed, since gateways
    that join for a node send its rows. Of the rest there is what the base computes; the last
    operator is left out, since its rows are the result, unless a condition stands above it.
    Selections of sources are left out, too.

    Args:
        plan: Its leaves are sources and rows of other runs.
        topology: The sites.
        statistics: By which selections are measured, else estimated.
    """
    return _Parts(topology, statistics).of(plan, is_last=True)


class _Parts:
    def __init__(self, topology: Topology, statistics: Statistics) -> None:
        self._topology, self._statistics = topology, statistics

    def of(self, plan: Plan, *, is_last: bool) -> Iterator[Plan]:
        operator, is_filtered = plan, False
        while isinstance(operator, Filter | Project):
            is_filtered |= isinstance(operator, Filter)
            operator = operator.input
        # A part of a recursion that reads the recursion itself is no relation.
        for child in () if isinstance(operator, Fixpoint) else operator.inputs:
            yield from self.of(child, is_last=False)
        if is_node_leaf(operator):
            if is_filtered and not is_last and self._is_selective(plan):
                yield plan
        elif not operator.inputs or is_selection_of_sources(plan):
            return  # gateways compute it
        elif len(block_of(plan).inputs) > 1:  # a join
            yield plan
        elif (is_filtered or not is_last) and self._is_at_base(operator):
            yield operator

    def _is_at_base(self, part: Plan) -> bool:
        piece = Cutter(self._topology, self._statistics).piece(part)
        return isinstance(piece, BasePiece | NetworkPiece)

    def _is_selective(self, plan: Plan) -> bool:
        share = 1.0
        while isinstance(plan, Filter | Project):
            if isinstance(plan, Filter):
                share *= passed(plan, self._statistics).share
            plan = plan.input
        return share <= SELECTIVE
