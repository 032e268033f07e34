"""Conditions of a subquery that read the query around it, turned into join conditions.

Three ways, the first that fits:

* lifted: conditions of a plain SELECT, which only filter pairs of rows, become conditions of the
  join with the query around;
* eliminated: `u.k = t.k` lets `u.k` stand for `t.k` everywhere in the subquery, which is then
  computed for every `u.k` at once (grouped by it) and joined on it;
* by domain: the distinct values of the outer columns are joined in as one more relation, so that
  the subquery is computed for each of them (Neumann and Kemper, Unnesting Arbitrary Queries).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression, Literal, map_columns
from streamsql.algebra.operators import Plan, Project, RecursiveReference, identity_columns
from streamsql.binder.names.environment import Environment, Scope, ScopeColumn, identifier_text
from streamsql.binder.names.outer_names import (
    OUTER,
    Outer,
    between,
    inner_columns,
    outer_columns,
    outer_of,
    outer_reads,
    reads_subquery,
    relation_names,
    with_outer,
)
from streamsql.binder.relations.join_tree import Condition, Part
from streamsql.binder.subqueries.uniqueness import DOMAIN
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType, Value

_BOOLEAN = DataType.BOOLEAN
_ANY_VALUE: dict[DataType, Value] = {
    DataType.BOOLEAN: False,
    DataType.INTEGER: 0,
    DataType.DOUBLE: 0.0,
    DataType.TEXT: "",
    DataType.TIMESTAMP: 0,
    DataType.INTERVAL: 0,
    DataType.NULL: None,
}


@dataclass(frozen=True, slots=True)
class Domain:
    """The relation of outer values that a subquery is computed for.

    Attributes:
        name: Of the reference that stands for it until the plan around is known.
        columns: What it holds, over the numbers of the query around.
    """

    name: str
    columns: tuple[Expression, ...]


@dataclass(slots=True)
class Correlation:
    """How a subquery hangs together with the query around it.

    Attributes:
        conditions: Its own conditions, over its column numbers.
        prefix: Expressions over its numbers that its rows begin with, for `joins`.
        joins: Conditions of the join with the query around; a column below `OUTER` is a place in
            the prefix.
        stands_for: Inner expressions by the numbers of the outer columns they stand for.
        domain: With `part`, its rows, where the third way was taken.
    """

    conditions: list[Condition]
    prefix: list[Expression] = field(default_factory=list)
    joins: list[Expression] = field(default_factory=list)
    stands_for: dict[int, Expression] = field(default_factory=dict)
    domain: Domain | None = None
    part: Part | None = None

    def place(self, expression: Expression) -> Column:
        """Return the column of the prefix that holds an inner expression."""
        if expression not in self.prefix:
            self.prefix.append(expression)
        index = self.prefix.index(expression)
        name = expression.name if isinstance(expression, Column) else f"key_{index + 1}"
        return Column(index, name, expression.dtype)

    def lift(self, condition: Expression) -> None:
        """Make a condition one of the join with the query around."""
        link = _link(condition)
        if link is not None:
            inner, outer = link
            self.joins.append(Call("=", (self.place(inner), outer), _BOOLEAN))
            return
        self.joins.append(
            map_columns(condition, lambda c: c if c.position >= OUTER else self.place(c))
        )


def correlate(
    conditions: list[Condition],
    others: Mapping[int, Column],
    environment: Environment,
    numbers: Iterator[int],
    *,
    lift: bool,
) -> Correlation:
    """Separate what a subquery's conditions say about the query around.

    Args:
        conditions: Of WHERE and of inner joins.
        others: Outer columns that other clauses read, and subqueries of any clause, by number.
        environment: Of the subquery.
        numbers: Fresh column numbers.
        lift: Whether it is a plain SELECT, so that its conditions may be lifted.
    """
    reading = [c for c in conditions if outer_columns(c.predicate)]
    result = Correlation([c for c in conditions if c not in reading])
    if not reading and not others:
        return result
    if lift and not others:
        for condition in reading:
            result.lift(condition.predicate)
        return result
    linked = [(c, link) for c in reading if (link := _link(c.predicate)) is not None]
    equated = {
        outer.position - OUTER: inner for _, (inner, outer) in linked if isinstance(outer, Column)
    }
    # The columns of a subquery do not exist yet when the join with another one is made.
    stands_for = {
        n: inner for n, inner in equated.items() if not (others and reads_subquery(inner))
    }
    links = [condition for condition, _ in linked]
    rest = [condition for condition in reading if condition not in links]
    needed = {n for condition in rest for n in outer_columns(condition.predicate)} | set(others)
    if needed <= set(stands_for):
        result.stands_for = stands_for
        for condition in links:
            result.lift(condition.predicate)
        for condition in rest:
            result.conditions.append(Condition(with_outer(condition.predicate, stands_for)))
        return result
    used = {**others, **outer_reads(condition.predicate for condition in reading)}
    result.conditions += reading
    columns = tuple(used[number] for number in sorted(used))
    _by_domain(result, columns, set(equated), environment, numbers)
    return result


def _link(condition: Expression) -> tuple[Expression, Expression] | None:
    """Return the inner and the outer side of an equality of both queries."""
    match condition:
        case Call(function="=", arguments=(one, other)) if one.dtype == other.dtype:
            for inner, outer in ((one, other), (other, one)):
                apart = not outer_columns(inner) and not inner_columns(outer)
                if apart and inner_columns(inner) and outer_columns(outer):
                    return inner, outer
    return None


def _by_domain(
    result: Correlation,
    columns: tuple[Column, ...],
    linked: set[int],
    environment: Environment,
    numbers: Iterator[int],
) -> None:
    """Join the values of the used outer columns in; those linked by an equality are not NULL."""
    environment.binding.subqueries += 1
    domain = Domain(f"{DOMAIN}{environment.binding.subqueries}", columns)
    result.domain = domain
    names = [f"outer_{index + 1}" for index in range(len(columns))]
    schema = Schema(tuple(Field(n, c.dtype) for n, c in zip(names, columns, strict=True)))
    plan: Plan = RecursiveReference(domain.name, schema)
    layout = [OUTER + column.position for column in columns]
    computed: list[Expression] = []
    for number_of, column in enumerate(columns):
        own = Column(number_of, names[number_of], column.dtype)
        outside = Column(OUTER + column.position, column.name, column.dtype)
        if column.position in linked:
            result.joins.append(Call("=", (result.place(outside), outside), _BOOLEAN))
            continue
        # NULL must find NULL here, and keys of joins never match NULL.
        for here, there in zip(null_safe(own), null_safe(outside), strict=True):
            number = next(numbers)
            place = result.place(Column(number, f"{column.name}_key", here.dtype))
            result.joins.append(Call("=", (place, there), _BOOLEAN))
            computed.append(here)
            layout.append(number)
    if computed:
        every = (*names, *(f"key_{index + 1}" for index in range(len(computed))))
        plan = Project(plan, (*identity_columns(schema), *computed), every)
    result.part = Part(plan, tuple(layout))
    result.stands_for = {c.position: Column(OUTER + c.position, c.name, c.dtype) for c in columns}


def null_safe(column: Column) -> tuple[Expression, ...]:
    """Return values that are equal, and not NULL, where two columns are the same or both NULL."""
    missing = Call("IS NULL", (column,), _BOOLEAN)
    if column.dtype == DataType.NULL:
        return (missing,)
    value = Literal(_ANY_VALUE[column.dtype], column.dtype)
    return missing, Call("COALESCE", (column, value), column.dtype)


def outer_uses(select: exp.Select, scope: Scope, environment: Environment) -> dict[int, Column]:
    """Return the outer columns that clauses other than FROM and WHERE read, by number."""
    outer = outer_of(environment)
    if outer is None or outer.blocked:
        return {}
    aliases = {
        identifier_text(item.args["alias"])
        for item in select.expressions
        if isinstance(item, exp.Alias)
    }
    found: list[ScopeColumn | None] = []
    for column in _read(select, scope, outer):
        if not isinstance(column, exp.Column):
            found.append(outer.aggregate(column, environment))
            continue
        if scope.lookup(column):
            continue
        sorts = column.find_ancestor(exp.Order, exp.Group) is not None
        if sorts and column.args.get("table") is None and identifier_text(column.this) in aliases:
            continue
        found.append(outer.resolve(column, environment) if outer.knows(column) else None)
    numbered = [(c, c.position - OUTER) for c in found if c is not None]
    return {number: Column(number, c.name, c.dtype) for c, number in numbered}


def _read(select: exp.Select, scope: Scope, outer: Outer) -> Iterable[exp.Expr]:
    """Yield columns, and aggregates that belong to queries around.

    Of queries inside these clauses only columns with a table are, which none of them can mean.
    """
    clauses = [select.args.get(key) for key in ("group", "having", "order", "distinct", "qualify")]
    for clause in [*select.expressions, *(c for c in clauses if c is not None)]:
        for node in clause.walk(prune=outer.owns):
            inside = tuple(between(node, select))
            table = node.args.get("table") if isinstance(node, exp.Column) else None
            if outer.owns(node):
                yield node
            elif not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                continue
            elif not inside:
                yield node
            elif table is not None:
                name = identifier_text(table)
                if name not in scope.tables and not any(name in relation_names(s) for s in inside):
                    yield node
