"""Blocks: maximal trees of filters, projections and inner joins, read as one product.

A block is a product of inputs under predicates, of which expressions are shown. Its columns are
numbered through all inputs in their order (universal columns). Any order of its joins and any place
of its filters gives the same bag of rows, so blocks are compared where plans would differ.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate

from federated_optimizer.canonical.exact_cache import encode, exactly_cached
from federated_optimizer.rules.join_keys import equality
from federated_optimizer.rules.merge_filters import filtered
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
    shifted,
    substituted,
)
from streamsql.algebra.operators import Filter, Join, JoinKind, Plan, Project, identity_columns
from streamsql.data.types import DataType


@dataclass(frozen=True, slots=True)
class Block:
    """A product of inputs under predicates.

    Attributes:
        inputs: Plans that are no filters, projections or inner joins.
        predicates: Over universal columns; a row counts where all are TRUE.
        outputs: Over universal columns.
        names: Of the outputs.
    """

    inputs: tuple[Plan, ...]
    predicates: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    names: tuple[str, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        """The first universal column of each input, and the number of all."""
        return (0, *accumulate(len(child.schema) for child in self.inputs))

    @property
    def columns(self) -> tuple[Expression, ...]:
        """The universal columns."""
        fields = (field for child in self.inputs for field in child.schema.fields)
        return tuple(Column(at, field.name, field.dtype) for at, field in enumerate(fields))

    @property
    def owners(self) -> tuple[int, ...]:
        """The input of each universal column."""
        return tuple(i for i, child in enumerate(self.inputs) for _ in child.schema.fields)

    @property
    def is_trivial(self) -> bool:
        """True if it shows all of one input."""
        return len(self.inputs) == 1 and not self.predicates and self.outputs == self.columns

    def needed(self) -> frozenset[int]:
        """Return the universal columns that outputs and predicates read."""
        read = (columns_of(e) for e in (*self.predicates, *self.outputs))
        return frozenset[int]().union(*read)


@exactly_cached(4_096)
def block_of(plan: Plan) -> Block:
    """Return a plan as a block; one of any other operator is an input without predicates."""
    found = _flattened(plan)
    once = {encode(predicate): predicate for predicate in found.predicates}
    return Block(found.inputs, tuple(once.values()), found.outputs, plan.schema.names)


def _flattened(plan: Plan) -> Block:
    match plan:
        case Filter(input=child, predicate=predicate):
            below = _flattened(child)
            found = _put(conjuncts(predicate), below.outputs)
            if found is not None:
                return replace(below, predicates=(*below.predicates, *found))
        case Project(input=child, expressions=expressions):
            below = _flattened(child)
            found = _put(expressions, below.outputs)
            if found is not None:
                return replace(below, outputs=found)
        case Join(kind=JoinKind.INNER):
            return _flattened_join(plan)
        case _:
            pass
    return Block((plan,), (), identity_columns(plan.schema), ())


# Of a chain of joins each is asked for as a block of its own, too.
@exactly_cached(1_024)
def _flattened_join(plan: Join) -> Block:
    left, right = _flattened(plan.left), _flattened(plan.right)
    width = left.offsets[-1]
    outputs = left.outputs + tuple(shifted(e, width) for e in right.outputs)
    found = _put(_conditions(plan), outputs)
    if found is None:
        return Block((plan,), (), identity_columns(plan.schema), ())
    moved = tuple(shifted(e, width) for e in right.predicates)
    return Block(left.inputs + right.inputs, (*left.predicates, *moved, *found), outputs, ())


def _conditions(join: Join) -> list[Expression]:
    """Return the predicates of an inner join over the columns of both sides."""
    left, right = join.left.schema.fields, join.right.schema.fields
    width = len(left)
    keys: list[Expression] = []
    for a, b in join.keys:
        sides = Column(a, left[a].name, left[a].dtype), Column(width + b, "", right[b].dtype)
        keys.append(Call("=", sides, DataType.BOOLEAN))
    return keys + conjuncts(join.residual)


def _put(
    expressions: Sequence[Expression], outputs: tuple[Expression, ...]
) -> tuple[Expression, ...] | None:
    """Return expressions over the universal columns; None if they became too long."""
    found = tuple(e for e in (substituted(each, outputs) for each in expressions) if e is not None)
    return found if len(found) == len(expressions) else None


def plan_of(block: Block) -> Plan:
    """Return a plan of a block: joins in the order of the inputs, connected ones first."""
    offsets = block.offsets
    waiting = list(range(len(block.inputs)))
    left = list(block.predicates)
    plan: Plan | None = None
    position: dict[int, int] = {}
    while waiting:
        number = _next(block, waiting)
        waiting.remove(number)
        child = block.inputs[number]
        own = range(offsets[number], offsets[number + 1])
        here = {column: place for place, column in enumerate(own)}
        child = filtered(child, [_at(p, here) for p in _taken(left, here.keys())])
        start = len(position)
        position.update((column, start + place) for place, column in enumerate(own))
        if plan is None:
            plan = child
        else:
            found = [_at(p, position) for p in _taken(left, position.keys())]
            plan = _joined(plan, child, found)
    assert plan is not None  # noqa: S101  (a block has inputs)
    plan = filtered(plan, left)  # what reads no column
    outputs = tuple(_at(e, position) for e in block.outputs)
    if outputs == identity_columns(plan.schema) and block.names == plan.schema.names:
        return plan
    return Project(plan, outputs, block.names)


def _next(block: Block, waiting: list[int]) -> int:
    """Return the first waiting input that an equality connects with those that are joined."""
    owners = block.owners
    joined = {i for i in range(len(block.inputs)) if i not in waiting}
    for number in waiting if joined else ():
        for predicate in block.predicates:
            sides = equality_owners(predicate, owners)
            if sides and number in sides and sides - {number} <= joined:
                return number
    return waiting[0]


def equality_owners(predicate: Expression, owners: Sequence[int]) -> frozenset[int]:
    """Return the two inputs of which a predicate equates columns; none for other predicates."""
    match predicate:
        case Call(function="=", arguments=(Column() as a, Column() as b)):
            sides = frozenset((owners[a.position], owners[b.position]))
            return sides if len(sides) == 2 else frozenset()
        case _:
            return frozenset()


def _taken(left: list[Expression], have: Set[int]) -> list[Expression]:
    """Remove and return the predicates that read nothing but columns that are there."""
    found = [p for p in left if columns_of(p) and columns_of(p) <= have]
    for predicate in found:
        left.remove(predicate)
    return found


def _at(expression: Expression, position: Mapping[int, int]) -> Expression:
    return map_columns(expression, lambda c: Column(position[c.position], c.name, c.dtype))


def _joined(left: Plan, right: Plan, predicates: list[Expression]) -> Join:
    width = len(left.schema)
    pairs = {p: equality(p, width) for p in predicates}
    keys = tuple(key for key in pairs.values() if key is not None)
    rest = [p for p, key in pairs.items() if key is None]
    return Join(left, right, JoinKind.INNER, keys, conjunction(rest))


def part_of(block: Block, numbers: Sequence[int]) -> Block:
    """Return some inputs of a block with the predicates over them, and all columns needed.

    Args:
        block: Whole.
        numbers: Of the inputs, in the order that the part has them.
    """
    position = positions(block, numbers)
    inside = [p for p in block.predicates if columns_of(p) and columns_of(p) <= position.keys()]
    kept = set(inside)
    above = [e for e in (*block.outputs, *block.predicates) if e not in kept]
    read = frozenset[int]().union(*map(columns_of, above))
    columns = block.columns
    shown = [c for c in position if c in read]
    outputs = tuple(_at(columns[c], position) for c in shown)
    names = tuple(_name(columns[c]) for c in shown)
    predicates = tuple(_at(p, position) for p in inside)
    return Block(tuple(block.inputs[i] for i in numbers), predicates, outputs, names)


def positions(block: Block, numbers: Sequence[int]) -> dict[int, int]:
    """Return new numbers, by old ones, of the universal columns of some inputs."""
    offsets = block.offsets
    columns = (c for i in numbers for c in range(offsets[i], offsets[i + 1]))
    return {column: place for place, column in enumerate(columns)}


def _name(column: Expression) -> str:
    return column.name if isinstance(column, Column) else ""


def with_part(block: Block, numbers: Sequence[int], answer: Plan) -> Block:
    """Return the block with one input in the place of some.

    Args:
        block: Whole.
        numbers: Of the inputs, as for `part_of`.
        answer: Gives what `part_of` shows.
    """
    position = positions(block, numbers)
    inside = {p for p in block.predicates if columns_of(p) and columns_of(p) <= position.keys()}
    rest = [p for p in block.predicates if p not in inside]
    read = frozenset[int]().union(*map(columns_of, (*block.outputs, *rest)))
    shown = [c for c in position if c in read]
    others = [i for i in range(len(block.inputs)) if i not in numbers]
    moved = {c: place for place, c in enumerate(shown)}
    width = len(answer.schema)
    moved |= {c: width + place for c, place in positions(block, others).items()}
    below = block_of(answer)
    shift = below.offsets[-1] - width
    old = block.columns
    columns = {
        c: below.outputs[at] if at < width else shifted(old[c], at + shift - c)
        for c, at in moved.items()
    }

    def put(expression: Expression) -> Expression:
        return map_columns(expression, lambda c: columns[c.position])

    inputs = (*below.inputs, *(block.inputs[i] for i in others))
    predicates = (*below.predicates, *map(put, rest))
    return Block(inputs, predicates, tuple(map(put, block.outputs)), block.names)


def connected_parts(block: Block, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of that many inputs that predicates connect, in order."""
    neighbours = _neighbours(block)
    seen: set[frozenset[int]] = set()
    waiting = [frozenset((i,)) for i in range(len(block.inputs))]
    while waiting:
        part = waiting.pop(0)
        if part in seen:
            continue
        seen.add(part)
        if len(part) == size:
            yield tuple(sorted(part))
            continue
        near = frozenset[int]().union(*(neighbours[i] for i in part)) - part
        waiting.extend(part | {i} for i in sorted(near))


def _neighbours(block: Block) -> dict[int, set[int]]:
    owners = block.owners
    found: dict[int, set[int]] = {i: set() for i in range(len(block.inputs))}
    for predicate in block.predicates:
        touched = {owners[c] for c in columns_of(predicate)}
        for i in touched:
            found[i] |= touched - {i}
    return found
