"""Units of measurement: SenML's (RFC 8428 and RFC 8798) and others that devices speak.

Every unit is a primary unit times a scale plus an offset: value in the primary unit =
value * scale + offset. Units of one primary unit are of one dimension and convert to each other;
factors are exact fractions.
"""

import math
from fractions import Fraction

import msgspec

_Scale = str | tuple[str, str]
"""Scale to the primary unit as decimal text or a fraction `a/b`; and an offset, if it has one."""

# A primary unit, and the others of its dimension. Those of RFC 8428 and RFC 8798 have their names
# from there.
_DIMENSIONS: dict[str, dict[str, _Scale]] = {
    "m": {
        "km": "1000", "cm": "0.01", "mm": "0.001", "um": "1e-6", "nm": "1e-9",
        "in": "0.0254", "ft": "0.3048", "yd": "0.9144", "mi": "1609.344", "nmi": "1852",
    },
    "kg": {
        "g": "0.001", "mg": "1e-6", "ug": "1e-9", "t": "1000",
        "lb": "0.45359237", "oz": "0.028349523125",
    },
    "s": {
        "ms": "0.001", "us": "1e-6", "ns": "1e-9", "min": "60", "h": "3600", "d": "86400",
        "week": "604800", "EL": "1",
    },
    "A": {"kA": "1000", "mA": "0.001", "uA": "1e-6"},
    "K": {"Cel": ("1", "273.15"), "degF": ("5/9", "45967/180")},
    "cd": {},
    "mol": {"mmol": "0.001"},
    "Hz": {
        "kHz": "1000", "MHz": "1e6", "GHz": "1e9", "1/s": "1", "1/min": "1/60", "rpm": "1/60",
        "beat/min": "1/60", "1/h": "1/3600",
    },
    "rad": {"deg": str(Fraction(math.pi) / 180), "lat": str(Fraction(math.pi) / 180),
            "lon": str(Fraction(math.pi) / 180)},
    "sr": {},
    "N": {"kN": "1000"},
    "Pa": {
        "hPa": "100", "mbar": "100", "kPa": "1000", "MPa": "1e6", "bar": "1e5", "atm": "101325",
        "psi": "8896443230521/1290320000", "mmHg": "133.322387415", "inHg": "3386.388640341",
    },
    "J": {
        "kJ": "1000", "MJ": "1e6", "GJ": "1e9", "mWh": "3.6", "Wh": "3600", "kWh": "3.6e6",
        "MWh": "3.6e9", "GWh": "3.6e12",
        "Ws": "1", "cal": "4.184", "kcal": "4184", "BTU": "1055.05585262",
    },
    "W": {
        "mW": "0.001", "uW": "1e-6", "kW": "1000", "MW": "1e6", "GW": "1e9",
        "hp": "745.69987158227022", "BTU/h": "52752792631/180000000000",
    },
    "C": {"Ah": "3600", "mAh": "3.6"},
    "V": {"kV": "1000", "mV": "0.001", "uV": "1e-6"},
    "F": {"mF": "0.001", "uF": "1e-6", "nF": "1e-9", "pF": "1e-12"},
    "Ohm": {"mOhm": "0.001", "kOhm": "1000", "MOhm": "1e6"},
    "S": {"mS": "0.001", "uS": "1e-6"},
    "Wb": {},
    "T": {"mT": "0.001", "uT": "1e-6", "nT": "1e-9", "G": "1e-4", "mG": "1e-7"},
    "H": {"mH": "0.001", "uH": "1e-6"},
    "lm": {},
    "lx": {"klx": "1000"},
    "Bq": {},
    "Gy": {},
    "Sv": {"mSv": "0.001", "uSv": "1e-6"},
    "Sv/s": {"Sv/h": "1/3600", "mSv/h": "1/3600000", "uSv/h": "1/3600000000"},
    "Bq/m3": {},
    "kat": {},
    "m2": {"cm2": "1e-4", "mm2": "1e-6", "km2": "1e6", "ha": "10000", "ft2": "0.09290304"},
    "m3": {
        "l": "0.001", "ml": "1e-6", "cm3": "1e-6", "hl": "0.1",
        "gal": "0.003785411784", "ft3": "0.028316846592",
    },
    "m/s": {
        "km/h": "1/3.6", "mm/s": "0.001", "cm/s": "0.01", "m/min": "1/60", "m/h": "1/3600",
        "mm/h": "1/3600000", "mm/d": "1/86400000", "in/h": "0.0254/3600", "mph": "0.44704",
        "kn": "1852/3600", "ft/s": "0.3048",
    },
    "m/s2": {"gn": "9.80665", "mgn": "0.00980665"},
    "m3/s": {
        "l/s": "0.001", "l/min": "0.001/60", "l/h": "0.001/3600", "m3/min": "1/60",
        "m3/h": "1/3600", "gal/min": "0.003785411784/60", "ft3/min": "0.028316846592/60",
    },
    "W/m2": {"mW/cm2": "10", "kW/m2": "1000"},
    "cd/m2": {},
    "bit": {
        "kbit": "1000", "Mbit": "1e6", "Gbit": "1e9", "B": "8", "kB": "8000", "MB": "8e6",
        "GB": "8e9", "TB": "8e12", "KiB": "8192", "MiB": "8388608", "GiB": "8589934592",
    },
    "bit/s": {
        "kbit/s": "1000", "Mbit/s": "1e6", "Gbit/s": "1e9", "B/s": "8", "kB/s": "8000",
        "MB/s": "8e6", "KiB/s": "8192", "MiB/s": "8388608",
    },
    "pH": {},
    "dB": {},
    "dBA": {},
    "dBW": {"dBm": ("1", "-30")},
    "Bspl": {"dBspl": "0.1"},
    "count": {"beats": "1"},
    "/": {
        "%": "0.01", "%RH": "0.01", "%EL": "0.01", "/100": "0.01", "/1000": "0.001",
        "permille": "0.001", "ppm": "1e-6", "ppb": "1e-9", "ppt": "1e-12",
    },
    "S/m": {"mS/m": "0.001", "uS/m": "1e-6", "mS/cm": "0.1", "uS/cm": "1e-4", "S/cm": "100"},
    "VA": {"kVA": "1000", "MVA": "1e6"},
    "VAs": {"VAh": "3600", "kVAh": "3.6e6"},
    "var": {"kvar": "1000", "Mvar": "1e6"},
    "vars": {"varh": "3600", "kvarh": "3.6e6"},
    "J/m": {"Wh/km": "3.6", "kWh/km": "3600", "kWh/100km": "36"},
    "J/m3": {"kWh/m3": "3.6e6"},
    "kg/m3": {"g/m3": "0.001", "mg/m3": "1e-6", "ug/m3": "1e-9", "ng/m3": "1e-12", "g/l": "1",
              "mg/l": "0.001"},
    "kg/s": {"kg/h": "1/3600", "g/s": "0.001"},
    "NTU": {},
    "UVI": {},
}  # fmt: skip

_SYNONYMS = {
    "°C": "Cel", "degC": "Cel", "Celsius": "Cel", "celsius": "Cel", "℃": "Cel",
    "°F": "degF", "Fahrenheit": "degF", "fahrenheit": "degF", "℉": "degF", "Kelvin": "K",
    "percent": "%", "rh": "%RH", "rH": "%RH", "‰": "permille", "Ω": "Ohm", "ohm": "Ohm",
    "°": "deg", "degrees": "deg", "Lux": "lx", "lux": "lx", "sec": "s", "hour": "h", "day": "d",
    "L": "l", "mL": "ml", "L/min": "l/min", "L/h": "l/h", "L/s": "l/s", "mg/L": "mg/l",
    "g/L": "g/l", "kph": "km/h", "kmh": "km/h", "VAr": "var", "kVAr": "kvar", "VArh": "varh",
    "kVArh": "kvarh", "mb": "mbar", "Byte": "B", "ft³/min": "ft3/min", "CFM": "ft3/min",
    "gpm": "gal/min", "bpm": "beat/min",
}  # fmt: skip

# Signs that devices write and keyboards lack: micro and mu, ohm and omega look alike.
_PLAIN_SIGNS = str.maketrans(
    {"\u00b5": "u", "\u03bc": "u", "²": "2", "³": "3", "\u03a9": "Ohm", "\u2126": "Ohm"}
)


class Unit(msgspec.Struct, frozen=True):
    """A unit: value in `primary` = value * scale + offset."""

    name: str
    primary: str
    scale: Fraction
    offset: Fraction


def unit_named(name: str) -> Unit:
    """Return a unit of SenML, another usual one, or what a synonym stands for.

    Raises:
        ValueError: There is none; the text names similar ones.

    Examples:
        >>> unit_named("°C").name, unit_named("µg/m³").name, unit_named("kWh").primary
        ('Cel', 'ug/m3', 'J')
    """
    found = _found(name)
    if found is not None:
        return found
    from difflib import get_close_matches  # noqa: PLC0415  (a gateway has no wrong unit)

    near = get_close_matches(name.strip()[:20].lower(), _BY_LOWER, n=3, cutoff=0.6)
    names = list(dict.fromkeys(each for lower in near for each in _BY_LOWER[lower]))[:3]
    hint = f"did you mean {' or '.join(names)}?" if names else "docs/mapping.md lists all"
    raise ValueError(f"there is no unit {name!r:.40}; {hint}")


def is_unit(name: str) -> bool:
    """Whether there is a unit of that name; fast, since devices choose names too."""
    return _found(name) is not None


def unit_conversion(given: str, wanted: str) -> tuple[Fraction, Fraction]:
    """Return (slope, shift) such that value in `wanted` = value in `given` * slope + shift.

    An empty `given` is `wanted`; an empty `wanted` leaves values as they are.

    Raises:
        ValueError: There is no such unit, or they are of different dimensions.

    Examples:
        >>> unit_conversion("kWh", "Wh")
        (Fraction(1000, 1), Fraction(0, 1))
        >>> slope, shift = unit_conversion("degF", "Cel")
        >>> 212 * slope + shift
        Fraction(100, 1)
    """
    units = [unit_named(name) for name in (given, wanted) if name]
    if len(units) < 2:
        return Fraction(1), Fraction(0)
    source, target = units
    if source.primary != target.primary:
        raise ValueError(
            f"{given} does not convert to {wanted}: {given} measures what {source.primary} does, "
            f"{wanted} what {target.primary} does"
        )
    return source.scale / target.scale, (source.offset - target.offset) / target.scale


def _found(name: str) -> Unit | None:
    stripped = name.strip()
    plain = stripped.translate(_PLAIN_SIGNS)
    for known in (stripped, _SYNONYMS.get(stripped, ""), plain, _SYNONYMS.get(plain, "")):
        if known in _UNITS:
            return _UNITS[known]
    return None


def _fraction(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    return Fraction(top) / Fraction(bottom or "1")


def _all_units() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for primary, others in _DIMENSIONS.items():
        units[primary] = Unit(primary, primary, Fraction(1), Fraction(0))
        for name, scale in others.items():
            factor, offset = scale if isinstance(scale, tuple) else (scale, "0")
            units[name] = Unit(name, primary, _fraction(factor), _fraction(offset))
    return units


_UNITS = _all_units()
UNIT_NAMES = frozenset(_UNITS)
"""Names of all units, without synonyms."""

_BY_LOWER: dict[str, list[str]] = {}
for _word, _name in [*zip(_UNITS, _UNITS, strict=True), *_SYNONYMS.items()]:
    if _name not in _BY_LOWER.setdefault(_word.lower(), []):
        _BY_LOWER[_word.lower()].append(_name)
