"""WITH RECURSIVE: base and step branches of a linear, monotone recursion under one type."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
    UnionAll,
    refers_to,
    walk_plan,
)
from streamsql.binder.environment import CommonTable, Environment, identifier_text
from streamsql.binder.unions import aligned, common_types
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType

QueryBinder = Callable[[exp.Expr, Environment], Plan]

DEFAULT_LIMIT = 1_000_000


def refers_to_name(tree: exp.Expr, name: str) -> bool:
    """Whether a query reads a relation of that name."""
    return bool(_references(tree, name))


def _references(tree: exp.Expr, name: str) -> list[exp.Table]:
    return [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and identifier_text(table.this) == name
    ]


@dataclass(frozen=True, slots=True)
class RecursiveDefinition:
    """A recursive common table or view as written.

    Attributes:
        columns: Declared column names, or empty to take those of the first base branch.
        tree: The UNION of base and step branches.
        place: The node that names it, for errors.
        limit: Most rows it may have, or None for the default.
    """

    name: str
    columns: list[str]
    tree: exp.Expr
    place: exp.Expr
    limit: int | None = None


def bind_recursive(
    definition: RecursiveDefinition, environment: Environment, bind: QueryBinder
) -> Plan:
    """Return the fixpoint of a recursive common table or view.

    Raises:
        BindingError: There is no base branch, or types do not fit.
        UnsupportedError: It is not linear or not monotone; says why and what to write.
    """
    name, place, tree = definition.name, definition.place, definition.tree
    branches = _branches(tree, name, environment)
    base_trees = [branch for branch in branches if not refers_to_name(branch, name)]
    step_trees = [branch for branch in branches if refers_to_name(branch, name)]
    if not base_trees:
        raise environment.error(
            place,
            f"the recursion {name!r} has no base: every branch reads {name}",
            hint=f"begin with a branch that does not read {name}",
        )
    base = [part for tree in base_trees for part in _set_branches(bind(tree, environment))]
    names = _names(definition.columns, base[0], place, environment)
    fixpoint = environment.binding.fixpoint_name(name, environment.place(place))
    steps = _Steps(name, fixpoint, names, base, step_trees)
    step, types = steps.bind(environment, bind)
    both = aligned([*base, *step], tree, environment, f"recursion {name!r}")
    schema = Schema(tuple(map(Field, names, types)))
    named = tuple(_named(branch, names) for branch in both)
    return Fixpoint(
        fixpoint, schema, named[: len(base)], named[len(base) :], definition.limit or DEFAULT_LIMIT
    )


def _set_branches(plan: Plan) -> list[Plan]:
    """Take a union apart; a recursion keeps each row once, whatever its branches do."""
    match plan:
        case Distinct(input=child):
            return _set_branches(child)
        case UnionAll(branches=branches):
            return [part for branch in branches for part in _set_branches(branch)]
        case _:
            return [plan]


def _named(branch: Plan, names: tuple[str, ...]) -> Plan:
    """Show the relation's column names where the branch computes them."""
    if isinstance(branch, Project):
        return Project(branch.input, branch.expressions, names)
    return branch


def _branches(tree: exp.Expr, name: str, environment: Environment) -> list[exp.Expr]:
    inner = tree
    while isinstance(inner, exp.Subquery) and inner.args.get("alias") is None:
        inner = inner.this
    if not isinstance(inner, exp.Union) or not refers_to_name(inner, name):
        return [inner]
    if inner.args.get("with_") is not None:
        raise environment.unsupported(
            inner.args["with_"],
            "WITH inside a recursive definition is not supported",
            hint="put its tables into the outer WITH, before the recursive one",
        )
    if not inner.args.get("distinct"):
        raise environment.unsupported(
            inner,
            f"UNION ALL in the recursion {name!r} is refused: on a cycle the same row would be "
            "added for ever",
            hint="write UNION, which keeps each row once",
        )
    for clause in ("order", "limit", "offset"):
        if inner.args.get(clause) is not None:
            raise environment.unsupported(
                inner.args[clause],
                f"{clause.upper()} inside a recursion is not supported",
                hint="put a bound into WHERE, for example hops < 12",
            )
    return _branches(inner.this, name, environment) + _branches(inner.expression, name, environment)


def _names(
    columns: list[str], base: Plan, place: exp.Expr, environment: Environment
) -> tuple[str, ...]:
    names = tuple(columns) or base.schema.names
    if len(names) != len(base.schema):
        raise environment.error(
            place,
            f"{len(names)} column names for {len(base.schema)} columns",
            hint=f"the first branch gives {', '.join(base.schema.names)}",
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise environment.error(
            place, f"column name {twice!r} is given twice", hint="name the columns: r(a, b)"
        )
    return names


@dataclass(frozen=True, slots=True)
class _Steps:
    """The step branches of a recursion before they are bound."""

    name: str
    fixpoint: str
    names: tuple[str, ...]
    base: list[Plan]
    trees: list[exp.Expr]

    def bind(
        self, environment: Environment, bind: QueryBinder
    ) -> tuple[list[Plan], tuple[DataType, ...]]:
        """Bind them, widening column types until base and steps agree.

        A base of `0` and a step of `cost + 0.5` make the column DOUBLE, which may make another
        step DOUBLE as well; every round widens at least one column, so it ends.
        """
        what = f"recursion {self.name!r}"
        node = self.trees[0] if self.trees else exp.Null()
        rows = [branch.schema.dtypes for branch in self.base]
        types = common_types(rows, self.base, node, environment, what)
        places = dict(environment.binding.places)
        for _round in range(2 * len(self.names) + 2):
            environment.binding.places = dict(places)
            schema = Schema(tuple(map(Field, self.names, types)))
            reference = RecursiveReference(self.fixpoint, schema)
            inner = environment.with_table(self.name, CommonTable(reference, recursive=True))
            steps = [_step(tree, self.name, self.fixpoint, inner, bind) for tree in self.trees]
            rows = [types, *(step.schema.dtypes for step in steps)]
            wider = common_types(rows, [self.base[0], *steps], node, environment, what)
            if wider == types:
                return steps, types
            types = wider
        raise environment.error(
            node, f"the column types of {what} do not settle", hint="CAST them to one type"
        )


def _step(
    tree: exp.Expr, name: str, fixpoint: str, environment: Environment, bind: QueryBinder
) -> Plan:
    references = _references(tree, name)
    if len(references) > 1:
        raise environment.unsupported(
            references[1],
            f"{name!r} is read twice in one branch: only linear recursion is supported",
            hint=f"join {name} with the base relation instead, or write two branches with UNION",
        )
    plan = bind(tree, environment)
    # Each row counts once in a recursion, so an outermost DISTINCT says nothing new.
    plan = plan.input if isinstance(plan, Distinct) else plan
    found = [n for n in walk_plan(plan) if isinstance(n, RecursiveReference) and n.name == fixpoint]
    if len(found) != 1:
        raise environment.unsupported(
            references[0],
            f"{name!r} must be read exactly once in each branch of its recursion",
            hint="read it in FROM, not through another common table",
        )
    _check_monotone(plan, name, fixpoint, references[0], environment)
    return plan


def _check_monotone(
    plan: Plan, name: str, fixpoint: str, node: exp.Expr, environment: Environment
) -> None:
    """Refuse operators between the branch and its recursive reference that are not monotone."""
    reason = hint = ""
    match plan:
        case RecursiveReference():
            return
        case Filter() | Project():
            pass
        case Join(kind=JoinKind.LEFT):
            reason = "an outer join over the recursive relation"
            hint = "use JOIN in the recursion, and LEFT JOIN with the finished relation after it"
        case Join():
            pass
        case Aggregate():
            reason = "an aggregate over the recursive relation inside its own definition"
            hint = f"aggregate the finished {name} in the query after WITH"
        case Distinct():
            reason = "DISTINCT over the recursive relation"
            hint = "leave it out: a recursion keeps each row once"
        case UnionAll():
            reason = "a UNION in FROM over the recursive relation"
            hint = "write one branch of the recursion for each"
        case _:
            reason = "a recursion inside a recursion over the same relation"
            hint = "finish one in a common table of its own, then read it from the other"
    if reason:
        raise environment.unsupported(node, f"{reason} is refused in {name!r}", hint=hint)
    for child in plan.inputs:
        if refers_to(child, fixpoint):
            _check_monotone(child, name, fixpoint, node, environment)
