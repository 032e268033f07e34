"""EXPLAIN WHY, WHAT IF and CONFIDENCE in a local session, in the words the coordinator uses.

The coordinator's modules are imported where they are used, as in `descriptions`.
"""

import json
from collections.abc import Sequence
from typing import Any

from deploy.session.history import History
from deploy.session.result import Result
from streamsql.algebra.operators import Plan, Scan, Window
from streamsql.binder import BoundLoss, GatewayDeletion, bind_confidence, bind_what_if, bind_why
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import Row
from streamsql.errors import UnsupportedError
from streamsql.reference.database import contents, windowed
from streamsql.syntax import ExplainConfidence, ExplainWhatIf, ExplainWhy

Question = ExplainWhy | ExplainWhatIf | ExplainConfidence


def answered(question: Question, catalog: Catalog, history: History) -> Result:
    """Return the answer to a question about rows at the end of a history.

    Raises:
        FederationError: The question is wrong, or takes too much work.
    """
    found = _answer(question, catalog, history)
    if question.format == "json":
        text = json.dumps(found.data, indent=2, ensure_ascii=False)
        return Result(text=text, data=found.data)
    return Result(text=found.text, data=found.data)


def _answer(question: Question, catalog: Catalog, history: History) -> Any:
    from deploy.explainer import EngineExplainer  # noqa: PLC0415
    from federated_optimizer.coordinator.explaining.chances import chance_by, column_text  # noqa: PLC0415
    from federated_optimizer.coordinator.explaining.explaining_rows import (  # noqa: PLC0415
        DEFAULT_CONFIDENCES,
        refuse_no_deletion,
    )
    from federated_optimizer.coordinator.explaining.explanation_text import (  # noqa: PLC0415
        WhatIfReport,
        confidence_result,
        subjects_of,
        why_result,
    )
    from federated_optimizer.coordinator.explaining.losses import lost_by_values  # noqa: PLC0415

    engine = EngineExplainer()
    match question:
        case ExplainWhy():
            why = bind_why(question, catalog)
            plan, column = why.query.plan, why.confidence
            chance = chance_by(column) if column is not None else None
            rows = _rows(plan, history)
            answer = engine.why(plan, rows, why.row, limit=why.limit, chance=chance)
            using = column_text(column) if column is not None else ""
            return why_result(why.query.schema, why.row, answer, using, ())
        case ExplainWhatIf():
            what_if = bind_what_if(question, catalog)
            plan = what_if.query.plan
            refuse_gateways(what_if.deletions, question)
            report = WhatIfReport(subjects_of(what_if.deletions))
            rows = _rows(plan, history)
            change = engine.what_if_deleted(plan, rows, lost_by_values(rows, what_if.deletions))
            report.add("", what_if.query.schema, change)
            refuse_no_deletion(report)
            return report.result(())
        case ExplainConfidence():
            sure = bind_confidence(question, catalog)
            plan = sure.query.plan
            found = engine.confidences(
                plan,
                _rows(plan, history),
                limit=sure.limit or DEFAULT_CONFIDENCES,
                chance=chance_by(sure.using),
            )
            return confidence_result(sure.query.schema, found, column_text(sure.using), ())


def refuse_gateways(losses: Sequence[BoundLoss], question: ExplainWhatIf) -> None:
    """Refuse the death of a gateway: a session has none.

    Raises:
        UnsupportedError: One is asked for.
    """
    if any(isinstance(loss, GatewayDeletion) for loss in losses):
        raise UnsupportedError(
            "a local session has no gateways: no gateway owns a base row",
            span=question.span,
            hint="ask in a federation, or name the rows: DELETE link('a', 'b'), DELETE NODE 'a'",
            code="needs_federation",
        )


def _rows(plan: Plan, history: History) -> dict[Scan | Window, list[Row]]:
    """Return what every scan and window of a plan holds at the end of a history."""
    from federated_optimizer.coordinator.explaining.known_base_rows import leaves_of  # noqa: PLC0415

    return {
        leaf: windowed(leaf, history.database, history.now)
        if isinstance(leaf, Window)
        else [row for _, row in contents(leaf, history.database, history.now)]
        for leaf in leaves_of(plan)
    }
