"""Descriptions by which Home Assistant finds the columns of a sink as entities (MQTT discovery).

One retained message per key and column, below `homeassistant/sensor` or, for BOOLEAN columns,
`homeassistant/binary_sensor`. The key is the device. A key without a row is shown as unavailable.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.catalog.topic_template import level_text
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.codec import encode_json

_NOT_IN_A_WORD = re.compile(r"[^A-Za-z0-9-]+")
_NOT_IN_A_COLUMN = re.compile(r"[^A-Za-z0-9_]")
_NOT_IN_AN_ENTITY = re.compile(r"[^a-z0-9]+")
_WORD = 40
"""Characters of the sink's name, of a value of the key and of a column that ids show."""

# Units as Home Assistant writes them, with the device class of that unit, or none: several kinds
# of values share it.
_UNITS: dict[str, tuple[str, str]] = {
    "Cel": ("°C", "temperature"),
    "degF": ("°F", "temperature"),
    "K": ("K", "temperature"),
    "%RH": ("%", "humidity"),
    "%EL": ("%", "battery"),
    "%": ("%", ""),
    "W": ("W", "power"),
    "kW": ("kW", "power"),
    "mW": ("mW", "power"),
    "MW": ("MW", "power"),
    "Wh": ("Wh", "energy"),
    "kWh": ("kWh", "energy"),
    "MWh": ("MWh", "energy"),
    "J": ("J", "energy"),
    "kJ": ("kJ", "energy"),
    "MJ": ("MJ", "energy"),
    "V": ("V", "voltage"),
    "mV": ("mV", "voltage"),
    "A": ("A", "current"),
    "mA": ("mA", "current"),
    "VA": ("VA", "apparent_power"),
    "var": ("var", "reactive_power"),
    "Hz": ("Hz", "frequency"),
    "kHz": ("kHz", "frequency"),
    "lx": ("lx", "illuminance"),
    "Pa": ("Pa", "pressure"),
    "hPa": ("hPa", "pressure"),
    "kPa": ("kPa", "pressure"),
    "bar": ("bar", "pressure"),
    "mbar": ("mbar", "pressure"),
    "dBm": ("dBm", "signal_strength"),
    "dB": ("dB", "sound_pressure"),
    "dBA": ("dBA", "sound_pressure"),
    "m": ("m", "distance"),
    "cm": ("cm", "distance"),
    "mm": ("mm", "distance"),
    "km": ("km", "distance"),
    "kg": ("kg", "weight"),
    "g": ("g", "weight"),
    "m/s": ("m/s", "speed"),
    "km/h": ("km/h", "speed"),
    "s": ("s", "duration"),
    "min": ("min", "duration"),
    "h": ("h", "duration"),
    "ug/m3": ("µg/m³", ""),
    "mg/m3": ("mg/m³", ""),
    "ppm": ("ppm", ""),
    "ppb": ("ppb", ""),
    "W/m2": ("W/m²", "irradiance"),
    "m3": ("m³", ""),
    "l": ("L", ""),
    "m3/h": ("m³/h", "volume_flow_rate"),
    "l/min": ("L/min", "volume_flow_rate"),
    "B": ("B", "data_size"),
    "kB": ("kB", "data_size"),
    "MB": ("MB", "data_size"),
    "GB": ("GB", "data_size"),
    "deg": ("°", ""),
    "uS/cm": ("µS/cm", "conductivity"),
}
_METERS = frozenset({"energy"})


class Descriptions:
    """Describes the keys of one sink."""

    def __init__(self, definition: SinkDefinition, schema: Schema) -> None:
        self._definition = definition
        self._schema = schema
        self._dtypes = tuple(schema.dtypes[schema.index_of(name)] for name in definition.key)
        self._columns = [
            position for position, name in enumerate(schema.names) if name not in definition.key
        ]

    def of(self, key: Row, topic: str) -> list[tuple[str, bytes]]:
        """Return topics and payloads that describe the columns of a key.

        Args:
            key: Values of the key's columns.
            topic: Where the key's row is published.
        """
        return [self._entity(key, topic, position) for position in self._columns]

    def _entity(self, key: Row, topic: str, position: int) -> tuple[str, bytes]:
        field = self._schema.fields[position]
        component = "binary_sensor" if field.dtype == DataType.BOOLEAN else "sensor"
        levels = [level_text(v, d) for v, d in zip(key, self._dtypes, strict=True)]
        parts = (self._definition.name, *levels)
        device = _device(parts)
        unique = f"{device}_{_column(field.name)}"
        where = f"{self._definition.discovery}/{component}/{unique}/config"
        shown = " ".join(str(value) for value in key if value is not None)
        said: dict[str, Any] = {
            "name": field.name,
            "unique_id": unique,
            "default_entity_id": f"{component}.{_entity_name(*parts, field.name)}",
            "state_topic": topic,
            "value_template": _template(field.name, field.dtype),
            "availability": [
                {"topic": topic, "value_template": "{{ 'online' if value else 'offline' }}"}
            ],
            "device": {
                "identifiers": [device],
                "name": f"{self._definition.name} {shown}".strip()[:200],
                "manufacturer": "Pando",
            },
            "origin": {"name": "Pando"},
            **self._measure(position),
        }
        return where, encode_json(said)

    def _measure(self, position: int) -> dict[str, str]:
        dtype = self._schema.dtypes[position]
        if dtype == DataType.TIMESTAMP:
            return {"device_class": "timestamp"}
        if dtype == DataType.INTERVAL:
            unit, kind = "s", "duration"
        elif dtype.is_numeric:
            units = self._definition.units
            known = units[position] if position < len(units) else ""
            unit, kind = _UNITS.get(known, (known, ""))
        else:
            return {}
        said = {"state_class": "total" if kind in _METERS else "measurement"}
        if unit:
            said["unit_of_measurement"] = unit
        if kind:
            said["device_class"] = kind
        return said


def _template(name: str, dtype: DataType) -> str:
    """Return what reads a column from the row; NULL, and no row, is `None`: unknown."""
    value = f"value_json[{_quoted(name)}]"
    if dtype == DataType.BOOLEAN:
        value = f"('None' if {value} is none else 'ON' if {value} else 'OFF')"
    return f"{{{{ {value} if value else 'None' }}}}"


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _device(parts: Sequence[str]) -> str:
    """Return an id in which people recognize sink and key.

    Its last word is a digest of the parts: a_b of one sink is not b of another one, a.
    """
    words = [_NOT_IN_A_WORD.sub("_", part[:_WORD]).strip("_") for part in parts]
    digest = hashlib.blake2b(encode_json(parts), digest_size=6).hexdigest()
    return "_".join(("pando", *filter(None, words), digest))


def _column(name: str) -> str:
    """Return a column's name in an id; different columns differ."""
    found = _NOT_IN_A_COLUMN.sub(lambda found: f"-{ord(found[0]):x}-", name)
    if len(found) <= _WORD:
        return found
    return f"{found[:_WORD]}-{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"


def _entity_name(*parts: str) -> str:
    """Return what Home Assistant calls an entity at first; it numbers those that are equal."""
    text = "_".join(("pando", *(part[:_WORD] for part in parts)))
    return _NOT_IN_AN_ENTITY.sub("_", text.lower()).strip("_")
