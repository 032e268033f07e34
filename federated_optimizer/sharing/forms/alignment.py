"""Blocks over the inputs of others: which input of the one is which of the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.sharing.forms.block_names import equal_classes, equal_pair, pinned
from federated_optimizer.sharing.forms.blocks import Block
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan, input_forms
from federated_optimizer.sharing.forms.expression_text import text_of
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    map_columns,
)
from streamsql.algebra.operators import Plan
from streamsql.data.types import DataType

MAX_ASSIGNMENTS = 64
"""Assignments of inputs that are alike; further ones are not tried."""


def aligned(wanted: Block, offered: Block) -> Iterator[Block]:
    """Yield a wanted block over the inputs of an offered one, in every possible assignment.

    Inputs correspond if they have the same rows, whatever columns they show. An assignment is left
    out where an equality of the offered block is none of the wanted one, nor follows from it as
    columns that equal one constant, or an input lacks a column that the wanted block reads.

    Args:
        wanted: With as many inputs as the offered one.
        offered: Its inputs are those of the blocks yielded.
    """
    if len(wanted.inputs) != len(offered.inputs):
        return
    for count, chosen in enumerate(_assignments(wanted, offered)):
        if count == MAX_ASSIGNMENTS:
            return
        moved = _moved(wanted, offered, chosen)
        if moved is not None:
            yield moved


def _assignments(wanted: Block, offered: Block) -> Iterator[tuple[int, ...]]:
    """Yield, by input of the offered block, that of the wanted one."""
    forms, have = input_forms(wanted), input_forms(offered)
    if sorted(forms) != sorted(have):
        return
    classes = _named_classes(wanted)
    pairs = _named_pairs(offered)

    def extend(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        at = len(chosen)
        if at == len(have):
            yield chosen
            return
        for number in range(len(forms)):
            if number in chosen or forms[number] != have[at]:
                continue
            longer = (*chosen, number)
            if all(_holds(pair, longer, classes) for pair in pairs[at]):
                yield from extend(longer)

    yield from extend(())


_Named = tuple[int, str]


# A block is aligned with each shape of its inputs, and these with each block.
@exactly_cached(1_024)
def _named_classes(block: Block) -> dict[_Named, int]:
    """Return the number of the class of columns that are equal, by input and column."""
    named = _named_columns(block.inputs).named
    found: dict[_Named, int] = {}
    predicates = (*block.predicates, *_equal_by_constants(block.predicates))
    for members in equal_classes(predicates).values():
        for column in members:
            found[named[column]] = members[0]
    return found


def _equal_by_constants(predicates: Sequence[Expression]) -> Iterator[Expression]:
    """Yield equalities of columns that equal one constant: from a = 2 and b = 2 that of a and b."""
    first: dict[Literal, Column] = {}
    for column, value in filter(None, map(pinned, predicates)):
        other = first.setdefault(value, column)
        if other.position != column.position:
            yield Call("=", (other, column), DataType.BOOLEAN)


@exactly_cached(1_024)
def _named_pairs(block: Block) -> list[list[tuple[_Named, _Named]]]:
    """Return the equalities of a block by the later of the two inputs."""
    named = _named_columns(block.inputs).named
    found: list[list[tuple[_Named, _Named]]] = [[] for _ in block.inputs]
    for predicate in block.predicates:
        pair = equal_pair(predicate)
        if pair is not None:
            a, b = (named[c] for c in pair)
            found[max(a[0], b[0])].append((a, b))
    return found


@dataclass(frozen=True, slots=True)
class _NamedColumns:
    """The universal columns of inputs.

    Attributes:
        named: The input and the name of each.
        places: The first column of each input and name.
        columns: As expressions.
    """

    named: tuple[_Named, ...]
    places: dict[_Named, int]
    columns: tuple[Expression, ...]


@exactly_cached(4_096)
def _named_columns(inputs: tuple[Plan, ...]) -> _NamedColumns:
    # Blocks are aligned with thousands of others, and share their inputs with what they become.
    named = tuple(
        (at, name) for at, each in enumerate(inputs) for name in canonical_plan(each).columns
    )
    places: dict[_Named, int] = {}
    for column, each in enumerate(named):
        places.setdefault(each, column)
    return _NamedColumns(named, places, Block(inputs, (), (), ()).columns)


def _holds(pair: tuple[_Named, _Named], chosen: Sequence[int], classes: dict[_Named, int]) -> bool:
    a, b = ((chosen[number], name) for number, name in pair)
    return a == b or (a in classes and classes[a] == classes.get(b))


def _moved(wanted: Block, offered: Block, chosen: Sequence[int]) -> Block | None:
    """Return the wanted block over the offered inputs; None if a column is missing."""
    ours, theirs = _named_columns(wanted.inputs), _named_columns(offered.inputs)
    number_of = {number: at for at, number in enumerate(chosen)}
    place: dict[int, Expression] = {}
    for column in wanted.needed():
        owner, name = ours.named[column]
        found = theirs.places.get((number_of[owner], name))
        if found is None:
            return None
        place[column] = theirs.columns[found]

    def move(column: Column) -> Expression:
        return place[column.position]

    return replace(
        wanted,
        inputs=offered.inputs,
        predicates=tuple(map_columns(p, move) for p in wanted.predicates),
        outputs=tuple(map_columns(e, move) for e in wanted.outputs),
    )


@dataclass(frozen=True, slots=True)
class Available:
    """The expressions of a block that a leaf shows.

    Attributes:
        places: Columns of the leaf by what they show; see `text_of`.
        classes: Columns of the block that are equal.
    """

    places: dict[str, int]
    classes: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, block: Block) -> "Available":
        """Return what shows the outputs of a block."""
        classes = equal_classes(block.predicates)
        found = cls({}, classes)
        for place, expression in enumerate(block.outputs):
            found.places.setdefault(found.text(expression), place)
        return found

    def text(self, expression: Expression) -> str:
        """Return one text for expressions that have one value in all rows of the block."""
        return text_of(expression, lambda c: str(self.classes.get(c, (c,))[0]))


def rewritten(expression: Expression, available: Available, leaf: Plan) -> Expression | None:
    """Return an expression of a block's universal columns over what a leaf shows of the block.

    None if it reads what the leaf does not show.
    """
    if not columns_of(expression):
        return expression
    place = available.places.get(available.text(expression))
    if place is not None:
        shown = leaf.schema.fields[place]
        return Column(place, shown.name, shown.dtype)
    match expression:
        case Call(function=function, arguments=arguments, dtype=dtype):
            found = [rewritten(each, available, leaf) for each in arguments]
            kept = tuple(each for each in found if each is not None)
            return Call(function, kept, dtype) if len(kept) == len(found) else None
        case _:
            return None
