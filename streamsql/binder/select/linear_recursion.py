"""WITH RECURSIVE: base and step branches of a monotone recursion under one type."""

from sqlglot import exp

from streamsql.algebra.operators import Fixpoint, Plan, RecursiveReference
from streamsql.binder.names.environment import CommonTable, Environment
from streamsql.binder.select.recursive_branches import (
    RecursiveDefinition,
    bind_base,
    bind_step,
    column_names,
    copies_of,
    named,
    no_convergence,
    split_branches,
)
from streamsql.binder.select.round_limits import within_rounds
from streamsql.binder.select.set_operations import aligned, common_types
from streamsql.data.schema import Field, Schema

DEFAULT_LIMIT = 1_000_000


def bind_recursive(definition: RecursiveDefinition, environment: Environment) -> Plan:
    """Return the fixpoint of a recursive common table or view that reads itself."""
    name, place, tree = definition.name, definition.place, definition.tree
    base_trees, step_trees = split_branches(tree, (name,), environment)
    if not base_trees:
        raise environment.error(
            place,
            f"the recursion {name!r} has no base: every branch reads {name}",
            hint=f"start with a branch that does not read {name}",
            code="recursion_without_base",
        )
    copies = copies_of(tree, (name,), name, environment)
    base = bind_base(base_trees, environment, copies)
    names = column_names(definition.columns, base[0], place, environment)
    fixpoint = environment.binding.fixpoint_name(name, environment.place(place))
    what = f"recursion {name!r}"
    node = step_trees[0] if step_trees else exp.Null()
    types = common_types([b.schema.dtypes for b in base], base, node, environment, what)
    places = dict(environment.binding.places)
    # A base of `0` and a step of `cost + 0.5` make the column DOUBLE, which may make another step
    # DOUBLE as well. Every round widens at least one column, so it ends.
    for _round in range(2 * len(names) + 2):
        environment.binding.places = dict(places)
        reference = RecursiveReference(fixpoint, Schema(tuple(map(Field, names, types))))
        inner = environment.with_table(name, CommonTable(reference, recursive=True))
        steps = [bind_step(branch, {name: fixpoint}, inner, copies) for branch in step_trees]
        rows = [types, *(step.schema.dtypes for step in steps)]
        wider = common_types(rows, [base[0], *steps], node, environment, what)
        if wider == types:
            break
        types = wider
    else:
        raise no_convergence(node, what, environment)
    both = aligned([*base, *steps], tree, environment, what)
    branches = tuple(named(branch, names) for branch in both)
    whole = Fixpoint(
        fixpoint,
        reference.columns,
        branches[: len(base)],
        branches[len(base) :],
        definition.limit or DEFAULT_LIMIT,
        copies=copies,
    )
    return whole if definition.rounds is None else within_rounds(whole, definition.rounds)
