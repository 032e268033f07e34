"""Readings of each kind of mote in the simulated world."""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.connectors.motes.mote_field import Detector, Mote
from gateway.connectors.motes.world import HEARING_METRES, World, strength, visitor_place

OPEN_LUX = 50.0
"""Light above which a room counts as open."""
TOPIC_OF_KIND = {
    "seat": "seatsensor",
    "light": "roomsensor",
    "temperature": "temperature",
    "energy": "energymeter",
    "rfid": "rfidbeacon",
    "load": "machineload",
}
"""What a mote's readings are called."""
LINK_TOPIC = "link"
TOPICS = (*TOPIC_OF_KIND.values(), LINK_TOPIC)


class Sensed(NamedTuple):
    """A reading of a mote.

    Attributes:
        topic: One of `TOPICS`.
        values: By the names that a source's columns may have.
        sensor: Whose it is; empty: of a link.
        gone: Whether it says that its row is no more.
    """

    topic: str
    values: dict[str, object]
    sensor: str = ""
    gone: bool = False


def seat(mote: Mote, world: World) -> Sensed:
    """Return the weight on a seat."""
    weight = world.seat(mote.mid or "").weight
    values: dict[str, object] = {"mid": mote.mid, "rid": mote.rid, "weightlevel": weight}
    return Sensed("seatsensor", values, mote.sensor)


def light(mote: Mote, world: World, now: int) -> Sensed:
    """Return a room's light."""
    lux = world.light(mote.rid, now)
    status = "open" if lux > OPEN_LUX else "closed"
    return Sensed("roomsensor", {"rid": mote.rid, "light": lux, "status": status}, mote.sensor)


def temperature(mote: Mote, world: World, now: int) -> Sensed:
    """Return the temperature where the mote is."""
    values: dict[str, object] = {
        "sensor": mote.sensor,
        "rid": mote.rid,
        "celsius": world.celsius(mote.rid, mote.x, mote.y, mote.level, now),
        "x": mote.x,
        "y": mote.y,
        "level": mote.level,
    }
    return Sensed("temperature", values, mote.sensor)


def energy(mote: Mote, world: World, now: int) -> Sensed:
    """Return the power a machine draws."""
    cpu, _task = world.load(mote.mid or "", now)
    values: dict[str, object] = {"mid": mote.mid, "watts": round(58 + 90 * cpu, 1)}
    return Sensed("energymeter", values, mote.sensor)


def load(mote: Mote, world: World, now: int) -> Sensed:
    """Return the load of a machine."""
    cpu, task = world.load(mote.mid or "", now)
    values: dict[str, object] = {
        "mid": mote.mid,
        "cpu": cpu,
        "memory": round(0.2 + 0.5 * cpu, 3),
        "users": int(cpu > 0.1),
        "task": task,
        "task_cpu": round(cpu * 0.8, 3),
        "celsius": round(34 + 30 * cpu, 1),
    }
    return Sensed("machineload", values, mote.sensor)


def beacons(mote: Mote, visitors: int, tour: tuple[Detector, ...], now: int) -> Iterator[Sensed]:
    """Yield what a detector hears. A badge it no longer hears fades by the stream's lifetime."""
    for number in range(visitors if tour else 0):
        x, y, level = visitor_place(number, tour, now)
        heard = strength(x, y, mote.x, mote.y)
        if level == mote.level and heard >= -40 - 2 * HEARING_METRES:
            values: dict[str, object] = {
                "detector": mote.sensor,
                "tag": f"badge-{number + 1}",
                "strength": heard,
            }
            yield Sensed("rfidbeacon", values, mote.sensor)
