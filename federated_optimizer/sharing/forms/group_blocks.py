"""Groups read as a block, keys, calls, and a block above: what rules about aggregates compare.

    Project … Filter (HAVING) … Aggregate[keys; calls] … block of inputs

DISTINCT is groups by all columns without calls. Expressions above an aggregate are put into the
space of its groups: position n is the n-th key, or the n-th call behind the keys.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import msgspec
from msgspec import UNSET

from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.sharing.forms.alignment import aligned
from federated_optimizer.sharing.forms.blocks import Block, block_of, plan_of
from streamsql.algebra.aggregate_laws import SET_FUNCTIONS
from streamsql.algebra.expressions import Column, Expression, columns_of, substituted
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    Distinct,
    HopWindow,
    Plan,
    identity_columns,
)
from streamsql.data.schema import Field, Schema


@dataclass(frozen=True, slots=True)
class GroupBlock:
    """A grouping between two blocks.

    Attributes:
        below: What is grouped; its outputs are the keys.
        calls: Over the universal columns of `below`.
        names: Of the keys.
        above: Predicates and outputs in the space of the groups; its only input is a placeholder.
        is_global: Whether there is always exactly one group.
        is_distinct: Whether it was written as DISTINCT.
    """

    below: Block
    calls: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    above: Block
    is_global: bool
    is_distinct: bool = False

    @property
    def keys(self) -> tuple[Expression, ...]:
        """The keys, over the universal columns of `below`."""
        return self.below.outputs

    @property
    def schema(self) -> Schema:
        """The columns of the space of the groups."""
        keys = tuple(Field(n, e.dtype) for n, e in zip(self.names, self.keys, strict=True))
        return Schema(keys + tuple(Field(c.name, c.dtype) for c in self.calls))

    def over(self, other: "GroupBlock") -> Iterator["GroupBlock"]:
        """Yield the groups over the inputs of others, in every possible assignment."""
        arguments = tuple(a for call in self.calls for a in call.arguments)
        outputs = self.keys + arguments
        width = len(self.keys)
        names = ("",) * len(outputs)
        for moved in aligned(replace(self.below, outputs=outputs, names=names), other.below):
            rest = iter(moved.outputs[width:])
            calls = tuple(
                msgspec.structs.replace(call, arguments=tuple(next(rest) for _ in call.arguments))
                for call in self.calls
            )
            below = replace(moved, outputs=moved.outputs[:width], names=self.names)
            yield replace(self, below=below, calls=calls)

    def plan(self) -> Plan:
        """Return a plan of the groups."""
        keys = len(self.keys)
        universal = self.below.columns
        read = sorted(
            frozenset[int]().union(*(columns_of(a) for c in self.calls for a in c.arguments))
        )
        shown = tuple(universal[c] for c in read)
        names = (*self.names, *(c.name for c in shown if isinstance(c, Column)))
        below = plan_of(replace(self.below, outputs=(*self.keys, *shown), names=names))
        place = {c: keys + n for n, c in enumerate(read)}
        moved = [
            Column(place.get(c, 0), e.name, e.dtype) if isinstance(e, Column) else e
            for c, e in enumerate(universal)
        ]
        calls = tuple(
            msgspec.structs.replace(
                call, arguments=tuple(_put(a, tuple(moved)) for a in call.arguments)
            )
            for call in self.calls
        )
        grouped = Aggregate(below, tuple(range(keys)), calls)
        return plan_of(replace(self.above, inputs=(grouped,)))


def _put(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    found = substituted(expression, columns)
    assert found is not None  # noqa: S101  (only columns are replaced)
    return found


@exactly_cached(4_096)
def group_block_of(plan: Plan) -> GroupBlock | None:
    """Return a plan as groups; None: it is none, or has expressions that are too long."""
    above = block_of(plan)
    if len(above.inputs) != 1:
        return None
    match above.inputs[0]:
        case Aggregate(input=child, group=group, aggregates=calls):
            pass
        case Distinct(input=child) if len(child.schema):
            group, calls = tuple(range(len(child.schema))), ()
        case _:
            return None
    below = _lifted(block_of(child))
    put: list[AggregateCall] = []
    for call in calls:
        found = [substituted(a, below.outputs) for a in call.arguments]
        arguments = tuple(a for a in found if a is not None)
        if len(arguments) != len(found):
            return None
        put.append(msgspec.structs.replace(call, arguments=arguments))
    names = tuple(child.schema.names[g] for g in group)
    keys = tuple(below.outputs[g] for g in group)
    early, late = _parted(above.predicates, keys)
    below = replace(below, predicates=(*below.predicates, *early), outputs=keys, names=names)
    is_distinct = isinstance(above.inputs[0], Distinct)
    return GroupBlock(
        below, tuple(put), names, replace(above, predicates=late), not group, is_distinct
    )


def _lifted(block: Block) -> Block:
    """Return a block over windows with the conditions of the rows in them above the windows.

    Sound because a row is in its windows whatever is asked of it.
    """
    match block.inputs:
        case (HopWindow(input=child, time=time) as windows,):
            rows = block_of(child)
        case _:
            return block
    if len(rows.inputs) != 1 or not rows.predicates:
        return block
    begins = rows.outputs[time]
    shown = rows.columns if begins in rows.columns else (*rows.columns, begins)
    names = tuple(c.name if isinstance(c, Column) else "time" for c in shown)
    over = plan_of(Block(rows.inputs, (), shown, names))
    lifted = msgspec.structs.replace(windows, input=over, time=shown.index(begins))
    width, bounds = len(rows.outputs), identity_columns(lifted.schema)[len(shown) :]
    put = (*rows.outputs[:width], *bounds)
    outputs = [substituted(e, put) for e in block.outputs]
    predicates = [substituted(p, put) for p in block.predicates]
    found = [e for e in (*outputs, *predicates) if e is not None]
    if len(found) != len(outputs) + len(predicates):
        return block
    count = len(outputs)
    return Block((lifted,), (*rows.predicates, *found[count:]), tuple(found[:count]), block.names)


def _parted(
    predicates: tuple[Expression, ...], keys: tuple[Expression, ...]
) -> tuple[list[Expression], tuple[Expression, ...]]:
    """Return the predicates that read keys alone, over what is grouped, and the others."""
    early: list[Expression] = []
    late: list[Expression] = []
    for predicate in predicates:
        read = columns_of(predicate)
        found = None
        if read and max(read) < len(keys):
            found = substituted(predicate, keys)
        if found is None:
            late.append(predicate)
        else:
            early.append(found)
    return early, tuple(late)


def groups_of(plan: Plan) -> GroupBlock | None:
    """Return the groups of a plan without what stands above them."""
    found = group_block_of(plan)
    return None if found is None else replace(found, above=all_of(found))


def all_of(groups: GroupBlock) -> Block:
    """Return the block above groups that shows all of them, with all their columns."""
    schema = groups.schema
    return Block(groups.above.inputs, (), identity_columns(schema), schema.names)


def call_text(call: AggregateCall, text: Callable[[Expression], str]) -> str:
    """Return the same text for calls with one result, whatever they are called.

    Args:
        call: Any.
        text: Returns the text of an argument.
    """
    distinct = call.distinct and call.function not in SET_FUNCTIONS
    said = (call.parameter, call.descending, call.separator, call.implementation, call.result)
    merged = () if call.merged_by is UNSET else (str(call.merged_by),)
    return f"{call.function}{distinct, *said, *merged}({','.join(map(text, call.arguments))})"
