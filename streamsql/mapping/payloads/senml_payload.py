"""SenML (RFC 8428) as JSON or CBOR: records resolved and grouped to rows.

A record's name is the device's name and the part that a column's FROM names. Records of one device
and time are a row; the facts `@device` and `@time` are theirs. A record without a value stands for
its sum, and FROM 'flow sum' reads the sum beside a value.
"""

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal

import msgspec
from typing_extensions import override

from streamsql.data.schema import Field
from streamsql.data.types import MICROSECONDS, Value
from streamsql.mapping.conversions import Conversion, conversion_of
from streamsql.mapping.field_path import Getter
from streamsql.mapping.payloads.cbor_values import decode_cbor
from streamsql.mapping.payloads.payload_formats import JsonReader, cell
from streamsql.mapping.payloads.payload_reader import NO_FACTS, Element, PlainReader, RefusedRow
from streamsql.mapping.shown_values import shown
from streamsql.mapping.source_mapping import ColumnMapping
from streamsql.mapping.time_formats import checked_time
from streamsql.mapping.units import is_unit

_ABSOLUTE = 2**28
"""Seconds; a smaller time counts from now."""

_MAX_SECONDS = 1e12
_VERSION = 10
_SEPARATORS = ":/.-_"
_SUM = " sum"
_LABELS = {
    -1: "bver", -2: "bn", -3: "bt", -4: "bu", -5: "bv", -6: "bs", 0: "n", 1: "u", 2: "v",
    3: "vs", 4: "vb", 5: "s", 6: "t", 7: "ut", 8: "vd",
}  # fmt: skip
_VALUES = ("vs", "vb", "vd")


class SenmlValue(msgspec.Struct, frozen=True):
    """A value with the unit that its record names; empty: none."""

    value: object
    unit: str


class _Bases(msgspec.Struct):
    """Base fields: each holds until the next one."""

    name: str = ""
    time: int = 0
    unit: str = ""
    value: int | float = 0
    sum: int | float = 0


class _Rows(msgspec.Struct):
    """Rows by device and time, records that are refused, and a name that no column asks for."""

    found: dict[tuple[str, int], dict[str, SenmlValue]]
    refused: list[Element]
    unknown: str = ""


class SenmlReader(PlainReader):
    """SenML: FROM is the record's name behind the device's; `.` is the record named as it."""

    def __init__(self, *, cbor: bool) -> None:
        """Choose JSON or CBOR."""
        self._cbor = cbor
        self._json = JsonReader()
        self._parts: list[str] = []

    def getter(self, path: str) -> tuple[Getter, bool]:
        """Return the look-up of a record's value."""
        part = path.removesuffix(_SUM)
        if part and part not in self._parts:
            # The longest first: of 'temp' and 'water:temp' the name decides.
            self._parts = sorted([*self._parts, part], key=len, reverse=True)

        return cell(path), False

    @override
    def conversion(self, field: Field, column: ColumnMapping) -> Conversion:
        """Convert from the unit that a record names, or else as the column says."""
        plain = conversion_of(field, column)
        wanted = column.unit or column.unit_in
        if not wanted:
            return lambda value: plain(value.value if isinstance(value, SenmlValue) else value)
        by_unit: dict[str, Conversion] = {"": plain}

        def convert(value: object) -> Value:
            if not isinstance(value, SenmlValue):
                return plain(value)
            known = by_unit.get(value.unit)
            if known is None:
                if not is_unit(value.unit):
                    raise ValueError(f"the record's unit {value.unit!r:.40} is not known")
                given = msgspec.structs.replace(column, unit_in=value.unit, unit=wanted)
                # There are as many entries at most as names of units.
                known = by_unit[value.unit] = conversion_of(field, given)
            return known(value.value)

        return convert

    def decode(self, payload: bytes, arrival: int) -> object:
        """Return (facts, values by FROM) of every device and time, in the order of the pack."""
        records = decode_cbor(payload) if self._cbor else self._json.decode(payload, arrival)
        if not isinstance(records, list):
            raise ValueError("it is no SenML: expected an array of records")
        rows = _Rows({}, [])
        bases = _Bases()
        for number, record in enumerate(records, 1):
            try:
                fields = _fields(record)
                _take_bases(bases, fields)
            except ValueError as error:
                # Of what comes behind, neither name nor time is known.
                raise ValueError(f"record {number}: {error}") from None
            try:
                self._take(rows, bases, fields, arrival)
            except ValueError as error:
                rows.refused.append((NO_FACTS, RefusedRow(f"record {number}: {error}")))
        if records and not rows.found and not rows.refused:
            raise ValueError(
                f"no record has a name of a column's FROM; one has {shown(rows.unknown)}"
            )
        found: list[Element] = [
            ({"device": device, "time": time}, row) for (device, time), row in rows.found.items()
        ]
        return found + rows.refused

    def _take(self, rows: _Rows, bases: _Bases, fields: dict[str, object], arrival: int) -> None:
        """Add a record's values to its row."""
        found = self._part_of(bases.name, _text(fields, "n"))
        if found is None:
            rows.unknown = rows.unknown or bases.name + _text(fields, "n")
            return
        device, part = found
        values = _values(part, bases, fields)
        if values:
            time = _time(bases.time + _micros(fields, "t"), arrival)
            rows.found.setdefault((device, time), {}).update(values)

    @override
    def elements(self, root: object) -> Iterator[Element] | None:
        """Yield the rows."""
        if not isinstance(root, list):
            return None
        return iter(root)

    def _part_of(self, base: str, name: str) -> tuple[str, str] | None:
        """Return (device, the name that a FROM asks for), or None if none does."""
        if name in self._parts:
            return base.rstrip(_SEPARATORS), name
        whole = base + name
        for part in self._parts:
            if part == ".":
                continue
            if whole == part:
                return "", part
            if whole.endswith(part) and whole[-len(part) - 1] in _SEPARATORS:
                return whole[: -len(part)].rstrip(_SEPARATORS), part
        if "." in self._parts and whole:
            return whole.rstrip(_SEPARATORS), "."
        return None


def _fields(record: object) -> dict[str, object]:
    if not isinstance(record, dict):
        raise ValueError(f"{shown(record)} is no object")
    fields = {
        _LABELS.get(label, str(label)) if isinstance(label, int) else label: value
        for label, value in record.items()
    }
    for label in fields:
        if label.endswith("_"):
            # RFC 8428, section 4.4: who does not understand it does not process the pack.
            raise ValueError(f"the field {label!r:.40} has to be understood and is not")
    return fields


def _take_bases(bases: _Bases, fields: dict[str, object]) -> None:
    version = fields.get("bver", _VERSION)
    if type(version) is not int or not 0 < version <= _VERSION:
        raise ValueError(f"version {shown(version)}; the latest that is read is {_VERSION}")
    if "bn" in fields:
        bases.name = _text(fields, "bn")
    if "bt" in fields:
        bases.time = _micros(fields, "bt")
    if "bu" in fields:
        bases.unit = _text(fields, "bu")
    if "bv" in fields:
        bases.value = _number(fields, "bv")
    if "bs" in fields:
        bases.sum = _number(fields, "bs")


def _values(part: str, bases: _Bases, fields: dict[str, object]) -> dict[str, SenmlValue]:
    unit = _text(fields, "u") or bases.unit
    found: dict[str, SenmlValue] = {}
    if "s" in fields:
        found[part + _SUM] = SenmlValue(_total(bases.sum, _number(fields, "s")), unit)
    if "v" in fields:
        found[part] = SenmlValue(_total(bases.value, _number(fields, "v")), unit)
        return found
    for label in _VALUES:
        if label in fields:
            found[part] = SenmlValue(fields[label], "")
            return found
    if not found:
        return {}
    found[part] = found[part + _SUM]
    return found


def _total(base: float, number: float) -> object:
    if not base:
        return number
    if isinstance(base, int) and isinstance(number, int):
        return base + number
    # As decimals, so that 20.1 and 0.1 are 20.2.
    return Decimal(repr(base)) + Decimal(repr(number))


def _time(micros: int, arrival: int) -> int:
    return checked_time(micros if micros >= _ABSOLUTE * MICROSECONDS else arrival + micros)


def _micros(fields: Mapping[str, object], label: str) -> int:
    seconds = _number(fields, label) if label in fields else 0
    if abs(seconds) > _MAX_SECONDS:
        raise ValueError(f"{label}: {shown(seconds)} s is no time within the years 1 to 9999")
    return round(seconds * MICROSECONDS)


def _number(fields: Mapping[str, object], label: str) -> int | float:
    value = fields[label]
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{label}: {shown(value)} is no number")
    if isinstance(value, int) and value.bit_length() > 64:
        raise ValueError(f"{label}: {shown(value)} does not fit 64 bits")
    if not math.isfinite(value):
        raise ValueError(f"{label}: {shown(value)} is no finite number")
    return value


def _text(fields: Mapping[str, object], label: str) -> str:
    value = fields.get(label, "")
    if not isinstance(value, str):
        raise ValueError(f"{label}: {shown(value)} is no text")
    return value
