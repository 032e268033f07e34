"""What each kind of mote reads in the simulated world."""

from collections.abc import Iterator

from gateway.connectors.reading import Reading
from gateway.wrappers.motes.settings import Detector, Mote
from gateway.wrappers.motes.world import HEARING_METRES, World, strength, visitor_place

OPEN_LUX = 50.0
"""Light above which a room counts as open."""


def seat(mote: Mote, world: World, now: int) -> Reading:
    """Return the weight on a seat."""
    weight = world.seat(mote.mid or "").weight
    values = {"mid": mote.mid, "rid": mote.rid, "weightlevel": weight}
    return Reading("seatsensor", values, now, mote.sensor)


def light(mote: Mote, world: World, now: int) -> Reading:
    """Return a room's light."""
    lux = world.light(mote.rid, now)
    status = "open" if lux > OPEN_LUX else "closed"
    return Reading(
        "roomsensor", {"rid": mote.rid, "light": lux, "status": status}, now, mote.sensor
    )


def temperature(mote: Mote, world: World, now: int) -> Reading:
    """Return the temperature where the mote is."""
    values = {
        "sensor": mote.sensor,
        "rid": mote.rid,
        "celsius": world.celsius(mote.rid, mote.x, mote.y, mote.level, now),
        "x": mote.x,
        "y": mote.y,
        "level": mote.level,
    }
    return Reading("temperature", values, now, mote.sensor)


def energy(mote: Mote, world: World, now: int) -> Reading:
    """Return the power a machine draws."""
    cpu, _task = world.load(mote.mid or "", now)
    values = {"mid": mote.mid, "watts": round(58 + 90 * cpu, 1)}
    return Reading("energymeter", values, now, mote.sensor)


def load(mote: Mote, world: World, now: int) -> Reading:
    """Return the load of a machine."""
    cpu, task = world.load(mote.mid or "", now)
    values = {
        "mid": mote.mid,
        "cpu": cpu,
        "memory": round(0.2 + 0.5 * cpu, 3),
        "users": int(cpu > 0.1),
        "task": task,
        "task_cpu": round(cpu * 0.8, 3),
        "celsius": round(34 + 30 * cpu, 1),
    }
    return Reading("machineload", values, now, mote.sensor)


def beacons(mote: Mote, visitors: int, tour: tuple[Detector, ...], now: int) -> Iterator[Reading]:
    """Yield what a detector hears. A badge it no longer hears fades by the stream's lifetime."""
    for number in range(visitors if tour else 0):
        x, y, level = visitor_place(number, tour, now)
        heard = strength(x, y, mote.x, mote.y)
        if level == mote.level and heard >= -40 - 2 * HEARING_METRES:
            values = {"detector": mote.sensor, "tag": f"badge-{number + 1}", "strength": heard}
            yield Reading("rfidbeacon", values, now, mote.sensor)
