"""Terms of Brick: kinds of entities by their class, and relations in one direction.

The classes of Brick end in what they are: `Zone_Air_Temperature_Sensor` is a sensor,
`Conference_Room` a room. So kinds need no copy of the ontology, and classes that a building adds by
the same custom are found, too. Relations come in pairs (`hasPart`, `isPartOf`); each is given in
one direction.
"""

from typing import Final

KINDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("point", ("Point", "Sensor", "Setpoint", "Command", "Status", "Alarm", "Parameter", "Limit")),
    ("zone", ("Zone",)),
    ("floor", ("Floor", "Storey", "Basement", "Rooftop", "Mezzanine", "Level")),
    (
        "room",
        ("Room", "Lobby", "Hallway", "Office", "Restroom", "Auditorium", "Laboratory", "Cubicle",
         "Atrium", "Library", "Cafeteria", "Lounge", "Vestibule", "Entrance", "Studio", "Theater",
         "Gymnasium", "Stage", "Space", "Cubicle"),
    ),
    ("building", ("Building", "Wing", "Tower")),
    ("site", ("Site", "Campus", "Region")),
    ("system", ("System", "Loop", "Collection", "Network", "Portfolio")),
)  # fmt: skip
"""Kinds, each with the last words of their classes; the first that fits counts."""
EQUIPMENT: Final = "equipment"
"""The kind of every other class of Brick."""

INVERSES: Final = {
    "isPartOf": "hasPart",
    "isPointOf": "hasPoint",
    "isFedBy": "feeds",
    "isLocationOf": "hasLocation",
    "isMeteredBy": "meters",
    "isRegulatedBy": "regulates",
    "isControlledBy": "controls",
    "isTagOf": "hasTag",
    "isAssociatedWith": "hasAssociatedTag",
    "isAddressOf": "hasAddress",
}
"""Relations that are given as their inverse, from the other end."""


def kind_of(name: str) -> str:
    """Return the kind of a class of Brick, by its local name such as `Supply_Fan`.

    >>> kind_of("Zone_Air_Temperature_Sensor"), kind_of("HVAC_Zone"), kind_of("AHU")
    ('point', 'zone', 'equipment')
    """
    last = name.rpartition("_")[2]
    for kind, words in KINDS:
        if last in words:
            return kind
    return EQUIPMENT
