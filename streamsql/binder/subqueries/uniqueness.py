"""Whether a relation has max one row for given values of some of its columns."""

from streamsql.algebra.choices import Copies
from streamsql.algebra.expressions import Call, Column, Expression, Literal, conjuncts
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Materialize,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    Scan,
    SetOperation,
    TopN,
    UnionAll,
    Values,
    Window,
)

Known = frozenset[int]
DOMAIN = "outer values/"
"""How the references to the outer values of subqueries begin."""


def exactly_one(plan: Plan) -> bool:
    """Whether a relation has one row, whatever its sources hold."""
    match plan:
        case Values(rows=rows):
            return len(rows) == 1
        case Aggregate(group=()):
            return True
        case Project(input=child) | Materialize(input=child):
            return exactly_one(child)
        case _:
            return False


def determined(plan: Plan, known: Known) -> bool:
    """Whether at most one row has given values in the known columns."""
    match plan:
        case Values(rows=rows):
            return len(rows) <= 1
        case Scan(key=key):
            return bool(key) and set(key) <= known
        case RecursiveReference(name=name):
            # The outer values that a subquery is computed for; a row around it fixes them.
            return name.startswith(DOMAIN)
        case Window(input=child) | Materialize(input=child):
            return determined(child, known)
        case Filter(input=child, predicate=predicate):
            return determined(child, _closed(known, predicate))
        case Project(input=child, expressions=expressions):
            return determined(child, _below(known, expressions))
        case Aggregate(input=child, group=group):
            if set(range(len(group))) <= known:
                return True
            return determined(child, frozenset(group[k] for k in known if k < len(group)))
        case TopN(input=child, limit=limit, partition=partition):
            few = limit is not None and limit <= 1 and set(partition) <= known
            return few or determined(child, known)
        case Distinct(input=child) | UnionAll(branches=(child,)):
            whole = isinstance(plan, Distinct) and len(known) == len(plan.schema)
            return whole or determined(child, known)
        case Fixpoint(columns=columns, copies=copies):
            return copies == Copies.ONE and len(known) == len(columns)
        case SetOperation(left=left):
            return determined(left, known) or (not plan.all and len(known) == len(plan.schema))
        case AsOfJoin(left=child) | OverWindow(input=child):
            return determined(child, frozenset(k for k in known if k < len(child.schema)))
        case Join():
            return _joined(plan, known)
        case _:
            return False


def _joined(join: Join, known: Known) -> bool:
    width = len(join.left.schema)
    if join.kind.is_filter:
        return determined(join.left, known)
    if join.kind == JoinKind.FULL:
        return False
    left = frozenset(k for k in known if k < width)
    right = frozenset(k - width for k in known if k >= width)
    reached = frozenset(b for _, b in join.keys)
    if determined(join.left, left) and determined(join.right, right | reached):
        return True
    back = frozenset(a for a, _ in join.keys)
    inner = join.kind == JoinKind.INNER
    return inner and determined(join.right, right) and determined(join.left, left | back)


def _below(known: Known, expressions: tuple[Expression, ...]) -> Known:
    chosen = (expressions[k] for k in known)
    return frozenset(e.position for e in chosen if isinstance(e, Column))


def _closed(known: Known, predicate: Expression) -> Known:
    """Add the columns that a predicate equates with constants or with known columns."""
    found = set(known)
    for _ in range(2):
        for part in conjuncts(predicate):
            match part:
                case Call(function="=", arguments=(Column(position=p), Literal())):
                    found.add(p)
                case Call(function="=", arguments=(Literal(), Column(position=p))):
                    found.add(p)
                case Call(function="=", arguments=(Column(position=a), Column(position=b))):
                    found.update((a, b) if {a, b} & found else ())
                case _:
                    pass
    return frozenset(found)
