"""Changes of the rows of a stored table: what UPDATE and MERGE make of them, wherever they are."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from streamsql.algebra.expressions import Call, Column, Expression, conjuncts
from streamsql.algebra.scalar_functions.scalar import compile_expression, compile_predicate
from streamsql.data.types import Row

MAX_PAIRS = 10_000_000
"""Pairs of rows that a MERGE without an equation in its ON may look at."""

NewValues = tuple[tuple[int, Expression], ...]
"""Position of a column, and its new value."""

RowChange = tuple[Row | None, Row | None]
"""A row that goes and the one that comes in its place; None: there is none."""


class MergeError(ValueError):
    """A MERGE whose outcome would depend on the order of rows, or that takes too long."""


class RowAction(msgspec.Struct, frozen=True):
    """One WHEN of a MERGE. Expressions read a row of the table, followed by one of the source.

    Attributes:
        matched: Whether it is for pairs that meet; else for rows of the source that meet none,
            behind NULLs in place of the table's row.
        condition: Of the pairs that it is for; None: all.
        delete: The row of the table goes.
        values: New values of the row of the table, or all values of a new row; empty: nothing
            happens.
    """

    matched: bool
    condition: Expression | None = None
    delete: bool = False
    values: NewValues = ()


class RowMerge(msgspec.Struct, frozen=True):
    """MERGE: how rows of a source meet those of a table, and what happens then.

    Attributes:
        width: Columns of the table.
        on: Over a row of the table, followed by one of the source.
        actions: The first that fits is taken.
    """

    width: int
    on: Expression
    actions: tuple[RowAction, ...]


def updated_rows(
    rows: Iterable[Row], predicate: Expression | None, values: NewValues
) -> Iterator[RowChange]:
    """Yield each row that an UPDATE changes, with what it becomes, before the next row is taken."""
    chosen = None if predicate is None else compile_predicate(predicate)
    change = _changing(values)
    for row in rows:
        if chosen is None or chosen(row):
            new = change(row, row)
            if new != row:
                yield row, new


def merged_rows(rows: Iterable[Row], source: Sequence[Row], merge: RowMerge) -> Iterator[RowChange]:
    """Yield what a MERGE makes of the rows of a table, and then the rows that it adds.

    What becomes of a row is yielded before the next row is taken.

    Args:
        rows: Of the table.
        source: What USING names.
        merge: The rest.

    Raises:
        MergeError: Two rows of the source change one row of the table, or there are too many pairs.
    """
    partners = _partners(source, merge)
    for_pairs = [_Action(action) for action in merge.actions if action.matched]
    for_others = [_Action(action) for action in merge.actions if not action.matched]
    met: set[int] = set()
    for row in rows:
        change: RowChange | None = None
        for number in partners(row):
            met.add(number)
            pair = row + source[number]
            action = next((each for each in for_pairs if each.fits(pair)), None)
            if action is None or not action.acts:
                continue
            if change is not None:
                raise MergeError(f"two rows of USING change one row of the table: {row!r:.200}")
            change = row, (None if action.delete else action.new(pair, row))
        if change is not None and change[1] != row:
            yield change
    nulls = (None,) * merge.width
    for number, given in enumerate(source):
        if number in met:
            continue
        pair = nulls + given
        action = next((each for each in for_others if each.fits(pair)), None)
        if action is not None and action.acts:
            yield None, action.new(pair, nulls)


class _Action:
    """A compiled `RowAction`."""

    def __init__(self, action: RowAction) -> None:
        self.delete = action.delete
        self.acts = action.delete or bool(action.values)
        condition = action.condition
        self.fits = _always if condition is None else compile_predicate(condition)
        self.new = _changing(action.values)


def _always(_row: Row) -> bool:
    return True


def _changing(values: NewValues) -> Callable[[Row, Row], Row]:
    """Return what makes a new row, of the row that expressions read and the one that changes."""
    made = [(position, compile_expression(value)) for position, value in values]

    def change(read: Row, row: Row) -> Row:
        new = list(row)
        for position, value in made:
            new[position] = value(read)
        return tuple(new)

    return change


def _partners(source: Sequence[Row], merge: RowMerge) -> Callable[[Row], list[int]]:
    """Return what finds the numbers of the rows of the source that meet a row of the table."""
    meets = compile_predicate(merge.on)
    equal = [pair for part in conjuncts(merge.on) if (pair := _equation(part, merge.width))]
    if not equal:
        return _every_pair(source, meets)
    mine = [left for left, _ in equal]
    theirs = [right - merge.width for _, right in equal]
    index: dict[Row, list[int]] = {}
    for number, row in enumerate(source):
        index.setdefault(tuple([row[p] for p in theirs]), []).append(number)

    def find(row: Row) -> list[int]:
        candidates = index.get(tuple([row[p] for p in mine]), ())
        return [number for number in candidates if meets(row + source[number])]

    return find


def _every_pair(source: Sequence[Row], meets: Callable[[Row], bool]) -> Callable[[Row], list[int]]:
    looked = 0

    def find(row: Row) -> list[int]:
        nonlocal looked
        looked += len(source)
        if looked > MAX_PAIRS:
            raise MergeError(
                f"MERGE would compare more than {MAX_PAIRS:,} pairs of rows: ON has no equation "
                "between a column of the table and one of USING"
            )
        return [number for number, given in enumerate(source) if meets(row + given)]

    return find


def _equation(part: Expression, width: int) -> tuple[int, int] | None:
    match part:
        case Call(function="=", arguments=(Column(position=one), Column(position=other))):
            first, second = sorted((one, other))
            return (first, second) if first < width <= second else None
        case _:
            return None
