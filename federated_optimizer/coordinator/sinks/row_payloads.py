"""Rows as payloads: JSON objects, or SenML packs (RFC 8428) with the units of their columns."""

import re
from collections.abc import Callable
from typing import Any

from streamsql.catalog.sink_definitions import SinkDefinition, SinkFormat
from streamsql.data.schema import Schema
from streamsql.data.types import MICROSECONDS, DataType, Row, Value, display, text_of
from streamsql.mapping.senml_units import senml_unit
from streamsql.wire.codec import encode_json

# An underscore only where what follows could be read as an escape.
_ESCAPED = re.compile(r"[^A-Za-z0-9:._-]|_(?=x)")

RowObject = Callable[[Row], Any]


def row_objects(definition: SinkDefinition, schema: Schema) -> RowObject:
    """Return what turns rows of a sink into values of JSON."""
    if definition.format == SinkFormat.SENML:
        return SenmlPacks(definition, schema).pack
    return schema.to_object


class SenmlPacks:
    """Rows as SenML packs: a record for each column that has a value.

    The base name is the sink's name and the key, the base time that of the first TIMESTAMP column.
    Values of a unit that SenML does not know are converted to one that it knows.
    """

    def __init__(self, definition: SinkDefinition, schema: Schema) -> None:
        self._name = _first_part(definition.name)
        self._schema = schema
        self._key = tuple(schema.index_of(name) for name in definition.key)
        dtypes = schema.dtypes
        self._time = dtypes.index(DataType.TIMESTAMP) if DataType.TIMESTAMP in dtypes else None
        known = (*definition.units, *("" for _ in range(len(schema) - len(definition.units))))
        self._units = tuple(senml_unit(unit) for unit in known)

    def pack(self, row: Row) -> list[dict[str, Value]]:
        """Return a row's pack.

        Raises:
            ValueError: No column has a value, and SenML cannot say that.
        """
        base: dict[str, Value] = {"bn": self._base_name(row)}
        time = None if self._time is None else row[self._time]
        if isinstance(time, int):
            base["bt"] = time / MICROSECONDS
        records = [
            self._record(position, value)
            for position, value in enumerate(row)
            if value is not None and position != self._time
        ]
        if not records:
            raise ValueError("no column has a value, so there is no SenML pack of this row")
        return [{**base, **records[0]}, *records[1:]]

    def _base_name(self, row: Row) -> str:
        dtypes = self._schema.dtypes
        levels = [_key_part(row[p], dtypes[p]) for p in self._key]
        return "/".join((self._name, *levels)) + "/"

    def _record(self, position: int, value: Value) -> dict[str, Value]:
        field = self._schema.fields[position]
        record: dict[str, Value] = {"n": _part(field.name)}
        if isinstance(value, bool):
            return {**record, "vb": value}
        if isinstance(value, str):
            return {**record, "vs": value}
        if field.dtype in (DataType.INTERVAL, DataType.TIMESTAMP) and isinstance(value, int):
            return {**record, "u": "s", "v": value / MICROSECONDS}
        unit = self._units[position]
        if unit is None or value is None:
            return {**record, "v": value}
        return {**record, "u": unit.name, "v": unit.convert(value)}


def _part(text: str) -> str:
    """Return a text as a part of a name in SenML; different texts differ.

    Other characters than those of SenML's names become `_xHHHH_`, as SQL/XML (ISO 9075-14) writes
    names in XML.

    Examples:
        >>> _part("d/1"), _part("d_2F1"), _part("d_x1")
        ('d_x002F_1', 'd_2F1', 'd_x005F_x1')
    """
    return _ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def _key_part(value: Value, dtype: DataType) -> str:
    """Return a value of a key; NULL and an empty text are what no text becomes."""
    if value is None:
        return "_xnull_"
    return _part(text_of(display(value, dtype))) or "_x_"


def _first_part(text: str) -> str:
    """Return the first part of a name, which SenML lets begin with a letter or a digit only."""
    part = _part(text)
    return part if part[:1].isalnum() else f"x_x_{part}"


def payload_of(value: object) -> bytes:
    """Return a value as JSON.

    Raises:
        WireError: JSON cannot carry it.
    """
    return encode_json(value)
