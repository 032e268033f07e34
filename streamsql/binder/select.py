"""One SELECT block: FROM, WHERE, GROUP BY, HAVING, the select list and DISTINCT."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import Distinct, Filter, Plan, Project
from streamsql.binder.aggregates import Aggregation, group_expressions, has_aggregate
from streamsql.binder.environment import Environment, identifier_text
from streamsql.binder.expressions import ExpressionBinder
from streamsql.binder.from_clause import FromBinder, Input
from streamsql.binder.functions import PARSED
from streamsql.binder.relations import QueryBinder, ViewBinder
from streamsql.binder.shape import only

MAX_ITEMS = 512


@dataclass(frozen=True, slots=True)
class _Item:
    """One output column: its tree, or a column that `*` expanded to."""

    name: str
    node: exp.Expr
    column: Column | None = None


def bind_select(
    select: exp.Select, environment: Environment, bind: QueryBinder, bind_view: ViewBinder
) -> Plan:
    """Return the plan of a SELECT without its WITH clause.

    Raises:
        BindingError: A name, a type or the grouping is wrong.
        UnsupportedError: A clause is refused.
    """
    allowed = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_")
    only(select, environment, *allowed)
    source = FromBinder(environment, bind, bind_view).bind(select)
    items = _items(select, source, environment)
    if _is_aggregated(select, items):
        plan, expressions = _aggregated(select, items, source, environment)
    else:
        binder = ExpressionBinder(environment, source.scope)
        plan = source.plan
        expressions = [item.column or binder.bind(item.node) for item in items]
    plan = projected(plan, expressions, unique([item.name for item in items]))
    return Distinct(plan) if _is_distinct(select, environment) else plan


def projected(plan: Plan, expressions: list[Expression], names: list[str]) -> Plan:
    """Return the projection, or the plan itself when nothing would change."""
    schema = plan.schema
    same = tuple(names) == schema.names and all(
        isinstance(expression, Column) and expression.position == position
        for position, expression in enumerate(expressions)
    )
    return plan if same else Project(plan, tuple(expressions), tuple(names))


def unique(names: list[str]) -> list[str]:
    """Return names without repetition: the second `a` becomes `a_2`.

    Examples:
        >>> unique(["a", "b", "a", "a"])
        ['a', 'b', 'a_2', 'a_3']
    """
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        chosen, number = name, 2
        while chosen in seen or (chosen != name and chosen in taken):
            chosen, number = f"{name}_{number}", number + 1
        seen.add(chosen)
        result.append(chosen)
    return result


def _is_aggregated(select: exp.Select, items: list[_Item]) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(item.column is None and has_aggregate(item.node) for item in items)


def _is_distinct(select: exp.Select, environment: Environment) -> bool:
    distinct = select.args.get("distinct")
    if distinct is None:
        return False
    if distinct.args.get("on") is not None:
        raise environment.unsupported(
            distinct, "DISTINCT ON is not supported", hint="use GROUP BY with ARG_MIN or ARG_MAX"
        )
    return True


def _aggregated(
    select: exp.Select, items: list[_Item], source: Input, environment: Environment
) -> tuple[Plan, list[Expression]]:
    aggregation = Aggregation(environment, source.plan, source.scope)
    clause = select.args.get("group")
    if clause is not None:
        only(clause, environment, "expressions")
    group_expressions(
        aggregation, clause, lambda node: _group_target(node, items, source, environment)
    )
    binder = aggregation.binder()
    bound = [item.column or binder.bind(item.node) for item in items]
    having = select.args.get("having")
    condition = None if having is None else binder.predicate(having.this, "HAVING")
    expressions = [
        aggregation.rewrite(expression, item.node)
        for expression, item in zip(bound, items, strict=True)
    ]
    plan: Plan = aggregation.finish()
    if condition is not None and having is not None:
        plan = Filter(plan, aggregation.rewrite(condition, having))
    return plan, expressions


def _group_target(
    node: exp.Expr, items: list[_Item], source: Input, environment: Environment
) -> exp.Expr | None:
    """Return the select item that `GROUP BY 1` or `GROUP BY alias` means."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        position = int(node.name) if node.name.isdigit() and len(node.name) < 6 else 0
        if not 1 <= position <= len(items):
            raise environment.error(
                node,
                f"GROUP BY {node.name}: there is no such column in the select list",
                hint=f"positions go from 1 to {len(items)}",
            )
        return items[position - 1].node
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        name = identifier_text(node.this)
        # As in PostgreSQL a column of FROM wins over an alias of the select list.
        if any(column.name == name for column in source.scope.visible()):
            return None
        aliased = [item for item in items if item.name == name and item.column is None]
        return aliased[0].node if aliased else None
    return None


def _items(select: exp.Select, source: Input, environment: Environment) -> list[_Item]:
    items: list[_Item] = []
    if not select.expressions:
        raise environment.error(select, "the select list is empty", hint="SELECT * FROM …")
    for number, node in enumerate(select.expressions, start=1):
        items += _expanded(node, number, source, environment)
        if len(items) > MAX_ITEMS:
            raise environment.unsupported(
                node, f"more than {MAX_ITEMS} columns in one query", hint="name fewer columns"
            )
    return items


def _expanded(node: exp.Expr, number: int, source: Input, environment: Environment) -> list[_Item]:
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star):
        only(star, environment)
        return _star(node, source, environment)
    if isinstance(node, exp.Alias):
        return [_Item(identifier_text(node.args["alias"]), node.this)]
    return [_Item(_name_of(node, number), node)]


def _star(node: exp.Expr, source: Input, environment: Environment) -> list[_Item]:
    qualifier = node.args.get("table")
    if qualifier is None:
        columns = source.scope.visible()
        if not columns:
            raise environment.error(node, "* needs a FROM", hint="SELECT * FROM source")
    else:
        table = identifier_text(qualifier)
        source.scope.check_table(table, qualifier, environment)
        columns = source.scope.of_table(table)
    items = []
    for column in columns:
        tree = exp.Column(this=exp.to_identifier(column.name, quoted=True))
        tree.meta.update(node.meta)
        items.append(_Item(column.name, tree, source.scope.read(column)))
    return items


def _name_of(node: exp.Expr, number: int) -> str:
    match node:
        case exp.Column():
            return identifier_text(node.this)
        case exp.Paren() | exp.Cast():
            return _name_of(node.this, number)
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.ArgMin():
            return "arg_min"
        case exp.ArgMax():
            return "arg_max"
        case _ if type(node) in PARSED:
            return PARSED[type(node)][0].lower()
        case exp.Func() if not isinstance(node, exp.Connector):
            return node.sql_name().lower()
        case _:
            return f"column{number}"
