"""WITH RECURSIVE: base and step branches of a monotone recursion under one type."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.choices import Copies
from streamsql.algebra.operators import Fixpoint, Plan, RecursiveReference
from streamsql.binder.names.environment import CommonTable, Environment
from streamsql.binder.select.recursive_branches import (
    QueryBinder,
    RecursiveDefinition,
    bind_base,
    bind_step,
    column_names,
    copies_of,
    named,
    split_branches,
)
from streamsql.binder.select.round_limits import within_rounds
from streamsql.binder.select.unions import aligned, common_types
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType

DEFAULT_LIMIT = 1_000_000


def bind_recursive(
    definition: RecursiveDefinition, environment: Environment, bind: QueryBinder
) -> Plan:
    """Return the fixpoint of a recursive common table or view that reads itself.

    Raises:
        BindingError: There is no base branch, or types do not fit.
        UnsupportedError: It is not monotone; says why and what to write.
    """
    name, place, tree = definition.name, definition.place, definition.tree
    base_trees, step_trees = split_branches(tree, (name,), name, environment)
    if not base_trees:
        raise environment.error(
            place,
            f"the recursion {name!r} has no base: every branch reads {name}",
            hint=f"start with a branch that does not read {name}",
            code="recursion_without_base",
        )
    copies = copies_of(tree, (name,), name, environment)
    base = bind_base(base_trees, environment, bind, copies)
    names = column_names(definition.columns, base[0], place, environment)
    fixpoint = environment.binding.fixpoint_name(name, environment.place(place))
    steps = _Steps(name, fixpoint, names, base, step_trees, copies)
    step, types = steps.bind(environment, bind)
    both = aligned([*base, *step], tree, environment, f"recursion {name!r}")
    schema = Schema(tuple(map(Field, names, types)))
    branches = tuple(named(branch, names) for branch in both)
    whole = Fixpoint(
        fixpoint,
        schema,
        branches[: len(base)],
        branches[len(base) :],
        definition.limit or DEFAULT_LIMIT,
        copies=copies,
    )
    return whole if definition.rounds is None else within_rounds(whole, definition.rounds)


@dataclass(frozen=True, slots=True)
class _Steps:
    """The step branches of a recursion before they are bound."""

    name: str
    fixpoint: str
    names: tuple[str, ...]
    base: list[Plan]
    trees: list[exp.Expr]
    copies: Copies

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
        recursive = {self.name: self.fixpoint}
        for _round in range(2 * len(self.names) + 2):
            environment.binding.places = dict(places)
            schema = Schema(tuple(map(Field, self.names, types)))
            reference = RecursiveReference(self.fixpoint, schema)
            inner = environment.with_table(self.name, CommonTable(reference, recursive=True))
            steps = [bind_step(tree, recursive, inner, bind, self.copies) for tree in self.trees]
            rows = [types, *(step.schema.dtypes for step in steps)]
            wider = common_types(rows, [self.base[0], *steps], node, environment, what)
            if wider == types:
                return steps, types
            types = wider
        raise environment.error(
            node,
            f"the column types of {what} do not converge",
            hint="CAST them to one type",
            code="type_mismatch",
        )
