"""The connector of simulated motes: senses the world and tells the gateway."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.motes import sensing
from gateway.connectors.motes import world as simulation
from gateway.connectors.motes.mote_field import (
    Detector,
    Mote,
    MoteField,
    load_detectors,
    load_field,
)
from gateway.connectors.motes.mote_options import MotesEndpoint, MotesSource
from gateway.connectors.motes.past_world import PastWorld
from gateway.connectors.motes.sensing import Sensed
from gateway.connectors.motes.world_memory import recall, remembered
from gateway.connectors.reading import PastPack, Reading
from streamsql.data.types import Value
from streamsql.wire.site_messages import SensorDescription

TICK = 0.25
LIVE_TICKS = 8
"""The load of this computer is measured every so many ticks."""
PIN = 600 * simulation.SECOND
MIN_DELIVERY = 0.5
MAX_HEAT = 60.0
ACTIONS = ("sit", "leave", "lights_on", "lights_off", "heat")


class MotesConnector:
    """Simulated seats, lights, thermometers, meters, detectors, machines and radio links.

    Readings of a sensor come every `period`, spread evenly; a seat also reports at once when
    somebody sits down or leaves. A source takes the readings of its option `topic`.
    """

    kind = "motes"
    endpoint_options = MotesEndpoint
    source_options = MotesSource

    def __init__(self) -> None:
        self._world: simulation.World | None = None
        self._field = MoteField("")
        self._context: ConnectorContext | None = None
        self._fed: dict[str, list[DeclaredSource]] = {}

    async def run(self, context: ConnectorContext) -> None:
        """Sense until cancelled."""
        options = context.endpoint_as(MotesEndpoint)
        field = load_field(Path(options.file))
        tour = simulation.tour_of(_detectors(options))
        self._world = world = simulation.World(options.seed, options.turnover)
        recall(world, context.memory)
        self._context, self._field, self._fed = context, field, _by_topic(context.sources)
        context.describe([_description(mote, self._fed) for mote in field.motes], field.rooms)
        measures = bool(options.live_machine) and "machineload" in self._fed
        due = _schedule(field, options)
        loop = asyncio.get_running_loop()
        start = last = loop.time()
        slot = 0
        while True:
            elapsed, last = loop.time() - last, loop.time()
            now = context.clock()
            sensed = list(self._people(world, elapsed, now))
            if sensed:
                context.remember(remembered(world))
            for mote in due[slot % len(due)]:
                sensed.extend(_sense(mote, world, options, tour, now))
            if slot % len(due) == 0:
                sensed.extend(_links(field, options, now))
            if measures and slot % LIVE_TICKS == 0:
                sensed.append(await _measured(options.live_machine))
            self._emit(sensed, now)
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
        sensed, done = self._do(world, action, arguments, now)
        context.remember(remembered(world))
        self._emit([sensed], now)
        return done

    def past(self, hour: int, every: int) -> Iterator[PastPack]:
        """Yield what the motes would have read in an hour; see `PastSimulation`."""
        context = self._context
        if context is None:
            raise ValueError("the motes are not running yet")
        options = context.endpoint_as(MotesEndpoint)
        motes, live = self._field.motes, options.live_machine
        world = PastWorld(context.gateway, options.seed, motes, live)
        return world.packs(self._fed, hour, every)

    def _do(
        self, world: simulation.World, action: str, arguments: dict[str, Value], now: int
    ) -> tuple[Sensed, str]:
        if action in ("sit", "leave"):
            mid = str(arguments.get("mid", ""))
            mote = self._mote("seat", mid=mid)
            world.sit(mid, taken=action == "sit", until=now + PIN)
            return sensing.seat(mote, world), f"{action} at {mid}"
        rid = str(arguments.get("rid", ""))
        if action in ("lights_on", "lights_off"):
            mote = self._mote("light", rid=rid)
            world.dark_rooms[rid] = action == "lights_off"
            return sensing.light(mote, world, now), f"{action} in {rid}"
        if action == "heat":
            mote = self._mote("temperature", rid=rid)
            world.heat[rid] = _degrees(arguments.get("celsius"))
            what = f"{rid} heated by {world.heat[rid]:g} degrees"
            return sensing.temperature(mote, world, now), what
        raise ValueError(f"unknown action {action!r:.40}; known: {', '.join(ACTIONS)}")

    def _mote(self, kind: str, *, mid: str | None = None, rid: str | None = None) -> Mote:
        for mote in self._field.motes:
            if mote.kind == kind and (mid is None or mote.mid == mid) and rid in (None, mote.rid):
                return mote
        raise ValueError(f"no {kind} sensor of {mid or rid!r} behind this gateway")

    def _people(self, world: simulation.World, elapsed: float, now: int) -> Iterator[Sensed]:
        for mote in self._field.motes:
            if mote.kind == "seat" and mote.mid and world.live(mote.mid, now, elapsed):
                yield sensing.seat(mote, world)

    def _emit(self, sensed: Iterable[Sensed], now: int) -> None:
        assert self._context is not None  # noqa: S101  (it runs)
        readings: list[Reading] = []
        for topic, values, sensor, gone in sensed:
            for source in self._fed.get(topic, ()):
                if gone:
                    readings += source.withdraw_record(values, time=now)
                else:
                    readings += source.read_record(values, None, sensor, time=now)
        self._context.emit(readings)


def _by_topic(sources: Iterable[DeclaredSource]) -> dict[str, list[DeclaredSource]]:
    """Return the sources by the readings that they take; one without any has a problem."""
    found: dict[str, list[DeclaredSource]] = {}
    for source in sources:
        topic = (source.options_as(MotesSource).topic or source.name).lower()
        if topic in sensing.TOPICS:
            found.setdefault(topic, []).append(source)
        else:
            known = ", ".join(sensing.TOPICS)
            source.problem(f"motes have no readings {topic!r:.60}; set topic to one of {known}")
    return found


def _description(mote: Mote, fed: dict[str, list[DeclaredSource]]) -> SensorDescription:
    topic = sensing.TOPIC_OF_KIND.get(mote.kind, "")
    stream = next((source.name for source in fed.get(topic, ())), "")
    return SensorDescription(
        name=mote.sensor,
        stream=stream,
        unit=mote.unit,
        kind=mote.kind,
        room=mote.rid,
        level=mote.level,
        x=mote.x,
        y=mote.y,
    )


async def _measured(machine: str) -> Sensed:
    """Return the load of this computer as that of a machine."""
    from gateway.connectors.soft_sensors.measuring import load_of, measure  # noqa: PLC0415

    measured = await asyncio.to_thread(measure, 1)
    return Sensed("machineload", load_of(machine, measured), f"soft-{machine}")


def _sense(
    mote: Mote,
    world: simulation.World,
    options: MotesEndpoint,
    tour: tuple[Detector, ...],
    now: int,
) -> Iterator[Sensed]:
    """Yield what one mote senses now; the load of the machine that is real is measured instead."""
    simulated = bool(mote.mid) and mote.mid != options.live_machine
    match mote.kind:
        case "seat" if mote.mid:
            yield sensing.seat(mote, world)
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


def _links(field: MoteField, options: MotesEndpoint, now: int) -> Iterator[Sensed]:
    for peer in field.peers:
        ratio = simulation.delivery_ratio(peer, options.seed, now)
        ends: dict[str, object] = {"src": peer.src, "dst": peer.dst}
        if ratio < MIN_DELIVERY:
            yield Sensed(sensing.LINK_TOPIC, ends, gone=True)
        else:
            values = {**ends, "cost": round(1 / ratio, 3), "pdr": ratio}
            yield Sensed(sensing.LINK_TOPIC, values)


def _degrees(value: Value) -> float:
    degrees = float(value or 0.0)
    if not -MAX_HEAT <= degrees <= MAX_HEAT:
        raise ValueError(f"celsius must be between -{MAX_HEAT:g} and {MAX_HEAT:g}")
    return degrees


def _detectors(options: MotesEndpoint) -> tuple[Detector, ...]:
    return load_detectors(Path(options.detectors)) if options.detectors else ()


def _schedule(field: MoteField, options: MotesEndpoint) -> list[list[Mote]]:
    """Spread the motes over the ticks of one period."""
    slots: list[list[Mote]] = [[] for _ in range(max(round(options.period / TICK), 1))]
    for number, mote in enumerate(field.motes):
        slots[number % len(slots)].append(mote)
    return slots
