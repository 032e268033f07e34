"""The wrapper of simulated motes: senses the world and tells the gateway."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from gateway.connectors.reading import Reading
from gateway.wrappers.motes import sensing
from gateway.wrappers.motes import world as simulation
from gateway.wrappers.motes.settings import (
    Detector,
    Mote,
    MoteField,
    MoteOptions,
    load_detectors,
    load_field,
)
from gateway.wrappers.options import read_options
from gateway.wrappers.wrapper import WrapperContext
from streamsql.data.types import Value

TICK = 0.25
PIN = 600 * simulation.SECOND
MIN_DELIVERY = 0.5
MAX_HEAT = 60.0
ACTIONS = ("sit", "leave", "lights_on", "lights_off", "heat")


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
        self._context: WrapperContext | None = None

    async def run(self, context: WrapperContext) -> None:
        """Sense until cancelled."""
        options = read_options(context, self.kind, MoteOptions)
        field = load_field(Path(options.file))
        tour = simulation.tour_of(_detectors(options))
        if self._world is None:  # kept over a restart: people stay where they sit
            self._world = simulation.World(options.seed, options.turnover)
        self._context, self._field = context, field
        due = _schedule(field, options)
        loop = asyncio.get_running_loop()
        start = last = loop.time()
        slot = 0
        while True:
            elapsed, last = loop.time() - last, loop.time()
            now = context.clock()
            readings = list(self._people(self._world, now, elapsed))
            for mote in due[slot % len(due)]:
                readings.extend(_sense(mote, self._world, options, tour, now))
            if slot % len(due) == 0:
                readings.extend(_links(field, options, now))
            if readings:
                context.emit(readings)
            slot += 1
            behind = loop.time() - (start + slot * TICK)
            if behind > len(due) * TICK:  # the machine slept: what was missed is over
                start += behind
            await asyncio.sleep(max(-behind, 0.0))

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
            context.emit([sensing.seat(mote, world, now)])
            return f"{action} at {mid}"
        rid = str(arguments.get("rid", ""))
        if action in ("lights_on", "lights_off"):
            mote = self._mote("light", rid=rid)
            world.dark_rooms[rid] = action == "lights_off"
            context.emit([sensing.light(mote, world, now)])
            return f"{action} in {rid}"
        if action == "heat":
            mote = self._mote("temperature", rid=rid)
            world.heat[rid] = _degrees(arguments.get("celsius"))
            context.emit([sensing.temperature(mote, world, now)])
            return f"{rid} heated by {world.heat[rid]:g} degrees"
        raise ValueError(f"unknown action {action!r:.40}; known: {', '.join(ACTIONS)}")

    def _mote(self, kind: str, *, mid: str | None = None, rid: str | None = None) -> Mote:
        for mote in self._field.motes:
            if mote.kind == kind and (mid is None or mote.mid == mid) and rid in (None, mote.rid):
                return mote
        raise ValueError(f"no {kind} sensor of {mid or rid!r} behind this gateway")

    def _people(self, world: simulation.World, now: int, elapsed: float) -> Iterator[Reading]:
        for mote in self._field.motes:
            if mote.kind == "seat" and mote.mid and world.live(mote.mid, now, elapsed):
                yield sensing.seat(mote, world, now)


def _sense(
    mote: Mote,
    world: simulation.World,
    options: MoteOptions,
    tour: tuple[Detector, ...],
    now: int,
) -> Iterator[Reading]:
    """Yield what one mote senses now; the load of the machine that is real is measured instead."""
    simulated = bool(mote.mid) and mote.mid != options.live_machine
    match mote.kind:
        case "seat" if mote.mid:
            yield sensing.seat(mote, world, now)
        case "light":
            yield sensing.light(mote, world, now)
        case "temperature":
            yield sensing.temperature(mote, world, now)
        case "energy" if mote.mid:  # a real machine has no plug-in meter
            yield sensing.energy(mote, world, now)
        case "load" if simulated:
            yield sensing.load(mote, world, now)
        case "rfid":
            yield from sensing.beacons(mote, options.visitors, tour, now)
        case _:
            return


def _links(field: MoteField, options: MoteOptions, now: int) -> Iterator[Reading]:
    for peer in field.peers:
        ratio = simulation.delivery_ratio(peer, options.seed, now)
        ends = {"src": peer.src, "dst": peer.dst}
        if ratio < MIN_DELIVERY:
            yield Reading("link", ends, now, delete=True)
        else:
            yield Reading("link", {**ends, "cost": round(1 / ratio, 3), "pdr": ratio}, now)


def _degrees(value: Value) -> float:
    degrees = float(value or 0.0)
    if not -MAX_HEAT <= degrees <= MAX_HEAT:
        raise ValueError(f"celsius must be between -{MAX_HEAT:g} and {MAX_HEAT:g}")
    return degrees


def _detectors(options: MoteOptions) -> tuple[Detector, ...]:
    return load_detectors(Path(options.detectors)) if options.detectors else ()


def _schedule(field: MoteField, options: MoteOptions) -> list[list[Mote]]:
    """Spread the motes over the ticks of one period."""
    slots: list[list[Mote]] = [[] for _ in range(max(round(options.period / TICK), 1))]
    for number, mote in enumerate(field.motes):
        slots[number % len(slots)].append(mote)
    return slots
