"""Branches of recursive definitions: taken apart, checked, and bound to rows of a set."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.choices import Copies, RoundLimit
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    SessionWindow,
    SetOperation,
    StreamWindow,
    TopN,
    ToStream,
    UnionAll,
    identity_columns,
    is_open,
    refers_to,
    transform_up,
    walk_plan,
)
from streamsql.binder.names.dependences import references
from streamsql.binder.names.environment import Environment, identifier_text
from streamsql.binder.relations.named_relations import check_names
from streamsql.errors import BindingError


@dataclass(frozen=True, slots=True)
class RecursiveDefinition:
    """A recursive common table or view as written.

    Attributes:
        columns: Declared column names, or empty to take those of the first branch.
        tree: The UNION of base and step branches.
        place: The node that names it, for errors.
        limit: Most rows it may have, or None for the default.
        rounds: The bound on its rounds, or None.
    """

    name: str
    columns: list[str]
    tree: exp.Expr
    place: exp.Expr
    limit: int | None = None
    rounds: RoundLimit | None = None


def split_branches(
    tree: exp.Expr, names: Collection[str], environment: Environment
) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return the base and the step branches of a definition.

    `names` are the relation and those that are defined together with it.
    """
    branches = _branches(tree, names, environment)
    base = [branch for branch in branches if not references(branch, names)]
    return base, [branch for branch in branches if references(branch, names)]


def _branches(tree: exp.Expr, names: Collection[str], environment: Environment) -> list[exp.Expr]:
    inner = tree
    while isinstance(inner, exp.Subquery) and inner.args.get("alias") is None:
        inner = inner.this
    if not isinstance(inner, exp.Union) or not references(inner, names):
        return [inner]
    if inner.args.get("with_") is not None:
        raise environment.unsupported(
            inner.args["with_"],
            "WITH inside a recursive definition is not supported",
            hint="move its tables into the outer WITH, before the recursive one",
            code="unsupported_recursion",
        )
    for clause in ("order", "limit", "offset"):
        if inner.args.get(clause) is not None:
            raise environment.unsupported(
                inner.args[clause],
                f"{clause.upper()} inside a recursion is not supported",
                hint="add a bound to WHERE, for example hops < 12",
                code="unsupported_recursion",
            )
    left, right = (_branches(part, names, environment) for part in (inner.this, inner.expression))
    return left + right


def copies_of(
    tree: exp.Expr, names: Collection[str], what: str, environment: Environment
) -> Copies:
    """Return whether a definition joins its branches by UNION or by UNION ALL."""
    found: dict[bool, exp.Expr] = {}
    waiting = [tree]
    while waiting:
        inner = waiting.pop()
        while isinstance(inner, exp.Subquery) and inner.args.get("alias") is None:
            inner = inner.this
        if isinstance(inner, exp.Union) and references(inner, names):
            found[bool(inner.args.get("distinct"))] = inner
            waiting.extend((inner.this, inner.expression))
    if len(found) > 1:
        raise environment.unsupported(
            found[False],
            f"the recursion {what!r} mixes UNION and UNION ALL",
            hint="use the same one between all branches; UNION keeps each row once",
            code="unsupported_recursion",
        )
    return Copies.ALL if False in found else Copies.ONE


def set_branches(plan: Plan) -> list[Plan]:
    """Take a union apart; a recursion keeps each row once, whatever its branches do."""
    match plan:
        case Distinct(input=child):
            return set_branches(child)
        case UnionAll(branches=branches):
            return [part for branch in branches for part in set_branches(branch)]
        case _:
            return [plan]


def bind_base(
    trees: list[exp.Expr], environment: Environment, copies: Copies = Copies.ONE
) -> list[Plan]:
    """Return the plans of the base branches."""
    plans = [environment.plan_of(tree) for tree in trees]
    if copies != Copies.ONE:
        return plans
    return [part for plan in plans for part in set_branches(plan)]


def bind_step(
    tree: exp.Expr, recursive: dict[str, str], environment: Environment, copies: Copies = Copies.ONE
) -> Plan:
    """Return the plan of a step branch.

    `recursive` maps the names that branches read to their references.
    """
    found = references(tree, recursive)
    plan = environment.plan_of(tree)
    if copies == Copies.ONE:
        # Each row counts once in a recursion, so an outermost DISTINCT adds nothing.
        plan = plan.input if isinstance(plan, Distinct) else plan
        plan = _semi_joins_as_joins(plan)
    for name, reference in recursive.items():
        places = [table for table in found if identifier_text(table.this) == name]
        if not places:
            continue
        if not refers_to(plan, reference):
            raise environment.unsupported(
                places[0],
                f"{name!r} must contribute rows to each branch of its recursion that reads it",
                hint="read it in FROM, not in an unused common table",
                code="unsupported_recursion",
            )
        _check_monotone(plan, name, reference, places[0], environment)
        read = [n for n in walk_plan(plan) if isinstance(n, RecursiveReference)]
        if copies != Copies.ONE and len(read) > 1:
            raise environment.unsupported(
                places[-1],
                f"{name!r} is read twice in a branch of UNION ALL",
                hint="read it once, or write UNION, which keeps each row once",
                code="unsupported_recursion",
            )
    return plan


def _check_monotone(
    plan: Plan, name: str, reference: str, node: exp.Expr, environment: Environment
) -> None:
    """Refuse operators between the branch and its recursive references that are not monotone."""
    if isinstance(plan, RecursiveReference):
        return
    reason, hint = _why_not_monotone(plan, name)
    if reason:
        raise environment.unsupported(
            node, f"{name!r} contains {reason}", hint=hint, code="not_monotone"
        )
    for child in plan.inputs:
        if refers_to(child, reference):
            _check_monotone(child, name, reference, node, environment)


def _why_not_monotone(plan: Plan, name: str) -> tuple[str, str]:
    """Return why an operator is refused above a recursive relation, and a hint; empty if it is not.

    More rows below it must never take a row above it away.
    """
    match plan:
        case Filter() | Project() | Join(kind=JoinKind.INNER):
            return "", ""
        case Join(kind=JoinKind.ANTI):
            return (
                "a negation of the recursion (NOT EXISTS, NOT IN or ANTI JOIN over it)",
                f"apply it to the finished {name} in the query after WITH, or to the other "
                "relations in a table before it",
            )
        case Join():
            return (
                "an outer join over the recursive relation (a subquery used as a value is one)",
                "use JOIN in the recursion, and LEFT JOIN with the finished relation after it",
            )
        case AsOfJoin():
            return (
                "an as-of join over the recursive relation",
                f"join the finished {name} in the query after WITH",
            )
        case Aggregate():
            return (
                "an aggregate over the recursive relation inside its own definition",
                f"aggregate the finished {name} in the query after WITH",
            )
        case Distinct():
            return (
                "DISTINCT over the recursive relation",
                "remove it: a recursion keeps each row once",
            )
        case TopN():
            return (
                "ORDER BY … LIMIT or ROW_NUMBER() over the recursive relation",
                f"select rows of the finished {name} in the query after WITH",
            )
        case OverWindow():
            return (
                "a window function over the recursive relation",
                f"compute it over the finished {name} in the query after WITH",
            )
        case SetOperation():
            return (
                f"{plan.kind} over the recursive relation",
                f"apply it to the finished {name} in the query after WITH",
            )
        case HopWindow() | SessionWindow() | OnClose() | ToStream() | StreamWindow():
            return (
                "a window over the recursive relation",
                "put the window on the streams that the recursion reads",
            )
        case UnionAll():
            return (
                "a UNION in FROM over the recursive relation",
                "write each of its parts as a branch of the recursion",
            )
        case _:
            return (
                "a recursion inside a recursion over the same relation",
                "name both in one WITH RECURSIVE, where they may refer to each other",
            )


def _semi_joins_as_joins(plan: Plan) -> Plan:
    """Replace semi joins over recursive relations; in a set more copies of a row say nothing."""

    def change(node: Plan) -> Plan:
        if not (isinstance(node, Join) and node.kind == JoinKind.SEMI and is_open(node)):
            return node
        pairs = Join(node.left, node.right, JoinKind.INNER, node.keys, node.residual)
        return Project(pairs, identity_columns(node.schema), node.schema.names)

    return transform_up(plan, change)


def named(branch: Plan, names: tuple[str, ...]) -> Plan:
    """Show the relation's column names where the branch computes them."""
    if isinstance(branch, Project):
        return Project(branch.input, branch.expressions, names)
    return branch


def column_names(
    columns: list[str], first: Plan, place: exp.Expr, environment: Environment
) -> tuple[str, ...]:
    """Return the declared column names, or those of the first branch."""
    names = tuple(columns) or first.schema.names
    check_names(names, first, place, environment, "first branch has")
    return names


def no_convergence(node: exp.Expr, what: str, environment: Environment) -> BindingError:
    """Return the error about column types that no round of binding the steps settles."""
    return environment.type_mismatch(
        node, f"the column types of {what} do not converge", "CAST them to one type"
    )
