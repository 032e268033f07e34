"""Worlds: sources, gateways, and readings in the order of their times."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS, DataType, Row, Value

Readings = list[tuple[int, str, str, SourceEvent]]
"""(time, gateway, source, event), in the order of time."""

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
class World:
    """Sources at gateways, and stored tables.

    Attributes:
        loads: By name of the source, in lower case; others have no readings.
        tables: Rows by name of the table, in lower case.
    """

    catalog: Catalog
    gateways: tuple[str, ...]
    loads: dict[str, Load]
    tables: dict[str, tuple[Row, ...]] = field(default_factory=dict)

    def readings(self, seconds: float, seed: int) -> Readings:
        """Return the readings of so many seconds."""
        chance = random.Random(seed)
        found = [
            reading
            for name, load in self.loads.items()
            for reading in _of_source(self, self.source(name), load, seconds, chance)
        ]
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
