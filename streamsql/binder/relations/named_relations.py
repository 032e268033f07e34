"""Items of FROM: sources, windows, views, common tables and queries in parentheses."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from streamsql.algebra.operators import Plan, Project, identity_columns
from streamsql.binder.names.environment import Environment, Scope, identifier_text
from streamsql.binder.names.refused_clauses import only
from streamsql.binder.relations.bracket_windows import windowed
from streamsql.binder.relations.change_streams import kind_of_call
from streamsql.binder.relations.system_times import historic_scan, history_of
from streamsql.binder.relations.table_functions import bind_late, bind_time_window, is_late
from streamsql.catalog.definitions import SourceDefinition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.errors import BindingError, QueryError
from streamsql.syntax.cursor import nearest
from streamsql.syntax.dialect import StreamWindow, TimeWindow
from streamsql.syntax.history_clause import SystemTime
from streamsql.syntax.parse import parse_statement
from streamsql.syntax.statements import Query

_READS = re.compile(r"\bReads (.+?)\.(?: |$)")


@dataclass(frozen=True, slots=True)
class Relation:
    """One item of FROM: its plan and what its columns are called.

    Attributes:
        doubled: Names that its query gave to several columns.
    """

    plan: Plan
    alias: str
    doubled: frozenset[str] = frozenset()

    def scope(self, offset: int) -> Scope:
        """Return its columns from a position on."""
        return Scope.of(self.alias, self.plan.schema, offset, self.doubled)


def bind_relation(node: exp.Expr, environment: Environment) -> Relation:
    """Bind one item of FROM."""
    match node:
        case exp.Table(this=exp.Values()):  # joined in parentheses
            only(node, environment, "this", "alias", "joins")
            values = node.this.copy()
            values.set("alias", node.args.get("alias"))
            return bind_relation(values, environment)
        case exp.Table():
            return _table(node, environment)
        case exp.Subquery():
            return _derived(node, environment)
        case exp.Values():
            plan = renamed(environment.plan_of(node), node.args.get("alias"), environment)
            return Relation(plan, _alias_of(node, ""))
        case exp.Lateral() | exp.Unnest():
            raise environment.unsupported(
                node,
                "LATERAL and UNNEST are not supported",
                hint="join with a query in FROM",
                code="not_a_relation",
            )
        case _:
            raise environment.unsupported(
                node,
                "this is not a relation",
                hint="name a source, table or view, or write (SELECT …) AS name",
                code="not_a_relation",
            )


def _derived(node: exp.Subquery, environment: Environment) -> Relation:
    only(node, environment, "this", "alias", "joins", "stream_window")
    if node.args.get("joins"):
        raise environment.unsupported(
            node,
            "a join in parentheses is not supported",
            hint="remove the parentheses",
            code="unsupported_join",
        )
    plan, name = environment.plan_of(node.this), _alias_of(node, "")
    window = _window_of(node, environment)
    if window is not None:
        plan = windowed(plan, name, window, environment, what="a query")
    plan = renamed(plan, node.args.get("alias"), environment)
    return Relation(plan, name, environment.binding.doubled_of(plan))


def _alias_of(node: exp.Expr, otherwise: str) -> str:
    alias = node.args.get("alias")
    return otherwise if alias is None or alias.this is None else identifier_text(alias.this)


def renamed(plan: Plan, alias: exp.Expr | None, environment: Environment) -> Plan:
    """Return the plan under the column names of `AS t(a, b)`."""
    columns = alias.args.get("columns") if alias is not None else None
    if not columns:
        return plan
    names = [identifier_text(column) for column in columns]
    return with_names(plan, names, alias, environment)


def check_names(
    names: Sequence[str],
    plan: Plan,
    node: exp.Expr | None,
    environment: Environment,
    giver: str = "query gives",
) -> None:
    """Check that there is one name, and another one, for every column; `giver` is for the hint.

    Raises:
        BindingError: There are more or fewer, or one is there twice.
    """
    if len(names) != len(plan.schema):
        raise environment.error(
            node,
            f"{len(names)} column names for {len(plan.schema)} columns",
            hint=f"the {giver} {', '.join(plan.schema.names)}",
            code="column_count",
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise environment.error(
            node,
            f"column name {twice!r} appears twice",
            hint="name the columns: r(a, b)",
            code="duplicate_name",
        )


def with_names(
    plan: Plan, names: list[str], node: exp.Expr | None, environment: Environment
) -> Plan:
    """Return the plan with other column names."""
    check_names(names, plan, node, environment)
    if tuple(names) == plan.schema.names:
        return plan
    if isinstance(plan, Project):
        return Project(plan.input, plan.expressions, tuple(names))
    return Project(plan, identity_columns(plan.schema), tuple(names))


def _time_window(node: exp.Table, environment: Environment) -> Relation:
    alias = node.args.get("alias")
    for written in (node, alias):
        if written is not None and written.args.get("stream_window") is not None:
            raise environment.error(
                written.args["stream_window"],
                f"{node.this.args['kind']} takes no window after it",
                hint="put it after the stream inside the parentheses",
                code="misplaced_window",
            )
    inner = bind_relation(node.this.this, environment)
    plan = bind_time_window(node.this, inner.plan, inner.scope(0), environment)
    return Relation(renamed(plan, alias, environment), _alias_of(node, inner.alias))


def _table(node: exp.Table, environment: Environment) -> Relation:
    past = node.args.get("version")
    if isinstance(past, SystemTime):
        only(node, environment, "this", "alias", "stream_window", "joins", "version")
        environment = _in_past(node, past, environment)
    else:
        only(node, environment, "this", "alias", "stream_window", "joins")
    if isinstance(node.this, TimeWindow):
        return _time_window(node, environment)
    if isinstance(node.this, exp.Identifier):
        name = identifier_text(node.this)
        plan = _named(name, node, environment)
    elif is_late(node.this):
        name, plan = bind_late(node.this, environment)
    elif kind_of_call(node.this) is not None:
        name, plan = "", environment.plan_of(node.this)
    else:
        raise environment.unsupported(
            node,
            "a function is not a relation",
            hint="name a source, table or view",
            code="not_a_relation",
        )
    window = _window_of(node, environment)
    if window is not None:
        plan = windowed(plan, name, window, environment)
    plan = renamed(plan, node.args.get("alias"), environment)
    # The columns of a view have the names that DESCRIBE shows.
    doubled = environment.binding.doubled_of(plan) if name in environment.tables else frozenset()
    return Relation(plan, _alias_of(node, name), doubled)


def _named(name: str, node: exp.Table, environment: Environment) -> Plan:
    common = environment.tables.get(name)
    if common is not None:
        return common.plan
    definition = environment.definition(name, node.this)
    match definition:
        case SourceDefinition() if environment.history is not None:
            return historic_scan(definition, environment.history, node, environment)
        case SourceDefinition():
            return definition.scan()
        case ViewDefinition():
            return _view(definition, node, environment)
        case FunctionDefinition():
            kind = "an aggregate" if definition.aggregate else "a function"
            raise environment.error(
                node,
                f"{definition.name!r} is {kind}, not a relation",
                hint=f"call it in the select list: {definition.usage}",
                code="not_a_relation",
            )
        case DisplayDefinition() | AlarmDefinition():
            is_display = isinstance(definition, DisplayDefinition)
            raise environment.error(
                node,
                f"{definition.name!r} is {'a display' if is_display else 'an alarm'}, not "
                "a relation",
                hint="show the result of a query on it with OUTPUT TO DISPLAY"
                if is_display
                else "read sys_alarms, which has the rows of all alarms",
                code="not_a_relation",
            )
        case SinkDefinition():
            raise environment.error(
                node,
                f"{definition.name!r} is a sink, not a relation",
                hint="read what it reads; SHOW SINKS shows its query",
                code="not_a_relation",
            )
        case None:
            raise _unknown(name, node, environment)


def _unknown(name: str, node: exp.Table, environment: Environment) -> BindingError:
    known = [*environment.tables, *environment.binding.catalog.names]
    close = nearest(name, known)
    if close:
        hint = f"did you mean {close}?"
    elif known:
        hint = "SHOW SOURCES, SHOW TABLES and SHOW VIEWS list the relations"
    else:
        hint = "CREATE SOURCE, CREATE TABLE or CREATE VIEW first"
    return environment.error(
        node.this, f"there is no source, table or view {name!r}", hint=hint, code="unknown_relation"
    )


def _view(definition: ViewDefinition, node: exp.Table, environment: Environment) -> Plan:
    name = definition.name.lower()
    if name in environment.expanding:
        circle = " -> ".join((*environment.expanding[environment.expanding.index(name) :], name))
        raise environment.error(
            node,
            f"view {name!r} reads itself: {circle}",
            hint="a view cannot read itself through another one: define both in one WITH RECURSIVE"
            if name != environment.expanding[-1]
            else "CREATE RECURSIVE VIEW name(columns) AS base UNION step",
            code="circular_view",
        )
    read = environment.binding.catalog.read_of(name, (*environment.expanding, name))
    cached = environment.binding.views.get((read, environment.history))
    if cached is not None:
        return cached
    place = environment.place(node)
    before = set(environment.binding.places)
    try:
        query = parse_statement(definition.query)
        if not isinstance(query, Query):
            raise environment.error(node, f"view {name!r} has no query", code="unsupported_query")
        inner = replace(
            environment,
            script=query.script,
            tables={},
            outer=None,
            expanding=(*environment.expanding, name),
        )
        plan = inner.binding.queries.view(definition, query, inner)
    except QueryError as error:
        if error.span == place:
            raise
        raise _inside_view(error, definition, environment, node) from None
    for added in set(environment.binding.places) - before:
        environment.binding.places[added] = place
    environment.binding.views[read, environment.history] = plan
    return plan


def _inside_view(
    error: QueryError, definition: ViewDefinition, environment: Environment, node: exp.Expr
) -> BindingError:
    """Return the error inside a view as one at the place where the view is read."""
    message, hint = error.message, error.hint
    if not message.startswith("in view "):
        if error.span is not None and error.span.text:
            message = f"{message} ({error.span.text})"
        needs = _needs(definition)
        if needs:
            hint = (
                f"the library view {definition.name} {needs}; create a source, table or "
                "view with the missing name"
            )
    message = f"in view {definition.name!r}: {message}"
    return environment.error(node, message, hint=hint, code=error.code)


def _needs(definition: ViewDefinition) -> str:
    """Return what the header of a library view says it reads; empty for other views."""
    header = " ".join(line[2:].strip() for line in definition.text.splitlines() if line[:2] == "--")
    found = _READS.search(header)
    return f"reads {found.group(1)}" if definition.library and found else ""


def _window_of(node: exp.Expr, environment: Environment) -> StreamWindow | None:
    """Return the window of a relation: it stands before or behind FOR SYSTEM_TIME and the alias."""
    places = (node, node.args.get("version"), node.args.get("alias"))
    written = [place.args.get("stream_window") for place in places if place is not None]
    found = [window for window in written if isinstance(window, StreamWindow)]
    first, second = (*found[:2], None, None)[:2]
    if first is not None and second is not None:
        raise environment.error(
            second,
            "a stream can have only one window",
            hint="leave one out",
            code="misplaced_window",
        )
    return first if first is not None else second


def _in_past(node: exp.Table, past: exp.Expr, environment: Environment) -> Environment:
    """Return the environment in which the relation of a FOR SYSTEM_TIME is found."""
    name = identifier_text(node.this) if isinstance(node.this, exp.Identifier) else ""
    if not name or name in environment.tables:
        raise environment.unsupported(
            past,
            "FOR SYSTEM_TIME follows the name of a source, table or view",
            hint=f"put it inside the query of {name}, behind the sources that it reads"
            if name
            else "put it inside the parentheses, behind the name",
            code="no_history",
        )
    return replace(environment, history=history_of(past, environment), tables={})
