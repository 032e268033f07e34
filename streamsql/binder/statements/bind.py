"""Queries: WITH, SELECT and set operations, and the checks that need the whole plan."""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from streamsql.algebra.operators import Materialize, Plan, SortKey, is_open
from streamsql.algebra.streams import Emit, emit_of
from streamsql.binder.aggregation.order_and_limit import output_order
from streamsql.binder.names.bound_query import BoundQuery
from streamsql.binder.names.dependences import names_read, readings, refers_to_name
from streamsql.binder.names.environment import (
    Binding,
    CommonTable,
    Environment,
    Queries,
    identifier_text,
)
from streamsql.binder.names.ranks import with_numbers
from streamsql.binder.names.refused_clauses import only, refuse_foreign
from streamsql.binder.relations.change_streams import bind_stream, selected_stream, to_stream
from streamsql.binder.relations.emit_on_close import with_close
from streamsql.binder.relations.named_relations import renamed, with_names
from streamsql.binder.select.linear_recursion import bind_recursive
from streamsql.binder.select.mutual_recursion import bind_mutual
from streamsql.binder.select.recursive_branches import RecursiveDefinition
from streamsql.binder.select.select_binder import bind_block
from streamsql.binder.select.set_operations import bind_set_operation, bind_values, with_extent
from streamsql.binder.statements.displays_and_alarms import check_display
from streamsql.binder.statements.options.metric_option import metric_asked
from streamsql.binder.statements.options.plan_option import plan_of
from streamsql.binder.statements.options.recursion_options import with_choice
from streamsql.binder.statements.options.run_options import RunOptions, run_options_of
from streamsql.binder.statements.query_warnings import findings
from streamsql.binder.subqueries.nested_queries import Block
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import ViewDefinition
from streamsql.errors import UnsupportedError
from streamsql.recursion.components import components
from streamsql.recursion.termination import ended
from streamsql.syntax.script_places import Script
from streamsql.syntax.statements import Query

MAX_OPERATORS = 4_000
_LIMITS = ("recursion_limit", "recursion_rounds")
"""What bounds all recursions of a WITH: rows, and rounds."""


def bind_query(query: Query, catalog: Catalog) -> BoundQuery:
    """Return the plan of a query.

    Raises:
        BindingError: A name, a type or a shape is wrong, or a recursion does not end.
        UnsupportedError: A construct is refused, with what to write instead.
    """
    if query.display is not None:
        check_display(query.display, catalog)
    environment = statement_environment(catalog, query.script)
    binding = environment.binding
    refuse_foreign(query.tree, environment)
    plan = bind_relation_query(_unordered(query.tree), environment)
    if query.on_close is not None:
        plan = with_close(plan, query.on_close, catalog)
    order: tuple[SortKey, ...] = ()
    if query.tree.args.get("order") is not None:
        is_top = not _order_is_shown_only(query.tree)
        order = output_order(query.tree, plan.schema, environment, shown=is_top)
    options, query = run_options_of(query) if query.options else (RunOptions(), query)
    asked, query = plan_of(query) if query.options else (0, query)
    metric, query = metric_asked(query) if query.options else (None, query)
    if query.options:
        plan = with_choice(plan, query, binding)
    if query.emit is not None:
        plan = to_stream(plan, query.emit, query.span, binding)
    bound = finished(plan, binding)
    if order and bound.emit == Emit.STREAM:
        binding.warn("ORDER BY is ignored: a stream keeps the order of its changes")
    warnings = tuple(binding.warnings)
    order = order if bound.emit == Emit.RELATION else ()
    reads = frozenset(binding.reads)
    bound = replace(bound, order=order, warnings=warnings, reads=reads, asked=asked)
    bound = replace(bound, backfill=options.backfill, shared=options.shared, metric=metric)
    return replace(bound, adapts=options.adapt, heuristics=options.heuristics)


def statement_environment(catalog: Catalog, script: Script) -> Environment:
    """Return the environment of a whole statement: no names but those of the catalog."""
    return Environment(Binding(catalog, _QUERIES), script)


def finished(plan: Plan, binding: Binding) -> BoundQuery:
    """Push MIN and MAX into recursions, check that all of them end, and collect warnings."""
    _check_size(plan)
    if binding.ranked:
        plan = with_numbers(plan, binding)
    if binding.places:
        plan = ended(plan, binding.places)
    for finding in findings(plan):
        binding.warn(finding.text)
    return BoundQuery(plan, plan.schema, emit_of(plan), tuple(binding.warnings))


def _check_size(plan: Plan) -> None:
    """Refuse a plan with too many operators.

    A part that WITH or a view names counts as often as it is read: twenty names that each read the
    one before twice are a million operators. The check takes one step for each that is written.
    """
    sizes: dict[int, int] = {}
    waiting = [plan]
    while waiting:
        node = waiting[-1]
        missing = [child for child in node.inputs if id(child) not in sizes]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in node.inputs)
    if sizes[id(plan)] > MAX_OPERATORS:
        raise UnsupportedError(
            f"this query has {sizes[id(plan)]} operators; the max is {MAX_OPERATORS}",
            hint="every use of a WITH part or view counts: use them less often, or split the "
            "query into materialized views",
            code="limit_exceeded",
        )


def _order_is_shown_only(tree: exp.Expr) -> bool:
    """Whether an ORDER BY chooses no rows: it only says how the result is shown."""
    distinct = tree.args.get("distinct")
    first_of = isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None
    limited = tree.args.get("limit") is not None or tree.args.get("offset") is not None
    return not limited and not first_of


def _unordered(tree: exp.Expr) -> exp.Expr:
    if tree.args.get("order") is None or not _order_is_shown_only(tree):
        return tree
    copied = tree.copy()
    copied.set("order", None)
    return copied


def bind_relation_query(tree: exp.Expr, environment: Environment) -> Plan:
    """Return the plan of a query inside another one, unchecked for termination."""
    if _may_be_stream(tree):
        stream = bind_stream(tree, environment)
        if stream is not None:
            return stream
    if isinstance(tree, exp.Select):
        return _block(tree, environment, lift=False).plan
    clause = tree.args.get("with_")
    if clause is not None:
        environment = _with(tree, environment)
    match tree:
        case exp.Union() | exp.Intersect() | exp.Except():
            return bind_set_operation(tree, environment)
        case exp.Values():
            return bind_values(tree, environment)
        case exp.Subquery():
            only(tree, environment, "this", "with_", "alias", "order", "limit", "offset")
            plan = renamed(
                bind_relation_query(tree.this, environment), tree.args.get("alias"), environment
            )
            return with_extent(plan, tree, environment)
        case _:
            raise environment.unsupported(
                tree,
                "this is not a query",
                hint="a query begins with SELECT or WITH",
                code="unsupported_query",
            )


def _may_be_stream(tree: exp.Expr) -> bool:
    """Whether ISTREAM, DSTREAM or RSTREAM may be called around a query or its select list."""
    items = tree.expressions if isinstance(tree, exp.Select) else [tree]
    return any(isinstance(item, exp.Anonymous) for item in items)


def bind_subquery(tree: exp.Select, environment: Environment, *, lift: bool) -> Block:
    """Return a SELECT inside an expression; see `select_binder.bind_block`."""
    call = selected_stream(tree, environment) if _may_be_stream(tree) else None
    if call is not None:
        raise environment.unsupported(
            call,
            f"{call.name.upper()} is not allowed in a subquery of an expression",
            hint=f"put it in FROM: … JOIN {call.name.upper()}(SELECT …) AS x",
            code="misplaced_emit",
        )
    return _block(tree, environment, lift=lift)


def _block(tree: exp.Select, environment: Environment, *, lift: bool) -> Block:
    if tree.args.get("with_") is not None:
        inside = environment.without_outer("and a query in WITH cannot read it")
        environment = replace(_with(tree, inside), outer=environment.outer)
    return bind_block(tree, environment, lift=lift)


def bind_view(definition: ViewDefinition, query: Query, environment: Environment) -> Plan:
    """Return the plan of a view's query under the view's column names, with its options."""
    plan = _view_plan(definition, query, environment)
    if query.options:
        plan = with_choice(plan, query, environment.binding, definition.name)
    if query.emit is None:
        return plan
    plan = to_stream(plan, query.emit, environment.place(query.tree), environment.binding)
    columns = list(definition.columns)
    return with_names(plan, columns, query.tree, environment) if columns else plan


def _view_plan(definition: ViewDefinition, query: Query, environment: Environment) -> Plan:
    refuse_foreign(query.tree, environment)
    columns = list(definition.columns)
    if definition.recursive and refers_to_name(query.tree, definition.name):
        recursion = RecursiveDefinition(definition.name.lower(), columns, query.tree, query.tree)
        return bind_recursive(recursion, environment)
    tree = _unordered(query.tree)
    if tree is not query.tree:
        environment.binding.warn("ORDER BY of a view is ignored: a relation has no order")
    plan = bind_relation_query(tree, environment)
    if query.on_close is not None:
        plan = with_close(plan, query.on_close, environment.binding.catalog)
    named = columns and query.emit is None
    return with_names(plan, columns, query.tree, environment) if named else plan


def _with(tree: exp.Expr, environment: Environment) -> Environment:
    """Return the environment of a query with the tables of its WITH."""
    clause = tree.args["with_"]
    only(clause, environment, "expressions", "recursive", *_LIMITS)
    tables: dict[str, exp.Expr] = {}
    for table in clause.expressions:
        name = identifier_text(table.args["alias"].this)
        if name in tables:
            raise environment.error(
                table.args["alias"],
                f"{name!r} is defined twice in this WITH",
                hint="rename one",
                code="duplicate_name",
            )
        _check_table(table, environment)
        tables[name] = table
    if not clause.args.get("recursive"):
        for name, table in tables.items():
            plan = _plain_table(table, name, environment)
            plan = _kept_once(plan, name, table, tree, environment)
            environment = environment.with_table(name, CommonTable(plan))
        return environment
    reads = {name: names_read(table.this, tables) for name, table in tables.items()}
    for names in components(list(tables), reads):
        recursions = [_recursion(tables[name], name, clause) for name in names]
        for name, plan in _recursive_tables(recursions, reads, environment).items():
            kept = _kept_once(plan, name, tables[name], tree, environment)
            environment = environment.with_table(name, CommonTable(kept))
    return environment


def _kept_once(
    plan: Plan, name: str, table: exp.Expr, tree: exp.Expr, environment: Environment
) -> Plan:
    """Return a table of the WITH of a query, behind a barrier where it is MATERIALIZED.

    A table that is read once is computed once anyway, and better without.
    """
    if not table.args.get("materialized") or readings(tree)[name] < 2:
        return plan
    if is_open(plan):
        raise environment.unsupported(
            table.args["alias"],
            f"{name!r} is MATERIALIZED but reads its own recursion",
            hint="remove MATERIALIZED, or move the non-recursive part into a separate common table",
            code="unsupported_recursion",
        )
    binding = environment.binding
    kept = Materialize(plan, binding.materialized_name(name, plan))
    binding.note_doubled(kept, binding.doubled_of(plan))
    return kept


def _recursive_tables(
    group: list[RecursiveDefinition], reads: Mapping[str, frozenset[str]], environment: Environment
) -> dict[str, Plan]:
    """Return the plans of tables that refer to each other, or of a single one."""
    if len(group) > 1:
        return bind_mutual(group, environment)
    (only_one,) = group
    name = only_one.name
    if name in reads[name]:
        return {name: bind_recursive(only_one, environment)}
    plan = bind_relation_query(only_one.tree, environment)
    return {name: renamed(plan, only_one.place, environment)}


def _recursion(table: exp.Expr, name: str, clause: exp.Expr) -> RecursiveDefinition:
    alias = table.args["alias"]
    columns = [identifier_text(column) for column in alias.args.get("columns") or []]
    limit, rounds = (clause.args.get(limit) for limit in _LIMITS)
    return RecursiveDefinition(name, columns, table.this, alias, limit, rounds)


def _check_table(table: exp.Expr, environment: Environment) -> None:
    only(table, environment, "this", "alias", "materialized")
    window = table.args["alias"].args.get("stream_window")
    if window is not None:
        raise environment.error(
            window,
            "a common table cannot have a window: only streams have windows",
            hint="put the window inside the query, after the stream",
            code="misplaced_window",
        )


def _plain_table(table: exp.Expr, name: str, environment: Environment) -> Plan:
    alias = table.args["alias"]
    known = environment.binding.catalog.find(name) is not None or name in environment.tables
    if refers_to_name(table.this, name) and not known:
        raise environment.error(
            alias,
            f"{name!r} refers to itself",
            hint="write WITH RECURSIVE",
            code="missing_recursive",
        )
    return renamed(bind_relation_query(table.this, environment), alias, environment)


_QUERIES = Queries(bind_relation_query, bind_view, bind_subquery)
