"""Relations that say where something is, recognized by the names and types of their columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamsql.data.types import DataType, Row, Value

BADGES = ("badge", "tag", "device", "beacon", "asset", "person")
DEVICES = ("device", "node", "mote", "receiver")
ROOMS = ("room", "rid")
FLOORS = ("floor", "level")
CONFIDENCE = "confidence"
MAX_TEXT = 100  # characters of an id and a room


@dataclass(frozen=True, slots=True)
class Placed:
    """Where something is: in a room, at a point of the plan, or both.

    Attributes:
        id: Of the badge or device.
        x: Metres of the plan, as y; both or neither are None.
        confidence: 0 to 1, None where nothing is said of it.
    """

    id: str
    room: str | None
    floor: int | None
    x: float | None
    y: float | None
    confidence: float | None


@dataclass(frozen=True, slots=True)
class PlaceColumns:
    """Positions of the columns that say what is where; None where there is none."""

    id: int
    room: int | None
    floor: int | None
    x: int | None
    y: int | None
    confidence: int | None

    def placed(self, row: Row) -> Placed | None:
        """Return where a row says that something is; None if it names nothing or no place."""
        name = row[self.id]
        if name is None:
            return None
        x, y = _number(row, self.x), _number(row, self.y)
        has_point = x is not None and y is not None
        room = _text(row[self.room]) if self.room is not None else None
        if room is None and not has_point:
            return None
        floor = _number(row, self.floor)
        return Placed(
            id=_text(name) or "",
            room=room,
            floor=None if floor is None else round(floor),
            x=x if has_point else None,
            y=y if has_point else None,
            confidence=_number(row, self.confidence),
        )


def place_columns(
    names: Sequence[str], types: Sequence[DataType], ids: Sequence[str]
) -> PlaceColumns | None:
    """Return the columns of a relation that says where something is, else None.

    Args:
        names: Of its columns.
        types: Of its columns.
        ids: Names that the column of what is placed may have, the most exact one first.
    """
    where = {name.lower(): position for position, name in reversed([*enumerate(names)])}
    named = _first(where, types, ids, {DataType.TEXT, DataType.INTEGER})
    room = _first(where, types, ROOMS, {DataType.TEXT, DataType.INTEGER})
    numbers = {DataType.INTEGER, DataType.DOUBLE}
    x, y = (_first(where, types, (name,), numbers) for name in ("x", "y"))
    if named is None or (room is None and (x is None or y is None)):
        return None
    return PlaceColumns(
        id=named,
        room=room,
        floor=_first(where, types, FLOORS, numbers),
        x=x,
        y=y,
        confidence=_first(where, types, (CONFIDENCE,), numbers),
    )


def _first(
    where: Mapping[str, int],
    types: Sequence[DataType],
    names: Sequence[str],
    allowed: set[DataType],
) -> int | None:
    """Return the position of the first column of these names that has an allowed type."""
    found = (where[name] for name in names if name in where)
    return next((position for position in found if types[position] in allowed), None)


def _number(row: Row, position: int | None) -> float | None:
    """Return a finite number of a row; JSON has no other ones."""
    value = None if position is None else row[position]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _text(value: Value) -> str | None:
    return None if value is None else str(value)[:MAX_TEXT]
