"""The stream engine as what explains rows and plans, for coordinators and local sessions."""

from typing_extensions import override

from federated_optimizer.coordinator.explaining.row_explainer import RowExplainer
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from stream_engine.explanation.what_if import what_if_deleted
from stream_engine.explanation.why import confidences, why
from stream_engine.recursion.foreseen import foreseen
from streamsql.algebra.operators import Fixpoint, Plan
from streamsql.algebra.row_explanations import Chance, Confidences, Contents, WhatIf, Why
from streamsql.data.types import Row


class EngineExplainer(RowExplainer):
    """Explains with the functions of the stream engine."""

    @override
    def foresee(self, node: Fixpoint, sites: tuple[str, ...]) -> str:
        return foreseen(node, sites)

    @override
    def why(
        self, plan: Plan, contents: Contents, row: Row, *, limit: int, chance: Chance | None
    ) -> Why:
        return why(_simplified(plan), contents, row, limit=limit, chance=chance)

    @override
    def confidences(
        self, plan: Plan, contents: Contents, *, limit: int, chance: Chance
    ) -> Confidences:
        return confidences(_simplified(plan), contents, limit=limit, chance=chance)

    @override
    def what_if_deleted(self, plan: Plan, contents: Contents, lost: Contents) -> WhatIf:
        return what_if_deleted(_simplified(plan), contents, lost)


def _simplified(plan: Plan) -> Plan:
    """Return a plan of the same rows that computes nothing which is not shown.

    A row then rests on no more than it needs: the path of a cheapest path that shows only its cost
    is left out, so that other paths of that cost count as well.
    """
    return run_rules(run_rules(plan, LOGICAL_RULES), WIDTH_RULES)
