"""Shape of a source at a gateway and in the catalog, and their differences."""

import zlib
from typing import Annotated

import msgspec

from streamsql.algebra.operators import Scan, ScanPart, SourceKind
from streamsql.data.schema import Schema
from streamsql.wire.bounds import Name, Names

DIFFERENCE_CODE = "definition_differs"
DIFFERENCE_HINT = (
    "its rows follow when the catalog's definition reaches the gateway; check that it is connected"
)
MAX_NAMED = 5
"""Differences that are named one by one."""
MAX_TEXT = 1_000


class SourceShape(msgspec.Struct, frozen=True):
    """All that makes rows of a source mean something else if it differs.

    Lifetime and lateness are no part of it: they are those of whoever reads.

    Attributes:
        columns: Names with their types, in order.
        key: Names of columns; None: whoever reads it does not look at keys.
        time: Column of the event time; empty: rows are stamped on arrival.
        units: Of the columns, "" for none; empty: no column has one.
    """

    source: Name
    is_link: bool
    columns: Annotated[tuple[tuple[Name, Name], ...], msgspec.Meta(max_length=10_000)]
    key: Names | None = ()
    time: Name = ""
    units: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10_000)] = ()


def shape_of(scan: Scan) -> SourceShape:
    """Return the shape of a source as it is declared, or as a query reads it."""
    columns, time = scan.columns, scan.time_column
    return SourceShape(
        source=scan.source,
        is_link=scan.kind == SourceKind.LINK,
        columns=tuple((field.name, field.dtype.value) for field in columns.fields),
        key=_names(columns, scan.key) if scan.part in (ScanPart.ROWS, ScanPart.LATE) else None,
        time="" if time is None else columns.names[time],
        units=scan.units,
    )


def layout_of(scan: Scan) -> int:
    """Return a number that is another when rows of a source mean something else.

    That is so with other columns, types, keys, event times or units; where the values come from
    does not matter, nor which part of the source is read.
    """
    whole = msgspec.structs.replace(scan, part=ScanPart.ROWS)
    return zlib.crc32(msgspec.json.encode(shape_of(whole))) + 1


def differences(catalog: SourceShape, there: SourceShape) -> str:
    """Return how a source is defined otherwise than in the catalog; empty: it is not.

    Args:
        catalog: As a query reads it.
        there: As it is defined at a gateway, which may have made up anything.

    Examples:
        >>> one = SourceShape("s", False, (("a", "TEXT"), ("b", "TEXT")))
        >>> other = SourceShape("s", False, (("b", "TEXT"), ("a", "INTEGER")), ("b",))
        >>> differences(one, other)
        'column a is INTEGER, not TEXT; the columns are (b, a), not (a, b); the key is (b), not ()'
    """
    found: list[str] = []
    if there.is_link != catalog.is_link:
        found.append("it is a LINK SOURCE" if there.is_link else "it is not a LINK SOURCE")
    found += _columns(catalog, there)
    if catalog.key is not None and there.key is not None:
        found += _other("the key is", _listed(there.key), _listed(catalog.key))
    arrival = "the arrival"
    found += _other("the event time is", there.time or arrival, catalog.time or arrival)
    found += _units(catalog, there)
    more = len(found) - MAX_NAMED
    shown = found[:MAX_NAMED] + ([f"and {more} more differences"] if more > 0 else [])
    return "; ".join(shown)[:MAX_TEXT]


def _columns(catalog: SourceShape, there: SourceShape) -> list[str]:
    wanted = {name.lower(): (name, dtype) for name, dtype in catalog.columns}
    given = {name.lower(): (name, dtype) for name, dtype in there.columns}
    found = [f"column {name} is missing" for key, (name, _) in wanted.items() if key not in given]
    found += [
        f"column {name} is not in the catalog"
        for key, (name, _) in given.items()
        if key not in wanted
    ]
    found += [
        f"column {name} is {given[key][1]}, not {dtype}"
        for key, (name, dtype) in wanted.items()
        if key in given and given[key][1] != dtype
    ]
    if wanted.keys() == given.keys():
        orders = (_listed(tuple(name for name, _ in shape.columns)) for shape in (there, catalog))
        found += _other("the columns are", *orders)
    return found


def _units(catalog: SourceShape, there: SourceShape) -> list[str]:
    wanted, given = _unit_by_column(catalog), _unit_by_column(there)
    return [
        f"column {name} has {_unit(given[name])}, not {_unit(unit)}"
        for name, unit in wanted.items()
        if name in given and given[name] != unit
    ]


def _unit_by_column(shape: SourceShape) -> dict[str, str]:
    units = shape.units or ("",) * len(shape.columns)
    names = (name for name, _dtype in shape.columns)
    return {name.lower(): unit for name, unit in zip(names, units, strict=False)}


def _unit(unit: str) -> str:
    return f"the unit {unit}" if unit else "no unit"


def _other(what: str, there: str, catalog: str) -> list[str]:
    return [] if there.lower() == catalog.lower() else [f"{what} {there}, not {catalog}"]


def _listed(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})"


def _names(schema: Schema, positions: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(schema.names[position] for position in positions)
