"""Joins of two relations by distance: a grid instead of a comparison of all pairs.

Cells are a little wider than the distance asked for, so that rounding never puts two rows that
satisfy the condition more than one cell apart.
"""

import itertools
import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from stream_engine.recursion.program.item_tables import Item
from stream_engine.recursion.program.rules import Rule
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    shifted,
)
from streamsql.algebra.scalar_functions.scalar import compile_predicate, compile_row, key_of
from streamsql.data.types import Row

_SLACK = 1.001
_FARTHEST_CELL = 1e9
_LEAST_RADIUS = 1e-9

Point = tuple[float, ...]
Changed = dict[int, list[Item]]
"""Per leaf, the items that entered or leave; they are marked by `sent` = 1, all others by 0."""


class GridError(Exception):
    """Places lie too far apart for a grid of cells of this size."""


def proximity_join(rule: Rule) -> "ProximityJoin | None":
    """Return a join by grid for a rule, if it is one of two atoms by distance.

    It must have a condition DISTANCE(…) < r between columns of one atom and columns of the other,
    and every column that it derives must come from one atom.
    """
    if len(rule.atoms) != 2 or any(len(_atoms_of(rule, e)) > 1 for e in rule.head):
        return None
    for predicate in rule.predicates:
        condition = _Condition.of(rule, predicate)
        if condition is not None:
            return ProximityJoin(rule, condition)
    return None


class _Condition:
    """DISTANCE(…) < radius between two atoms.

    Attributes:
        places: Per atom, the columns of its row that are its coordinates.
        radius: In the unit of the coordinates.
        below: The least number that a distance must not reach: the radius, or the next number
            above it where the radius itself is allowed.
    """

    def __init__(
        self,
        predicate: Expression,
        places: tuple[tuple[int, ...], tuple[int, ...]],
        radius: float,
        below: float,
    ) -> None:
        self.predicate = predicate
        self.places = places
        self.radius = radius
        self.below = below

    @staticmethod
    def of(rule: Rule, predicate: Expression) -> "_Condition | None":
        match predicate:
            case Call(function="<" | "<=" as name, arguments=(Call() as call, Literal(value=most))):
                pass
            case Call(function=">" | ">=" as name, arguments=(Literal(value=most), Call() as call)):
                pass
            case _:
                return None
        if call.function != "DISTANCE" or not isinstance(most, int | float):
            return None
        if len(call.arguments) == 2:  # points in texts have no order to search by
            return None
        half = len(call.arguments) // 2
        ends = [
            _columns_of_one_atom(rule, part)
            for part in (call.arguments[:half], call.arguments[half:])
        ]
        if ends[0] is None or ends[1] is None or ends[0][0] == ends[1][0] or most < _LEAST_RADIUS:
            return None
        (_, first), (_, second) = sorted([ends[0], ends[1]])
        radius = float(most)
        below = radius if name in ("<", ">") else math.nextafter(radius, math.inf)
        return _Condition(predicate, (first, second), radius, below)


class ProximityJoin:
    """All pairs of rows that satisfy a rule's equalities and its condition on distance.

    State: per atom, its rows by key and cell; one grid for both where they are read alike. Work per
    changed row: the rows in the cells around it.
    """

    def __init__(self, rule: Rule, condition: _Condition) -> None:
        self._atoms = rule.atoms
        self._below = condition.below
        rest = [p for p in rule.predicates if p != condition.predicate]
        keys = [_equality(rule, p) for p in rest]
        others = conjunction([p for p, key in zip(rest, keys, strict=True) if key is None])
        self._holds = None if others is None else compile_predicate(others)
        columns = [tuple(key[atom] for key in keys if key is not None) for atom in (0, 1)]
        derives = [
            [i for i, e in enumerate(rule.head) if _side(rule, e) == atom] for atom in (0, 1)
        ]
        parts = (_part(rule, 0, derives[0]), _part(rule, 1, derives[1]))
        cell = condition.radius * _SLACK
        same = rule.atoms[0] == rule.atoms[1] and columns[0] == columns[1] and others is None
        self._is_symmetric = same and condition.places[0] == condition.places[1]
        if self._is_symmetric:
            self._grids = (_Grid(condition.places[0], columns[0], parts, cell),) * 2
        else:
            self._grids = (
                _Grid(condition.places[0], columns[0], (parts[0], _nothing), cell),
                _Grid(condition.places[1], columns[1], (_nothing, parts[1]), cell),
            )
        merged = derives[0] + derives[1]
        self._in_order = (
            None
            if merged == sorted(merged)
            else _reordered([merged.index(i) for i in sorted(merged)])
        )

    def add(self, changed: Changed) -> None:
        """Ingest the rows that entered.

        Raises:
            GridError: One lies too far away.
        """
        for grid, leaf in self._each_grid():
            for item in changed[leaf]:
                grid.add(item)

    def remove(self, changed: Changed) -> None:
        """Drop the rows that left."""
        for grid, leaf in self._each_grid():
            for item in changed[leaf]:
                grid.remove(item)

    def pairs(self, changed: Changed) -> list[tuple[Row, int]]:
        """Return what the changed rows derive, each with the number of changed rows in it."""
        found: list[tuple[Row, int]] = []
        if self._is_symmetric:
            self._pairs_both_ways(changed[self._atoms[0]], found)
        else:
            for atom in (0, 1):
                self._pairs_from(atom, changed[self._atoms[atom]], found)
        if self._in_order is not None:
            reorder = self._in_order
            return [(reorder(row), count) for row, count in found]
        return found

    def _pairs_both_ways(self, items: list[Item], found: list[tuple[Row, int]]) -> None:
        grid, below = self._grids[0], self._below
        dist, append = math.dist, found.append
        for item in items:
            entry = grid.entry_of(item)
            if entry is None:
                continue
            cell, point, (near, far), _ = entry
            for bucket in grid.around(cell):
                for _, there, (other_near, other_far), other in bucket.values():
                    if dist(point, there) < below:
                        count = 1 + other.sent
                        append((near + other_far, count))
                        append((other_near + far, count))

    def _pairs_from(self, atom: int, items: list[Item], found: list[tuple[Row, int]]) -> None:
        mine, theirs = self._grids[atom], self._grids[1 - atom]
        below, holds, dist = self._below, self._holds, math.dist
        for item in items:
            entry = mine.entry_of(item)
            if entry is None:
                continue
            cell, point, parts, _ = entry
            for bucket in theirs.around(cell):
                for _, there, other_parts, other in bucket.values():
                    if dist(point, there) >= below:
                        continue
                    wide = item.row + other.row if atom == 0 else other.row + item.row
                    if holds is None or holds(wide):
                        pair = (parts, other_parts) if atom == 0 else (other_parts, parts)
                        found.append((pair[0][0] + pair[1][1], 1 + other.sent))

    def _each_grid(self) -> list[tuple["_Grid", int]]:
        grids = list(zip(self._grids, self._atoms, strict=True))
        return grids[:1] if self._is_symmetric else grids


Cell = tuple[Row, Point]
"""The values that equalities compare, and the cell's position."""

Entry = tuple[Cell, Point, tuple[Row, Row], Item]
"""Cell, place, what the row gives to the derived row as the first and as the second atom, item."""

Bucket = dict[Item, Entry]

_REMEMBERED_CELLS = 10_000


class _Grid:
    def __init__(
        self,
        place: tuple[int, ...],
        key: tuple[int, ...],
        parts: tuple[Callable[[Row], Row], Callable[[Row], Row]],
        cell: float,
    ) -> None:
        self._place_of = key_of(place)
        self._key_of = key_of(key)
        self._parts = parts
        self._cell = cell
        self._entries: dict[Item, Entry] = {}
        self._cells: dict[Cell, Bucket] = {}
        self._around: dict[Cell, list[Cell]] = {}

    def entry_of(self, item: Item) -> Entry | None:
        """Return where an item of this grid is, or None when it matches nothing (NULL)."""
        return self._entries.get(item)

    def add(self, item: Item) -> None:
        row = item.row
        place: Any = self._place_of(row)
        key = self._key_of(row)
        if None in place or None in key:
            return
        size = self._cell
        position = tuple([coordinate // size for coordinate in place])
        if max(map(abs, position)) > _FARTHEST_CELL:
            raise GridError(f"a place {place!r:.60} is too far away for the grid comparison")
        first, second = self._parts
        cell = (key, position)
        entry = self._entries[item] = (cell, place, (first(row), second(row)), item)
        self._cells.setdefault(cell, {})[item] = entry

    def remove(self, item: Item) -> None:
        entry = self._entries.pop(item, None)
        if entry is not None:
            bucket = self._cells[entry[0]]
            del bucket[item]
            if not bucket:
                del self._cells[entry[0]]

    def around(self, cell: Cell) -> list[Bucket]:
        neighbours = self._around.get(cell)
        if neighbours is None:
            if len(self._around) >= _REMEMBERED_CELLS:
                self._around = {}
            neighbours = self._around[cell] = _neighbours(cell)
        cells = self._cells
        return [cells[other] for other in neighbours if other in cells]


def _neighbours(cell: Cell) -> list[Cell]:
    key, position = cell
    sides = [(p - 1.0, p, p + 1.0) for p in position]
    return [(key, place) for place in itertools.product(*sides)]


def _atoms_of(rule: Rule, expression: Expression) -> set[int]:
    return {position >= rule.widths[0] for position in columns_of(expression)}


def _side(rule: Rule, expression: Expression) -> int:
    return int(max(_atoms_of(rule, expression), default=False))


def _columns_of_one_atom(
    rule: Rule, expressions: tuple[Expression, ...]
) -> tuple[int, tuple[int, ...]] | None:
    """Return atom and columns when all the expressions are columns of one atom."""
    positions = [e.position for e in expressions if isinstance(e, Column)]
    atoms = {int(position >= rule.widths[0]) for position in positions}
    if len(positions) != len(expressions) or len(atoms) != 1:
        return None
    (atom,) = atoms
    return atom, tuple(position - rule.offsets[atom] for position in positions)


def _equality(rule: Rule, predicate: Expression) -> tuple[int, int] | None:
    if not isinstance(predicate, Call) or predicate.function != "=":
        return None
    ends = [_columns_of_one_atom(rule, (argument,)) for argument in predicate.arguments]
    if ends[0] is None or ends[1] is None or ends[0][0] == ends[1][0]:
        return None
    first, second = sorted([ends[0], ends[1]])
    return first[1][0], second[1][0]


def _part(rule: Rule, atom: int, derives: list[int]) -> Callable[[Row], Row]:
    return compile_row(tuple(shifted(rule.head[i], -rule.offsets[atom]) for i in derives))


def _nothing(_row: Row) -> Row:
    return ()


def _reordered(order: list[int]) -> Callable[[Row], Row]:
    pick: Callable[[Row], Any] = itemgetter(*order)
    return pick if len(order) > 1 else lambda row: (pick(row),)
