"""Predicates that are TRUE for every row of a plan, and what a filter pushed into it would find.

Facts are collected upwards, from filters and inner joins. `holds` and `range_of` look downwards,
along the same ways as `rules.push_filters`: what has been pushed is found again wherever it
went, so nothing is derived twice.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from federated_optimizer.canonical.column_ranges import Comparisons, Limit
from federated_optimizer.canonical.constant_folding import fold
from federated_optimizer.canonical.linear_comparisons import exact
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    map_columns,
    shifted,
    substituted,
    walk,
)
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    SessionWindow,
    SetOperation,
    TopN,
    UnionAll,
    Values,
)
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.algebra.user_functions import is_user_function
from streamsql.data.types import DataType

MAX_FACTS = 64
"""Most facts of one plan; further ones are left out."""

MAX_FACT_SIZE = 64
"""Most nodes of a fact: a long list of constants is not copied to other inputs."""

Facts = tuple[Expression, ...]


def facts_above(plan: Plan, below: Sequence[Facts]) -> Facts:
    """Return the facts of a plan from those of its inputs."""
    match plan:
        case Filter(predicate=predicate):
            return _bounded((*below[0], *conjuncts(predicate)))
        case Join(kind=JoinKind.INNER):
            return facts_of_pairs(plan, below)
        case AsOfJoin(kind=JoinKind.INNER):
            return facts_of_pairs(plan, below)
        case Join(kind=JoinKind.FULL):
            return ()
        case Project(expressions=expressions, names=names):
            lifted = (_lifted(fact, expressions) for fact in below[0])
            constant = (
                Call("=", (Column(n, names[n], e.dtype), e), DataType.BOOLEAN)
                for n, e in enumerate(expressions)
                if isinstance(e, Literal) and e.value is not None
            )
            return _bounded((*constant, *(fact for fact in lifted if fact is not None)))
        case Aggregate(group=group):
            fields = plan.input.schema.fields
            columns = [Column(g, fields[g].name, fields[g].dtype) for g in group]
            lifted = (_lifted(fact, columns) for fact in below[0])
            return tuple(fact for fact in lifted if fact is not None)
        case (
            Join()
            | AsOfJoin()
            | Distinct()
            | TopN()
            | OverWindow()
            | HopWindow()
            | SessionWindow()
            | Materialize()
            | SetOperation()
            | OnClose()
        ):
            return below[0]
        case _:
            return ()


def facts_of_pairs(plan: Join | AsOfJoin, below: Sequence[Facts]) -> Facts:
    """Return what is TRUE of a row of each side that match, over the columns of both."""
    left, right = plan.left.schema.fields, plan.right.schema.fields
    width = len(left)

    def compared(name: str, a: int, b: int) -> Expression:
        first = Column(a, left[a].name, left[a].dtype)
        second = Column(width + b, right[b].name, right[b].dtype)
        return Call(name, (first, second), DataType.BOOLEAN)

    found = [compared("=", a, b) for a, b in plan.keys]
    if isinstance(plan, AsOfJoin):
        found.append(compared(">" if plan.strict else ">=", plan.left_time, plan.right_time))
    else:
        found += conjuncts(plan.residual)
    return _bounded((*found, *below[0], *(shifted(fact, width) for fact in below[1])))


@lru_cache(maxsize=4_096)
def is_small(predicate: Expression) -> bool:
    """Whether a predicate may be a fact: short, of columns, without functions of users."""
    parts = list(walk(predicate))
    return (
        len(parts) <= MAX_FACT_SIZE
        and any(isinstance(part, Column) for part in parts)
        and not any(isinstance(p, Call) and is_user_function(p.function) for p in parts)
    )


def _bounded(facts: Iterable[Expression]) -> Facts:
    kept = [fact for fact in dict.fromkeys(facts) if is_small(fact)]
    return tuple(kept[:MAX_FACTS])


def _lifted(fact: Expression, expressions: Sequence[Expression]) -> Expression | None:
    """Return a fact over the columns that hold some expressions; None if it reads others."""
    for position, expression in enumerate(expressions):
        if isinstance(expression, Call) and fact == expression:
            return Column(position, "", expression.dtype)
    match fact:
        case Column():
            for position, expression in enumerate(expressions):
                if isinstance(expression, Column) and expression.position == fact.position:
                    return Column(position, fact.name, fact.dtype)
            return None
        case Call(function=function, arguments=arguments, dtype=dtype):
            lifted = [_lifted(argument, expressions) for argument in arguments]
            kept = tuple(part for part in lifted if part is not None)
            return Call(function, kept, dtype) if len(kept) == len(lifted) else None
        case _:
            return fact


def holds(plan: Plan, predicate: Expression) -> bool:
    """Whether a predicate, or bounds that imply it, stands where it would be pushed to."""
    folded = fold(predicate)
    if isinstance(folded, Literal):
        return folded.value is True
    if isinstance(plan, Filter) and folded in map(fold, conjuncts(plan.predicate)):
        return True
    compared = Comparisons([folded])
    if compared.bounds and not (compared.differences or compared.flows):
        return all(
            not limit.is_stronger(limit_of(plan, compared.columns[c], upper=upper), upper=upper)
            for (c, upper), limit in compared.bounds.items()
        )
    ways = ways_down(plan, predicate)
    return bool(ways) and all(holds(child, pushed) for child, pushed in ways)


def limit_of(plan: Plan, column: Expression, *, upper: bool) -> Limit | None:
    """Return a limit that every value of a column keeps to, as comparisons with constants say.

    Args:
        plan: Of which the column is one.
        column: Or an expression.
        upper: Whether the greatest value is asked for, else the least.
    """
    if not columns_of(column):
        value = exact(compile_expression(column)(()))
        return None if value is None else Limit(value, strict=False)
    here = None
    if isinstance(plan, Filter):
        here = _compared_limit(conjuncts(plan.predicate), column, upper=upper)
    ways = ways_down(plan, column)
    limits = [limit_of(child, pushed, upper=upper) for child, pushed in ways]
    weakest = None if None in limits or not limits else limits[0]
    for limit in limits[1:] if weakest is not None else ():
        if limit is not None and weakest is not None and weakest.is_stronger(limit, upper=upper):
            weakest = limit
    if here is None or (weakest is not None and weakest.is_stronger(here, upper=upper)):
        return weakest
    return here


def _compared_limit(
    predicates: list[Expression], expression: Expression, *, upper: bool
) -> Limit | None:
    """Return the strongest limit of an expression among comparisons with constants."""
    named = [_lifted(predicate, [expression]) for predicate in predicates]
    bounds = Comparisons(fact for fact in named if fact is not None).bounds
    return bounds.get((0, upper))


def _is_empty(plan: Plan) -> bool:
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, Values) and not plan.rows


def ways_down(plan: Plan, expression: Expression) -> list[tuple[Plan, Expression]]:
    """Return into which inputs a filter over an expression goes, and over what there.

    The law of `rules.push_filters`: it goes into all of them. What has no rows is left out.
    """
    read = columns_of(expression)
    match plan:
        case Filter(input=child):
            return [(child, expression)]
        case Project(input=child):
            inner = substituted(expression, plan.expressions)
            return [] if inner is None else [(child, inner)]
        case Join(left=left, right=right, kind=kind):
            width = len(left.schema)
            if read and max(read) < width and kind != JoinKind.FULL:
                return [(left, expression)]
            if read and min(read) >= width and kind == JoinKind.INNER:
                return [(right, shifted(expression, -width))]
            return []
        case AsOfJoin(left=left):
            return [(left, expression)] if read and max(read) < len(left.schema) else []
        case UnionAll() | Distinct() | SetOperation():
            return [(child, expression) for child in plan.inputs if not _is_empty(child)]
        case HopWindow(input=child):
            return [(child, expression)] if read and max(read) < len(child.schema) else []
        case (
            TopN(input=child, partition=partition)
            | OverWindow(input=child, partition=partition)
            | SessionWindow(input=child, partition=partition)
        ):
            return [(child, expression)] if read and read <= set(partition) else []
        case Aggregate(input=child, group=group) if read and max(read) < len(group):
            fields = child.schema.fields

            def source(column: Column) -> Expression:
                position = group[column.position]
                return Column(position, fields[position].name, column.dtype)

            return [(child, map_columns(expression, source))]
        case _:
            return []
