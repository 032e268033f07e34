"""Units that a maker states: in a field's name, beside a value, or in its documentation."""

import re
from collections.abc import Mapping

from streamsql.mapping.units import is_unit, unit_named

_WORDS = {
    "celsius": "Cel", "tc": "Cel", "fahrenheit": "degF", "tf": "degF", "kelvin": "K",
    "watts": "W", "watt": "W", "kw": "kW", "kwh": "kWh", "wh": "Wh", "volts": "V", "volt": "V",
    "mv": "mV", "amps": "A", "ampere": "A", "ma": "mA", "hpa": "hPa", "kpa": "kPa",
    "mbar": "mbar", "lux": "lx", "ppm": "ppm", "ppb": "ppb", "percent": "%", "pct": "%",
    "dbm": "dBm", "hz": "Hz", "khz": "kHz", "rpm": "rpm", "mm": "mm", "cm": "cm", "km": "km",
    "kmh": "km/h", "mps": "m/s", "seconds": "s", "minutes": "min", "hours": "h", "litres": "l",
    "liters": "l", "degrees": "deg", "m3": "m3", "ugm3": "ug/m3",
}  # fmt: skip
"""Last words of fields' names that are units."""

_TASMOTA = {
    "Temperature": ("TempUnit", "C"), "DewPoint": ("TempUnit", "C"),
    "Pressure": ("PressureUnit", "hPa"), "SeaPressure": ("PressureUnit", "hPa"),
    "Humidity": ("", "%RH"), "Illuminance": ("", "lx"), "CarbonDioxide": ("", "ppm"),
    "Power": ("", "W"), "ApparentPower": ("", "VA"), "ReactivePower": ("", "var"),
    "Voltage": ("", "V"), "Current": ("", "A"), "Frequency": ("", "Hz"),
    "Total": ("", "kWh"), "Today": ("", "kWh"), "Yesterday": ("", "kWh"),
}  # fmt: skip
"""Of Tasmota's fields: the field beside the sensors that holds the unit, and the unit without."""

UNIT_FIELDS = frozenset({"TempUnit", "PressureUnit", "SpeedUnit"})
"""Fields that hold the unit of others; they become no columns."""

_SHELLY = {
    "apower": "W", "aprtpower": "VA", "voltage": "V", "current": "A", "freq": "Hz",
    "aenergy.total": "Wh", "ret_aenergy.total": "Wh", "temperature.tC": "Cel",
    "temperature.tF": "degF", "tC": "Cel", "tF": "degF", "rh": "%RH",
}  # fmt: skip
_ZIGBEE2MQTT = {
    "temperature": "Cel", "humidity": "%RH", "pressure": "hPa", "battery": "%", "power": "W",
    "energy": "kWh", "current": "A", "illuminance": "lx", "co2": "ppm",
}  # fmt: skip
_VENDORS = (
    ("zigbee2mqtt/{device}", _ZIGBEE2MQTT),
    ("{device}/status/", _SHELLY),
    ("espresense/", {"rssi": "dBm", "distance": "m"}),
)
_TEMPERATURES = {"C": "Cel", "F": "degF", "K": "K"}
_VALUE_WITH_UNIT = re.compile(r"\s*[+-]?\d+(?:\.\d+)?\s*(\S{1,12})\s*")


def unit_of_field(path: str, name: str, pattern: str, beside: Mapping[str, object]) -> str:
    """Return the unit of a field whose maker says it, or empty.

    Args:
        path: Of the field.
        name: Of the column: lower case, `_` between words.
        pattern: Of the topics.
        beside: The fields of the payload's root.
    """
    if pattern.startswith("tele/"):
        return _tasmota(path, beside)
    for begin, units in _VENDORS:
        if pattern.startswith(begin):
            return units.get(path, "")
    return _WORDS.get(name.rpartition("_")[2], "")


def unit_beside_number(texts: list[str]) -> str:
    """Return the unit that stands behind the number in all texts, such as `21.5 °C`, or empty."""
    found = {m.group(1) if (m := _VALUE_WITH_UNIT.fullmatch(text)) else "" for text in texts}
    unit = found.pop() if len(found) == 1 else ""
    return unit_named(unit).name if unit and is_unit(unit) else ""


def _tasmota(path: str, beside: Mapping[str, object]) -> str:
    field, unit = _TASMOTA.get(path.rpartition(".")[2], ("", ""))
    said = beside.get(field) if field else None
    if field and not isinstance(said, str):
        return ""
    unit = str(said) if field else unit
    unit = _TEMPERATURES.get(unit, unit)
    return unit_named(unit).name if is_unit(unit) else ""
