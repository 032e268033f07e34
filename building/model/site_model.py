"""What a site consists of: levels, spaces, doors, machines, sensors and walking edges.

Coordinates are metres in a local plan, x to the right and y up. Identifiers are used as MQTT
topic levels and join keys, so they match `ID_PATTERN`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from shapely import Point, Polygon

from streamsql.errors import DeploymentError


class SiteError(DeploymentError):
    """A building map or link trace cannot be used; the message names the feature or line."""

    code = "site_error"


ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

STOREY_HEIGHT: Final = 3.5
"""Metres from one level's floor to the next; maps of buildings rarely state it."""


class SpaceKind(StrEnum):
    """What a space is for."""

    LAB = "lab"
    OFFICE = "office"
    MEETING = "meeting"
    LECTURE = "lecture"
    SERVICE = "service"
    ROOM = "room"
    SHOP = "shop"
    TOILETS = "toilets"
    CORRIDOR = "corridor"
    AREA = "area"
    ENTRANCE = "entrance"
    STAIRS = "stairs"
    LIFT = "lift"
    OUTSIDE = "outside"


CIRCULATION: Final = frozenset({SpaceKind.CORRIDOR, SpaceKind.AREA, SpaceKind.ENTRANCE})
"""Kinds people walk through on their way to somewhere else."""

OUTSIDE: Final = "outside"
"""Id of the space around a building whose parts are joined only by walking outside."""

VERTICAL: Final = frozenset({SpaceKind.STAIRS, SpaceKind.LIFT})
"""Kinds that join levels."""


class SensorKind(StrEnum):
    """What a sensor measures."""

    SEAT = "seat"
    LIGHT = "light"
    TEMPERATURE = "temperature"
    RFID = "rfid"
    ENERGY = "energy"
    LOAD = "load"


MEASURED_ON_HOST: Final = frozenset({SensorKind.LOAD})
"""Sensors of the host's machine that read the computer itself and are not simulated."""


class EdgeKind(StrEnum):
    """How one gets along a walking edge."""

    WALK = "walk"
    DOOR = "door"
    STAIRS = "stairs"
    LIFT = "lift"


@dataclass(frozen=True, slots=True)
class Level:
    """A storey; ordinals are whole numbers and 0 is the ground level."""

    ordinal: int
    name: str


@dataclass(frozen=True, slots=True)
class Space:
    """A room, corridor or other walkable area on one level.

    Attributes:
        id: Key of the `rooms` table.
        polygon: Its floor, without holes for furniture.
        open_lab: Whether anybody may sit down there.
        wheelchair: Whether a wheelchair gets in; of stairs, onto their landing.
        source: Label of the map feature it was read from, or an empty string.
    """

    id: str
    name: str
    kind: SpaceKind
    level: int
    polygon: Polygon
    open_lab: bool = False
    wheelchair: bool = True
    source: str = ""


@dataclass(frozen=True, slots=True)
class Door:
    """A passage between two spaces, or between a space and outside.

    Attributes:
        spaces: Ids of the two; outside is `None`, or the space `OUTSIDE` where the site has one.
        width: Metres of clear width.
        derived: Whether it was inferred from shared walls rather than mapped.
        wheelchair: Whether a wheelchair gets through.
    """

    id: str
    spaces: tuple[str, str | None]
    level: int
    point: Point
    width: float = 0.9
    derived: bool = False
    wheelchair: bool = True

    @property
    def is_entrance(self) -> bool:
        """Whether it leads outside."""
        return self.spaces[1] in {None, OUTSIDE}


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a connector can be entered: a point of a space on a level."""

    level: int
    room: str
    point: Point


@dataclass(frozen=True, slots=True)
class Connector:
    """Stairs or a lift: the stops between which one changes level, lowest first."""

    id: str
    kind: SpaceKind
    stops: tuple[Stop, ...]
    wheelchair: bool


@dataclass(frozen=True, slots=True)
class Software:
    """A package installed on a machine."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A computer at a desk.

    Attributes:
        mid: Machine id.
        host: Network name.
        cpu: Processor type.
        cores: Number of processor cores; 0 when unknown.
        is_host: Whether it stands for the computer Pando itself runs on.
    """

    mid: str
    room: str
    desk: str
    x: float
    y: float
    level: int
    host: str
    cpu: str
    cores: int
    software: tuple[Software, ...] = ()
    is_host: bool = False


@dataclass(frozen=True, slots=True)
class Sensor:
    """A measuring device; `unit` is a SenML unit."""

    id: str
    kind: SensorKind
    room: str
    mid: str | None
    x: float
    y: float
    level: int
    unit: str


@dataclass(frozen=True, slots=True)
class RoutingPoint:
    """A point one can walk to; `room` is the space it belongs to."""

    id: str
    x: float
    y: float
    level: int
    room: str


@dataclass(frozen=True, slots=True)
class RouteEdge:
    """A walkable connection of two routing points, usable in both directions.

    Attributes:
        distance: Metres walked; for stairs and lifts the stated cost in metres of walking.
        wheelchair: Whether a wheelchair gets along.
        room: The room it is inside, None where people walk on their way to somewhere else.
        exits: Its ends that are doors by which only people leave the room who began there.
    """

    src: str
    dst: str
    distance: float
    kind: EdgeKind
    wheelchair: bool
    room: str | None = None
    exits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mote:
    """A radio node: one in each room, or one of a recorded link trace."""

    id: str
    room: str | None
    x: float
    y: float
    level: int


@dataclass(frozen=True, slots=True)
class RadioLink:
    """Two motes in radio range of each other, with their distance in metres."""

    src: str
    dst: str
    distance: float


@dataclass(frozen=True, slots=True)
class Site:
    """A place with everything the services need to know about it.

    Attributes:
        origin: Longitude and latitude of the plan's (0, 0) in degrees, or None.
        levels: Storeys, lowest first.
        machine_points: Machine id to the routing point at its desk.
        room_points: Room id to the routing point that represents the room.
        detector_points: RFID detector id to its routing point.
        radio: Pairs of motes in range.
        gateways: Room id (or mote id, where there are no rooms) to the owning gateway.
        warnings: Flaws of the map, one sentence each.
    """

    name: str
    origin: tuple[float, float] | None
    levels: tuple[Level, ...]
    spaces: tuple[Space, ...] = ()
    doors: tuple[Door, ...] = ()
    connectors: tuple[Connector, ...] = ()
    machines: tuple[Machine, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    points: tuple[RoutingPoint, ...] = ()
    edges: tuple[RouteEdge, ...] = ()
    machine_points: Mapping[str, str] = field(default_factory=dict)
    room_points: Mapping[str, str] = field(default_factory=dict)
    detector_points: Mapping[str, str] = field(default_factory=dict)
    motes: tuple[Mote, ...] = ()
    radio: tuple[RadioLink, ...] = ()
    gateways: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def is_simulated(self, sensor: Sensor) -> bool:
        """Whether nothing measures what a sensor gives: only the host's own load is measured."""
        hosts = {machine.mid for machine in self.machines if machine.is_host}
        return sensor.mid not in hosts or sensor.kind not in MEASURED_ON_HOST

    def space(self, room: str) -> Space:
        """Return the space with this id; KeyError if there is none."""
        for space in self.spaces:
            if space.id == room:
                return space
        raise KeyError(room)
