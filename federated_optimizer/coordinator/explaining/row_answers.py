"""Answers to questions about rows, from the base rows and the engine that reasons over them."""

from federated_optimizer.coordinator.contract.coordinator_model import StatementResult
from federated_optimizer.coordinator.explaining.chances import chance_by, column_text
from federated_optimizer.coordinator.explaining.explanation_text import (
    WhatIfReport,
    confidence_result,
    why_result,
)
from federated_optimizer.coordinator.explaining.known_base_rows import BaseRows
from federated_optimizer.coordinator.explaining.row_explainer import RowExplainer
from streamsql.binder import BoundConfidence, BoundWhy
from streamsql.errors import BindingError

DEFAULT_CONFIDENCES = 100
"""Rows whose probability is computed when no number is given."""


def why_answer(engine: RowExplainer, asked: BoundWhy, base: BaseRows) -> StatementResult:
    """Return what a row rests on.

    Raises:
        FederationError: It takes too much work.
    """
    plan, column = asked.query.plan, asked.confidence
    chance = chance_by(column) if column is not None else None
    answer = engine.why(plan, base.contents, asked.row, limit=asked.limit, chance=chance)
    using = column_text(column) if column is not None else ""
    return why_result(asked.query.schema, asked.row, answer, using, base.notes)


def confidence_answer(
    engine: RowExplainer, asked: BoundConfidence, base: BaseRows
) -> StatementResult:
    """Return how probable the rows of a query are.

    Raises:
        FederationError: It takes too much work.
    """
    answer = engine.confidences(
        asked.query.plan,
        base.contents,
        limit=asked.limit or DEFAULT_CONFIDENCES,
        chance=chance_by(asked.using),
    )
    return confidence_result(asked.query.schema, answer, column_text(asked.using), base.notes)


def refuse_no_deletion(report: WhatIfReport) -> None:
    """Refuse a question about base rows that are not there.

    Raises:
        BindingError: None was meant.
    """
    if report.deletes_nothing:
        raise BindingError(
            "no base row has these values, so nothing would change",
            hint="query the source to see its rows",
        )
