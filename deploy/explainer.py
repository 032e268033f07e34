"""The stream engine as what explains rows, for coordinators and local sessions."""

from collections.abc import Callable

from federated_optimizer.coordinator.explanations import (
    Chance,
    ConfidencesAnswer,
    Contents,
    WhatIfAnswer,
    WhyAnswer,
)
from stream_engine.explanation.confidences import confidences
from stream_engine.explanation.what_if import what_if_deleted
from stream_engine.explanation.why import why
from streamsql.algebra.operators import Plan
from streamsql.data.types import Row


class EngineExplainer:
    """Implements `RowExplainer`."""

    def why(
        self, plan: Plan, contents: Contents, row: Row, *, limit: int, chance: Chance | None
    ) -> WhyAnswer:
        """See `RowExplainer`."""
        return why(plan, contents, row, limit=limit, chance=chance)

    def confidences(
        self, plan: Plan, contents: Contents, *, limit: int, chance: Chance
    ) -> ConfidencesAnswer:
        """See `RowExplainer`."""
        return confidences(plan, contents, limit=limit, chance=chance)

    def what_if_deleted(
        self, plan: Plan, contents: Contents, chosen: Callable[[str, Row], bool]
    ) -> WhatIfAnswer:
        """See `RowExplainer`."""
        return what_if_deleted(plan, contents, chosen)
