"""Kinds of Brick's classes."""

import pytest

from static_engine.sources.documents.brick_terms import INVERSES, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Room", "room"), ("Conference_Room", "room"), ("Floor", "floor"), ("HVAC_Zone", "zone"),
        ("Zone_Air_Temperature_Sensor", "point"), ("Occupied_Cooling_Setpoint", "point"),
        ("AHU", "equipment"), ("Supply_Fan", "equipment"), ("Building", "building"),
        ("Chilled_Water_System", "system"),
    ],
)  # fmt: skip
def test_a_class_has_the_kind_of_its_last_word(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_no_relation_is_the_inverse_of_an_inverse() -> None:
    assert not set(INVERSES) & set(INVERSES.values())
