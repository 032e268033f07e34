"""The simulated past: the same whenever it is asked for, with weeks, incidents and outages."""

from statistics import mean

import pytest

from gateway.connectors.motes.mote_field import Mote
from gateway.connectors.motes.past_world import DAY, HOUR, MOTES_AT_ONCE, PastWorld, weekday
from gateway.connectors.reading import PastPack
from gateway.intake.validation import event_of
from tests.gateway.connectors.building import building_sources, context_for, fed_by

MONDAY = 20_780 * DAY  # 2026-11-23
MINUTES = 600_000_000
ROOMS = [f"R{number}" for number in range(5)]
MOTES = [
    *(Mote(f"t-{room}", "temperature", room, x=1.0, y=2.0, level=1) for room in ROOMS),
    *(Mote(f"l-{room}", "light", room) for room in ROOMS),
    *(Mote(f"s-{n}", "seat", "R0", f"m{n}") for n in range(MOTES_AT_ONCE + 10)),
    *(Mote(f"e-{n}", "energy", "R0", f"m{n}") for n in range(3)),
    *(Mote(f"c-{n}", "load", "R0", f"m{n}") for n in range(3)),
    Mote("r-1", "rfid", "R0"),
]


def packs(gateway: str, first: int, hours: int, every: int = MINUTES) -> list[PastPack]:
    sources = fed_by("motes")
    context = context_for(sources, {}, clock=lambda: 0, emit=None, problem=pytest.fail)
    by_topic = {source.name: [source] for source in context.sources}
    world = PastWorld(gateway, 1, MOTES, live_machine="m0")
    return [p for hour in range(first, first + hours) for p in world.packs(by_topic, hour, every)]


def test_readings_fit_the_building_and_their_hour_and_numbers_name_them() -> None:
    first = MONDAY // HOUR
    found = packs("gw-1", first, 24)
    sources = building_sources()
    assert {p.source for p in found} == {
        *("temperature", "roomsensor", "seatsensor", "energymeter", "machineload")
    }
    for pack in found:
        hours = set()
        for reading in pack.readings:
            event = event_of(reading, sources[pack.source], MONDAY + 30 * DAY)
            hours.add(event.ts // HOUR)
        assert len(hours) == 1
        assert 0 < len(pack.readings) <= 6 * MOTES_AT_ONCE
    assert len({pack.number for pack in found}) == len(found)
    assert packs("gw-1", first, 24) == found, "the same whenever it is asked for"
    assert max(pack.number for pack in found) < 2**53
    # Another interval gives other readings under the same numbers: an hour counts once.
    assert {p.number for p in packs("gw-1", first, 24, HOUR)} == {p.number for p in found}
    loads = {r.values["mid"] for p in found if p.source == "machineload" for r in p.readings}
    assert loads == {"m1", "m2"}, "nobody knows what the load of the real machine was"


def test_people_come_on_weekdays_and_rooms_are_warm_at_noon() -> None:
    found = packs("gw-1", MONDAY // HOUR, 7 * 24, HOUR)
    taken: dict[tuple[bool, bool], list[bool]] = {}
    warm: dict[int, list[float]] = {}
    for pack in found:
        for reading in pack.readings:
            assert reading.ts is not None
            hour = reading.ts % DAY // HOUR
            if pack.source == "seatsensor":
                key = (weekday(reading.ts) < 5, 8 <= hour < 18)
                taken.setdefault(key, []).append(float(str(reading.values["weightlevel"])) > 5)
            elif pack.source == "temperature" and weekday(reading.ts) == 0:
                warm.setdefault(hour, []).append(float(str(reading.values["celsius"])))
    assert mean(taken[True, True]) > 0.6
    assert max(mean(taken[key]) for key in taken if key != (True, True)) < 0.1
    assert mean(warm[13]) > mean(warm[3]) + 2


def test_each_week_has_an_incident_and_gateways_are_away_now_and_then() -> None:
    for week in range(4):
        first = MONDAY // HOUR + week * 7 * 24
        hot = {
            (reading.values["rid"], weekday(reading.ts or 0), (reading.ts or 0) % DAY // HOUR)
            for pack in packs("gw-1", first, 7 * 24, HOUR)
            if pack.source == "temperature"
            for reading in pack.readings
            if float(str(reading.values["celsius"])) > 27
        }
        assert {(day, hour) for _, day, hour in hot} <= {(2, 13), (2, 14)}
        assert len({room for room, _, _ in hot}) == 1
    world = PastWorld("gw-1", 1, MOTES)
    away = sum(world.is_away(MONDAY // HOUR + hour) for hour in range(90 * 24))
    assert 3 <= away <= 25
