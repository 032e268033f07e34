"""EXPLAIN, and questions about rows, in a local session: the coordinator's code on local facts."""

import json

from deploy.explainer import EngineExplainer
from deploy.session.engines import LocalPlanner
from deploy.session.history import History
from deploy.session.session_results import Result
from federated_optimizer.coordinator.contract.coordinator_model import StatementResult
from federated_optimizer.coordinator.explaining.explaining import explained
from federated_optimizer.coordinator.explaining.explanation_text import (
    WhatIfReport,
    confidence_answer,
    refuse_no_deletion,
    subjects_of,
    why_answer,
)
from federated_optimizer.coordinator.explaining.known_base_rows import BaseRows, lost_rows
from streamsql.algebra.operators import Plan, Window
from streamsql.algebra.row_explanations import leaves_of
from streamsql.binder import GatewayDeletion, bind_confidence, bind_what_if, bind_why
from streamsql.catalog.catalog import Catalog
from streamsql.errors import UnsupportedError
from streamsql.reference.reference_database import contents, windowed
from streamsql.syntax import Explain, ExplainConfidence, ExplainFormat, ExplainWhatIf, ExplainWhy

Question = ExplainWhy | ExplainWhatIf | ExplainConfidence


def explain(statement: Explain, catalog: Catalog, sites: int) -> Result:
    """Return the plan of a statement, with fragments placed on so many simulated sites.

    Raises:
        QueryError: The statement is wrong, or has no plan.
    """
    if statement.analyze:
        raise UnsupportedError(
            "EXPLAIN ANALYZE needs a federation", span=statement.span, code="needs_federation"
        )
    found = explained(statement, catalog, LocalPlanner(catalog, sites), ())
    return Result(text=_text(found, statement.format), warnings=found.warnings)


def answer(question: Question, catalog: Catalog, history: History) -> Result:
    """Return the answer to a question about rows at the end of a history.

    Raises:
        FederationError: The question is wrong, or takes too much work.
    """
    found = _answer(EngineExplainer(), question, catalog, history)
    return Result(text=_text(found, question.format), data=found.data)


def _answer(
    engine: EngineExplainer, question: Question, catalog: Catalog, history: History
) -> StatementResult:
    match question:
        case ExplainWhy():
            why = bind_why(question, catalog)
            return why_answer(engine, why, _base_rows(why.query.plan, history))
        case ExplainConfidence():
            sure = bind_confidence(question, catalog)
            return confidence_answer(engine, sure, _base_rows(sure.query.plan, history))
        case ExplainWhatIf():
            return _what_if(engine, question, catalog, history)


def _what_if(
    engine: EngineExplainer, question: ExplainWhatIf, catalog: Catalog, history: History
) -> StatementResult:
    asked = bind_what_if(question, catalog)
    if any(isinstance(loss, GatewayDeletion) for loss in asked.deletions):
        raise UnsupportedError(
            "a local session has no gateways: no gateway owns a base row",
            span=question.span,
            hint="ask in a federation, or name the rows: DELETE link('a', 'b'), DELETE NODE 'a'",
            code="needs_federation",
        )
    plan = asked.query.plan
    base = _base_rows(plan, history)
    report = WhatIfReport(subjects_of(asked.deletions))
    change = engine.what_if_deleted(plan, base.contents, lost_rows(base, asked.deletions))
    report.add("", asked.query.schema, change)
    refuse_no_deletion(report)
    return report.result(())


def _base_rows(plan: Plan, history: History) -> BaseRows:
    """Return what every scan and window of a plan holds at the end of a history."""
    rows = {
        leaf: windowed(leaf, history.database, history.now)
        if isinstance(leaf, Window)
        else [row for _, row in contents(leaf, history.database, history.now)]
        for leaf in leaves_of(plan)
    }
    return BaseRows(rows, {}, ())


def _text(found: StatementResult, form: ExplainFormat) -> str:
    if form == ExplainFormat.JSON:
        return json.dumps(found.data, indent=2, ensure_ascii=False)
    return found.text
