"""SHOW, DESCRIBE and EXPLAIN in a local session, in the words the coordinator uses.

The coordinator's modules are imported where they are used: they load a database library, which
most scripts do not need.
"""

import json

from deploy.session.alarms import LocalAlarms
from deploy.session.engines import QUERY, local_topology
from deploy.session.refreshes import LocalRefreshes
from deploy.session.result import Result
from federated_optimizer import plan as place_plan
from federated_optimizer.placement import explain_bundle
from stream_engine.recursion.foreseen import foreseen
from streamsql.algebra.explain import explain_plan
from streamsql.algebra.plan_graph import plan_dot
from streamsql.binder import Creating, bind_query, define
from streamsql.binder.statements.nullable import left_out
from streamsql.binder.statements.validate import validation_report
from streamsql.catalog.catalog import Catalog
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import BindingError, UnsupportedError
from streamsql.syntax.statements import (
    CreateAlarm,
    CreateView,
    Describe,
    Explain,
    Query,
    Show,
    Subscribe,
)

_LISTED = ("sources", "tables", "views", "functions", "alarms", "displays")


def listed(
    statement: Show, catalog: Catalog, alarms: LocalAlarms, refreshes: LocalRefreshes
) -> Result:
    """Return the answer to SHOW.

    Raises:
        UnsupportedError: It asks for what only a federation has.
    """
    from federated_optimizer.coordinator.contract.refresh_text import Refreshes  # noqa: PLC0415
    from federated_optimizer.coordinator.statements.listings import show  # noqa: PLC0415

    if statement.kind not in _LISTED:
        raise UnsupportedError(
            f"a local session has no {statement.kind}",
            span=statement.span,
            hint="SHOW SOURCES, TABLES, VIEWS, FUNCTIONS, ALARMS or DISPLAYS",
            code="needs_federation",
        )
    found = show(
        statement.kind,
        catalog,
        (),
        (),
        alarms.infos(catalog),
        refreshes=Refreshes(refreshes.states),
    )
    return _rows(found.columns, found.rows)


def described(statement: Describe, catalog: Catalog, refreshes: LocalRefreshes) -> Result:
    """Return the answer to DESCRIBE.

    Raises:
        QueryError: There is nothing of that name, or a view that binds no more.
    """
    from federated_optimizer.coordinator.contract.refresh_text import Refreshes  # noqa: PLC0415
    from federated_optimizer.coordinator.statements.listings import describe_definition  # noqa: PLC0415

    definition = catalog.find(statement.name.text)
    if definition is None:
        raise BindingError(
            f"there is nothing with the name {statement.name.text!r}",
            span=statement.name.span,
            hint="SHOW SOURCES, TABLES, VIEWS, FUNCTIONS, ALARMS or DISPLAYS",
            code="unknown_relation",
        )
    found = describe_definition(definition, catalog, Refreshes(refreshes.states))
    return _rows(found.columns, found.rows)


def explained(statement: Explain, catalog: Catalog, sites: int) -> Result:
    """Return the answer to EXPLAIN, with fragments placed on so many simulated sites.

    Raises:
        QueryError: The statement is wrong, or has no plan.
    """
    from federated_optimizer.coordinator.explaining.explaining import notes_on, refuse_graph  # noqa: PLC0415

    inner = statement.inner
    notes = notes_on(inner)
    refuse_graph(statement)
    if statement.analyze:
        raise UnsupportedError(
            "EXPLAIN ANALYZE needs a federation", span=statement.span, code="needs_federation"
        )
    if isinstance(inner, Creating):
        define(inner, catalog)
        if isinstance(inner, CreateView | CreateAlarm):
            inner = inner.query
    if isinstance(inner, Subscribe):
        inner = inner.inner
    if not isinstance(inner, Query):
        if statement.type != "validate":
            raise UnsupportedError(
                "only queries and views have a plan",
                span=inner.span,
                hint="EXPLAIN (TYPE VALIDATE) checks any statement",
                code="misplaced_explain",
            )
        return _text(statement, "valid", {"valid": True, "columns": []})
    bound = bind_query(inner, catalog)
    warnings = (*bound.warnings, *left_out(bound.plan), *notes)
    if statement.type == "validate":
        report = validation_report(bound)
        return _text(statement, report.text, report.data, (*bound.warnings, *notes))
    if statement.type == "logical":
        text = explain_plan(bound.plan)
        shown = plan_dot(bound.plan) if statement.format == "dot" else text
        return _text(statement, shown, {"plan": text.splitlines()}, warnings)
    topology = local_topology(sites, catalog)
    bundle = place_plan(bound, topology, query=QUERY, foresee=foreseen)
    placed = explain_bundle(bundle, statement.format)
    return _text(statement, str(placed), placed, warnings)


def _text(statement: Explain, text: str, data: object, warnings: tuple[str, ...] = ()) -> Result:
    if statement.format == "json":
        text = json.dumps(data, indent=2, ensure_ascii=False)
    return Result(text=text, warnings=warnings)


def _rows(columns: tuple[str, ...], rows: tuple[Row, ...]) -> Result:
    """Return a listing; every column has the type of its first value."""
    types = [DataType.TEXT] * len(columns)
    if rows:
        types = [DataType.BOOLEAN if isinstance(v, bool) else DataType.TEXT for v in rows[0]]
    return Result(schema=Schema.of(*zip(columns, types, strict=True)), rows=rows)
