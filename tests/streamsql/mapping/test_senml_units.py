"""Units in SenML packs: known ones stay, others are converted to known ones."""

import pytest

from streamsql.mapping.senml_units import PRIMARY_UNITS, SECONDARY_UNITS, senml_unit


@pytest.mark.parametrize(
    ("given", "name", "value", "converted"),
    [
        ("Cel", "Cel", 21.5, 21.5),
        ("degF", "K", 212.0, 373.15),
        ("kWh", "kWh", 2, 2),
        ("mbar", "Pa", 1.0, 100.0),
        ("%", "/", 50.0, 0.5),
        ("%RH", "%RH", 50.0, 50.0),
        ("l", "m3", 1.0, 0.001),
    ],
)
def test_values_get_a_unit_of_the_standard(
    given: str, name: str, value: float, converted: float
) -> None:
    unit = senml_unit(given)
    assert unit is not None
    assert unit.name == name
    assert unit.name in PRIMARY_UNITS | SECONDARY_UNITS
    assert unit.convert(value) == pytest.approx(converted)


def test_units_that_nobody_knows_are_left_out() -> None:
    assert senml_unit("") is None
    assert senml_unit("UVI") is None
