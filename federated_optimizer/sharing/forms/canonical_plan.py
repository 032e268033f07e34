"""Names of what plans compute: equal names mean equal rows.

The name of a plan has two parts. Its form says which rows there are, and nothing of which columns
are shown; each column has a name of its own within the form. So two plans of one form have the same
rows, one for one, and a column of the one is the column of the same name of the other.

Not every two plans that give equal rows have equal names.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from federated_optimizer.canonical.exact_cache import encode, exactly_cached
from federated_optimizer.sharing.forms.block_names import BlockNames
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.expression_text import text_of
from streamsql.algebra.expressions import Expression
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Fixpoint,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    Plan,
    RecursiveReference,
    UnionAll,
    transform_up,
    walk_plan,
    with_inputs,
)


@dataclass(frozen=True, slots=True)
class CanonicalPlan:
    """The name of what a plan computes.

    Attributes:
        form: Of its rows.
        columns: Of its columns, in their order.
    """

    form: str
    columns: tuple[str, ...]


@exactly_cached(8_192)
def canonical_plan(plan: Plan) -> CanonicalPlan:
    """Return the name of what a plan computes."""
    block = block_of(plan)
    return canonical_block(block) if not block.is_trivial else _operator(block.inputs[0])


@exactly_cached(8_192)
def canonical_block(block: Block) -> CanonicalPlan:
    """Return the name of what a block computes."""
    if not block.predicates and len(block.inputs) == 1:  # a projection says nothing of the rows
        below = canonical_plan(block.inputs[0])
        columns = tuple(text_of(e, lambda c: below.columns[c]) for e in block.outputs)
        return CanonicalPlan(below.form, columns)
    names = names_of(block.inputs, block.predicates)
    form = _digest("block", *names.forms, *names.predicates)
    return CanonicalPlan(form, names.texts(block.outputs))


def names_of(inputs: tuple[Plan, ...], predicates: tuple[Expression, ...]) -> BlockNames:
    """Return the names of inputs under predicates, which are the same in any order of these."""
    # What a run computes inside is offered with all columns: the same predicates in another order.
    return _names((inputs, tuple(sorted(predicates, key=encode))))


@exactly_cached(1_024)
def _names(said: tuple[tuple[Plan, ...], tuple[Expression, ...]]) -> BlockNames:
    inputs, predicates = said
    named = [canonical_plan(child) for child in inputs]
    block = Block(inputs, predicates, (), ())
    return BlockNames(block, [each.form for each in named], [each.columns for each in named])


def input_forms(block: Block) -> tuple[str, ...]:
    """Return the forms of the inputs of a block, in their order."""
    return tuple(canonical_plan(child).form for child in block.inputs)


def _digest(*said: Hashable) -> str:
    return sha256(repr(said).encode()).hexdigest()[:32]


def _operator(plan: Plan) -> CanonicalPlan:
    """Return the name of an operator that is no part of a block."""
    below = [canonical_plan(child) for child in plan.inputs]
    match plan:
        case Aggregate(group=group, aggregates=calls):
            (named,) = below
            keys = tuple(named.columns[g] for g in group)
            form = _digest("aggregate", named.form, *sorted(set(keys)))
            # A key may be the same call of groups below.
            made = (f"{form} {_call(call, named.columns)}" for call in calls)
            return CanonicalPlan(form, (*keys, *made))
        case Distinct():
            (named,) = below
            form = _digest("distinct", named.form, *sorted(set(named.columns)))
            return CanonicalPlan(form, named.columns)
        case Materialize():
            return below[0]
        case UnionAll():
            return _union(below)
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI | JoinKind.LEFT | JoinKind.FULL):
            return _join(plan, *below)
        case HopWindow(time=time):
            (named,) = below
            said = named.columns[time], plan.size, plan.hop, plan.offset
            form = _digest("windows", named.form, said)
            # The rows may have the bounds of other windows already.
            return CanonicalPlan(form, (*named.columns, f"{form} start", f"{form} end"))
        case Fixpoint():
            return _by_position(_renamed(plan))
        case _:
            return _by_position(plan)


def _call(call: msgspec.Struct, columns: Sequence[str]) -> str:
    said = {name: getattr(call, name) for name in call.__struct_fields__ if name != "name"}
    arguments = [text_of(e, lambda c: columns[c]) for e in said.pop("arguments")]
    return f"{said}({','.join(arguments)})"


def _union(below: list[CanonicalPlan]) -> CanonicalPlan:
    """Return the name of a union: its branches have no order, its columns those of each branch."""
    ordered = sorted(below, key=lambda each: (each.form, each.columns))
    columns = tuple(map(repr, zip(*(b.columns for b in ordered), strict=True)))
    # Which columns stand on each other is said for all of them, since two branches may be alike.
    form = _digest("union", *(each.form for each in ordered), *sorted(set(columns)))
    return CanonicalPlan(form, columns)


def _join(plan: Join, left: CanonicalPlan, right: CanonicalPlan) -> CanonicalPlan:
    """Return the name of a join that is no inner join."""
    columns = (*(f"l.{name}" for name in left.columns), *(f"r.{name}" for name in right.columns))
    width = len(left.columns)
    said = [f"{columns[a]}={columns[width + b]}" for a, b in plan.keys]
    if plan.residual is not None:
        said.append(text_of(plan.residual, lambda c: columns[c]))
    form = _digest("join", plan.kind, left.form, right.form, *sorted(said))
    return CanonicalPlan(form, columns[:width] if plan.kind.is_filter else columns)


def _by_position(plan: Plan) -> CanonicalPlan:
    """Return a name that tells the columns apart by their places alone."""
    columns = tuple(str(place) for place in range(len(plan.schema)))
    if not plan.inputs:
        return CanonicalPlan(_digest("leaf", msgspec.msgpack.encode(plan)), columns)
    below = [canonical_plan(child) for child in plan.inputs]
    said = _without_inputs(plan)
    return CanonicalPlan(_digest("operator", said, *((b.form, b.columns) for b in below)), columns)


def _without_inputs(plan: Plan) -> bytes:
    """Return all that an operator says but its inputs and names of columns, as bytes."""
    leaf = msgspec.msgpack.encode
    if isinstance(plan, Fixpoint):
        return leaf((len(plan.base), [leaf(getattr(plan, f)) for f in _SAID_OF_FIXPOINTS]))
    children = set(plan.inputs)
    fields = []
    for name in plan.__struct_fields__:
        value = getattr(plan, name)
        own = value if isinstance(value, tuple) else (value,)
        if not any(isinstance(each, msgspec.Struct) and each in children for each in own):
            fields.append((name, value))
    return leaf((type(plan).__name__, fields))


_SAID_OF_FIXPOINTS = ("limit", "selection", "rounds", "copies")


def _renamed(plan: Fixpoint) -> Fixpoint:
    """Return a recursion under a name that only its nesting gives."""
    inner = [node for child in plan.inputs for node in walk_plan(child)]
    if any(isinstance(node, Fixpoint) and node.name == plan.name for node in inner):
        return plan
    depth = sum(isinstance(node, Fixpoint) for node in inner)
    name = f"recursion {depth}"

    def renamed(node: Plan) -> Plan:
        if isinstance(node, RecursiveReference) and node.name == plan.name:
            columns = tuple(msgspec.structs.replace(f, name="") for f in node.columns.fields)
            return RecursiveReference(name, msgspec.structs.replace(node.columns, fields=columns))
        return node

    inputs = tuple(transform_up(child, renamed) for child in plan.inputs)
    made = with_inputs(plan, inputs)
    assert isinstance(made, Fixpoint)  # noqa: S101
    return msgspec.structs.replace(made, name=name)
