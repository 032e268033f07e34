"""Units: factors written down by hand, conversion within a dimension only, hints."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.units import is_unit, unit_conversion, unit_named

# RFC 8428 section 12.1 and RFC 8798 tables 1 and 2: every name.
RFC_8428 = """
m kg g s A K cd mol Hz rad sr N Pa J W C V F Ohm S Wb T H Cel lm lx Bq Gy Sv kat m2 m3 l m/s m/s2
m3/s l/s W/m2 cd/m2 bit bit/s lat lon pH dB dBW Bspl count / % %RH %EL EL 1/s 1/min beat/min beats
S/m
"""
RFC_8798_PRIMARY = "B VA VAs var vars J/m kg/m3 deg"
RFC_8798 = {
    ("ms", "s"): "0.001", ("min", "s"): "60", ("h", "s"): "3600", ("MHz", "Hz"): "1000000",
    ("kW", "W"): "1000", ("kVA", "VA"): "1000", ("kvar", "var"): "1000", ("Ah", "C"): "3600",
    ("Wh", "J"): "3600", ("kWh", "J"): "3600000", ("varh", "vars"): "3600",
    ("kvarh", "vars"): "3600000", ("kVAh", "VAs"): "3600000", ("Wh/km", "J/m"): "3.6",
    ("KiB", "B"): "1024", ("GB", "B"): "1000000000", ("Mbit/s", "bit/s"): "1000000",
    ("B/s", "bit/s"): "8", ("MB/s", "bit/s"): "8000000", ("mV", "V"): "0.001",
    ("mA", "A"): "0.001", ("ug/m3", "kg/m3"): "0.000000001", ("mm/h", "m/s"): "1/3600000",
    ("m/h", "m/s"): "1/3600", ("ppm", "/"): "0.000001", ("/100", "/"): "0.01",
    ("/1000", "/"): "0.001", ("hPa", "Pa"): "100", ("mm", "m"): "0.001", ("cm", "m"): "0.01",
    ("km", "m"): "1000", ("km/h", "m/s"): "1/3.6",
}  # fmt: skip


def test_every_unit_of_the_standards_is_known() -> None:
    names = [*RFC_8428.split(), *RFC_8798_PRIMARY.split(), *(name for name, _ in RFC_8798), "dBm"]
    assert [name for name in names if not is_unit(name)] == []


@pytest.mark.parametrize(("units", "factor"), RFC_8798.items())
def test_secondary_units_convert_as_the_table_says(units: tuple[str, str], factor: str) -> None:
    top, _, bottom = factor.partition("/")
    slope, shift = unit_conversion(*units)
    assert slope == Fraction(top) / Fraction(bottom or "1")
    assert shift == 0


@pytest.mark.parametrize(
    ("value", "given_unit", "wanted", "result"),
    [
        ("21.5", "°C", "degF", "70.7"),
        ("-40", "degF", "Cel", "-40"),
        ("0", "K", "Cel", "-273.15"),
        ("32", "°F", "K", "273.15"),
        ("30", "dBm", "dBW", "0"),
        ("-3", "dBW", "dBm", "27"),
        ("1013.25", "mbar", "hPa", "1013.25"),
        ("1", "bar", "kPa", "100"),
        ("101325", "Pa", "atm", "1"),
        ("36", "km/h", "m/s", "10"),
        ("60", "l/min", "l/s", "1"),
        ("3.6", "m3/h", "l/s", "1"),
        ("55", "%", "%RH", "55"),
        ("0.5", "/", "%", "50"),
        ("5000", "Wh", "kWh", "5"),
        ("1", "kn", "km/h", "1.852"),
        ("1", "mph", "km/h", "1.609344"),
        ("12", "in", "ft", "1"),
        ("1", "lb", "g", "453.59237"),
        ("120", "1/min", "Hz", "2"),
        ("1500", "µS/cm", "mS/cm", "1.5"),
        ("35", "µg/m³", "mg/m3", "0.035"),
        ("2", "kΩ", "Ohm", "2000"),
        ("1", "BTU/h", "W", "0.29307107017222222222222222"),
    ],
)
def test_usual_conversions(value: str, given_unit: str, wanted: str, result: str) -> None:
    slope, shift = unit_conversion(given_unit, wanted)
    assert abs(Fraction(value) * slope + shift - Fraction(result)) < Fraction(1, 10**18)


NAMES = st.sampled_from(
    [*RFC_8428.split(), *(name for name, _ in RFC_8798), "degF", "psi", "gal", "dBm"]
)


@given(NAMES, NAMES, st.fractions())
def test_there_and_back_is_the_same_value(one: str, other: str, value: Fraction) -> None:
    if unit_named(one).primary != unit_named(other).primary:
        with pytest.raises(ValueError, match="does not convert"):
            unit_conversion(one, other)
        return
    slope, shift = unit_conversion(one, other)
    back, shift_back = unit_conversion(other, one)
    assert (value * slope + shift) * back + shift_back == value


def test_only_units_of_one_dimension_convert() -> None:
    for one, other in pairwise(["W", "J", "VA", "var", "Cel", "V", "A", "/", "m", "m2", "m3", "s"]):
        with pytest.raises(ValueError, match=f"{one} does not convert to {other}"):
            unit_conversion(one, other)


def test_one_unit_alone_leaves_values_as_they_are() -> None:
    same = Fraction(1), Fraction(0)
    assert unit_conversion("", "kWh") == unit_conversion("Wh", "") == same
    with pytest.raises(ValueError, match="no unit 'Whh'"):
        unit_conversion("", "Whh")


@pytest.mark.parametrize(
    ("name", "hint"), [("KWH", "kWh"), ("Celcius", "Cel"), ("Farenheit", "degF"), ("hpa", "hPa")]
)
def test_an_unknown_unit_names_similar_ones(name: str, hint: str) -> None:
    assert not is_unit(name)
    with pytest.raises(ValueError, match=f"did you mean .*{hint}"):
        unit_named(name)


@given(st.text())
def test_any_text_is_a_unit_or_refused(name: str) -> None:
    if is_unit(name):
        assert unit_named(name).scale > 0
        return
    with pytest.raises(ValueError, match="there is no unit") as raised:
        unit_named(name)
    assert len(str(raised.value)) < 300
