"""The wrapper of simulated motes: senses the world and tells the gateway."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gateway.wrappers.motes import world as simulation
from gateway.wrappers.motes.settings import (
    Detector,
    Mote,
    MoteField,
    MoteOptions,
    load_detectors,
    load_field,
)
from gateway.wrappers.wrapper import Reading, WrapperContext
from streamsql.data.types import Value
from streamsql.errors import DeploymentError

TICK = 0.25
PIN = 600 * simulation.SECOND
MIN_DELIVERY = 0.5


class MotesWrapper:
    """Simulated seats, lights, thermometers, meters, detectors, machines and radio links.

    Readings of a sensor come every `period` seconds, spread evenly; a seat also reports at once
    when somebody sits down or leaves.
    """

    kind = "motes"
    streams: tuple[str, ...] = (
        "seatsensor",
        "roomsensor",
        "temperature",
        "energymeter",
        "rfidbeacon",
        "machineload",
        "link",
    )

    def __init__(self) -> None:
        self._world: simulation.World | None = None
        self._field = MoteField("")
        self._wanted: list[Reading] = []
        self._context: WrapperContext | None = None

    async def run(self, context: WrapperContext) -> None:
        """Sense until cancelled."""
        options = _options(context)
        self._context = context
        self._field = load_field(Path(options.file))
        self._world = simulation.World(options.seed, options.turnover)
        tour = simulation.tour_of(_detectors(options))
        due = _schedule(self._field, options)
        loop = asyncio.get_running_loop()
        start = loop.time()
        slot, last = 0, start
        while True:
            elapsed = loop.time() - last
            last = loop.time()
            now = context.clock()
            readings = list(self._people(now, elapsed))
            for mote in due[slot % len(due)]:
                readings.extend(self._sense(mote, options, tour, now))
            if slot % len(due) == 0:
                readings.extend(self._links(options, now))
            if readings:
                context.emit(readings)
            slot += 1
            await asyncio.sleep(max(start + slot * TICK - loop.time(), 0.0))

    def command(self, action: str, arguments: dict[str, Value]) -> str:
        """Do something in the simulated world; return what was done.

        Actions: sit, leave (mid); lights_on, lights_off (rid); heat (rid, celsius). A seat stays so
        for ten minutes.

        Raises:
            ValueError: The action is unknown or its target is not behind this gateway.
        """
        world, context = self._world, self._context
        if world is None or context is None:
            raise ValueError("the motes are not running yet")
        now = context.clock()
        if action in ("sit", "leave"):
            mid = str(arguments.get("mid", ""))
            mote = self._mote("seat", mid=mid)
            world.sit(mid, taken=action == "sit", until=now + PIN)
            context.emit([self._seat(mote, world, now)])
            return f"{action} at {mid}"
        rid = str(arguments.get("rid", ""))
        if action in ("lights_on", "lights_off"):
            mote = self._mote("light", rid=rid)
            world.dark_rooms[rid] = action == "lights_off"
            context.emit([self._light(mote, world, now)])
            return f"{action} in {rid}"
        if action == "heat":
            mote = self._mote("temperature", rid=rid)
            world.heat[rid] = float(arguments.get("celsius") or 0.0)
            context.emit([self._temperature(mote, world, now)])
            return f"{rid} heated by {world.heat[rid]} degrees"
        raise ValueError(f"unknown action {action!r:.40}")

    def _mote(self, kind: str, *, mid: str | None = None, rid: str | None = None) -> Mote:
        for mote in self._field.motes:
            if mote.kind == kind and (mid is None or mote.mid == mid) and rid in (None, mote.rid):
                return mote
        raise ValueError(f"no {kind} sensor of {mid or rid!r} behind this gateway")

    def _people(self, now: int, elapsed: float) -> Iterator[Reading]:
        world = self._world
        for mote in self._field.motes:
            if world is None or mote.kind != "seat" or mote.mid is None:
                continue
            if world.live(mote.mid, now, elapsed):
                yield self._seat(mote, world, now)

    def _sense(
        self, mote: Mote, options: MoteOptions, tour: tuple[Detector, ...], now: int
    ) -> Iterator[Reading]:
        world = self._world
        if world is None:
            return
        simulated = mote.mid != options.live_machine or not mote.mid
        match mote.kind:
            case "seat":
                yield self._seat(mote, world, now)
            case "light":
                yield self._light(mote, world, now)
            case "temperature":
                yield self._temperature(mote, world, now)
            case "energy" if simulated:
                cpu, _ = world.load(mote.mid or "", now)
                watts = round(58 + 90 * cpu, 1)
                values = {"mid": mote.mid, "watts": watts}
                yield Reading("energymeter", values, now, mote.sensor)
            case "load" if simulated:
                yield self._load(mote, world, now)
            case "rfid":
                yield from _beacons(mote, options.visitors, tour, now)
            case _:
                return

    def _seat(self, mote: Mote, world: simulation.World, now: int) -> Reading:
        seat = world.seat(mote.mid or "")
        values = {"mid": mote.mid, "rid": mote.rid, "weightlevel": seat.weight}
        return Reading("seatsensor", values, now, mote.sensor)

    def _light(self, mote: Mote, world: simulation.World, now: int) -> Reading:
        lux = world.light(mote.rid, now)
        values = {"rid": mote.rid, "light": lux, "status": "open" if lux > 50 else "closed"}
        return Reading("roomsensor", values, now, mote.sensor)

    def _temperature(self, mote: Mote, world: simulation.World, now: int) -> Reading:
        values = {
            "sensor": mote.sensor,
            "rid": mote.rid,
            "celsius": world.celsius(mote.rid, mote.x, mote.y, mote.level, now),
            "x": mote.x,
            "y": mote.y,
            "level": mote.level,
        }
        return Reading("temperature", values, now, mote.sensor)

    def _load(self, mote: Mote, world: simulation.World, now: int) -> Reading:
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

    def _links(self, options: MoteOptions, now: int) -> Iterator[Reading]:
        for peer in self._field.peers:
            ratio = simulation.delivery_ratio(peer, options.seed, now)
            ends = {"src": peer.src, "dst": peer.dst}
            if ratio < MIN_DELIVERY:
                yield Reading("link", ends, now, delete=True)
            else:
                values = {**ends, "cost": round(1 / ratio, 3), "pdr": ratio}
                yield Reading("link", values, now)


def _options(context: WrapperContext) -> MoteOptions:
    try:
        return msgspec.convert(dict(context.options), MoteOptions)
    except msgspec.ValidationError as error:
        raise DeploymentError(f"options of wrapper motes: {error}") from error


def _detectors(options: MoteOptions) -> tuple[Detector, ...]:
    return load_detectors(Path(options.detectors)) if options.detectors else ()


def _schedule(field: MoteField, options: MoteOptions) -> list[list[Mote]]:
    """Spread the motes over the ticks of one period."""
    slots: list[list[Mote]] = [[] for _ in range(max(round(options.period / TICK), 1))]
    for number, mote in enumerate(field.motes):
        slots[number % len(slots)].append(mote)
    return slots


def _beacons(mote: Mote, visitors: int, tour: tuple[Detector, ...], now: int) -> Iterator[Reading]:
    """What one detector hears. A badge it no longer hears fades by the stream's lifetime."""
    for number in range(visitors if tour else 0):
        x, y, level = simulation.visitor_place(number, tour, now)
        heard = simulation.strength(x, y, mote.x, mote.y)
        if level == mote.level and heard >= -40 - 2 * simulation.HEARING_METRES:
            values = {"detector": mote.sensor, "tag": f"badge-{number + 1}", "strength": heard}
            yield Reading("rfidbeacon", values, now)
