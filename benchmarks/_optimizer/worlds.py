"""Worlds: sources, gateways, ways between sites, and readings in the order of their times."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, DataType, Row, Value

Readings = list[tuple[int, str, str, SourceEvent]]
"""(time, gateway, source, event), in the order of time."""

BASE, STATIC = "base", "static"

START = 1_700_000_000 * MICROSECONDS
TEXTS = ("open", "closed")


@dataclass(frozen=True, slots=True)
class Load:
    """Readings of one source.

    Attributes:
        devices: All over the gateways.
        period: Seconds between two readings of a device.
        rooms: Over all gateways; a room's devices are at one of them.
        levels: Values of INTEGER columns.
        skew: Of these: the k-th is as likely as 1 / k to this power.
    """

    devices: int = 24
    period: float = 10.0
    rooms: int = 12
    levels: int = 3
    skew: float = 0.0


@dataclass(frozen=True, slots=True)
class Links:
    """Links that are heard again and again, and fail now and then.

    Attributes:
        ends: Of each, directed.
        owner: The gateway of a node; it has the links that start there.
        period: Seconds between two reports of a link.
        fails: The share of reports that say the link is gone.
    """

    ends: tuple[tuple[str, str], ...] = ()
    owner: Mapping[str, str] = field(default_factory=dict)
    period: float = 10.0
    fails: float = 0.02


@dataclass(frozen=True, slots=True)
class World:
    """Sources at gateways, stored tables, and the ways between the sites.

    Attributes:
        name: Under which figures are reported.
        loads: By name of the source, in lower case; others have no readings.
        tables: Rows by name of the table, in lower case.
        links: Readings of the source `link`.
        recorded: Readings that are replayed.
        warm: Seconds before anything is counted: windows are full, devices have been heard.
        seconds: That are counted.
        distances: From site to site: links on the way, or transmissions; 1 where nothing is said.
    """

    name: str
    catalog: Catalog
    gateways: tuple[str, ...]
    loads: Mapping[str, Load] = field(default_factory=dict)
    tables: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    links: Links = Links()
    recorded: Readings = field(default_factory=list)
    warm: float = 70.0
    seconds: float = 30.0
    distances: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @property
    def heard(self) -> frozenset[str]:
        """Names of the sources that have readings, in lower case."""
        found = {name.lower() for _, _, name, _ in self.recorded}
        return frozenset({*self.loads, *found, *(("link",) if self.links.ends else ())})

    def distance(self, sender: str, receiver: str) -> float:
        """Return how long the way between two sites is."""
        return self.distances.get((sender, receiver), 1.0)

    def readings(self, seed: int) -> Readings:
        """Return the readings until the end."""
        chance = random.Random(seed)
        end = self.warm + self.seconds
        found = [
            reading
            for name, load in self.loads.items()
            for reading in _of_source(self, self.source(name), load, end, chance)
        ]
        found += _of_links(self, end, chance)
        found += [each for each in self.recorded if each[0] < START + int(end * MICROSECONDS)]
        return sorted(found, key=lambda reading: reading[0])

    def source(self, name: str) -> SourceDefinition:
        """Return a source by its name."""
        definition = self.catalog.find(name)
        if not isinstance(definition, SourceDefinition):
            raise TypeError(f"{name} is no source")
        return definition


def _of_source(
    world: World, source: SourceDefinition, load: Load, seconds: float, chance: random.Random
) -> Iterator[tuple[int, str, str, SourceEvent]]:
    weights = [1 / (k + 1) ** load.skew for k in range(load.levels)]
    texts: dict[tuple[int, str], str] = {}
    for device in range(load.devices):
        room = device % load.rooms
        gateway = world.gateways[room % len(world.gateways)]
        values: dict[str, Callable[[], Value]] = {
            "mid": lambda device=device: f"m-{device}",  # type: ignore[misc]
            "sensor": lambda device=device: f"s-{device}",  # type: ignore[misc]
            "device": lambda device=device: f"d-{device}",  # type: ignore[misc]
            "rid": lambda room=room: f"r-{room}",  # type: ignore[misc]
            "x": lambda room=room: 3.0 * room,  # type: ignore[misc]
            "y": lambda: 1.0,
        }
        at = chance.random() * load.period
        while at < seconds:
            time = START + int(at * MICROSECONDS)
            row: list[Value] = []
            for column in source.schema.fields:
                name = column.name.lower()
                if name in values:
                    row.append(values[name]())
                elif column.dtype == DataType.TIMESTAMP:
                    row.append(time)
                elif column.dtype == DataType.INTEGER:
                    row.append(chance.choices(range(load.levels), weights)[0])
                elif column.dtype == DataType.BOOLEAN:
                    row.append(chance.random() < 0.5)
                elif column.dtype == DataType.DOUBLE:
                    row.append(round(chance.uniform(0.0, 100.0), 2))
                else:
                    if (device, name) not in texts or chance.random() < 0.1:
                        texts[device, name] = chance.choice(TEXTS)
                    row.append(texts[device, name])
            yield time, gateway, source.name, SourceEvent(tuple(row), time)
            at += load.period * chance.uniform(0.8, 1.2)


def _of_links(
    world: World, seconds: float, chance: random.Random
) -> Iterator[tuple[int, str, str, SourceEvent]]:
    links = world.links
    for source, target in links.ends:
        cost = round(chance.uniform(1.0, 3.0), 2)
        at = chance.random() * links.period
        while at < seconds:
            time = START + int(at * MICROSECONDS)
            gone = chance.random() < links.fails
            event = SourceEvent((source, target, cost, 1.0, time), time, gone)
            yield time, links.owner[source], "Link", event
            at += links.period * chance.uniform(0.8, 1.2)
