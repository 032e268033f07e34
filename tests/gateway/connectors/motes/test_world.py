"""The simulated world is a function of seed and time."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.motes import world as simulation
from gateway.connectors.motes.mote_field import Detector, Peer
from gateway.connectors.motes.motes_connector import PIN
from gateway.connectors.motes.world import World
from gateway.testing import SECOND

NOW = 1_800_000_000 * SECOND
TIMES = st.integers(0, 2_000_000_000_000_000)


def facts(world: World, now: int) -> list[object]:
    return [
        world.seat("m1"),
        world.light("r1", now),
        world.celsius("r1", 1.0, 2.0, 0, now),
        world.load("m1", now),
        simulation.delivery_ratio(Peer("a", "b", 12.0), world.seed, now),
    ]


@given(st.integers(0, 100), TIMES)
def test_equal_seeds_give_equal_worlds(seed: int, now: int) -> None:
    assert facts(World(seed, 60.0), now) == facts(World(seed, 60.0), now)


@given(st.integers(0, 100), TIMES, st.floats(0, 200), st.integers(0, 3))
def test_values_stay_within_what_is_possible(
    seed: int, now: int, metres: float, level: int
) -> None:
    world = World(seed, 60.0)
    assert 0.0 <= simulation.delivery_ratio(Peer("a", "b", metres), seed, now) <= 1.0
    assert 0.0 < world.light("r", now) < 400.0
    assert 15.0 < world.celsius("r", metres, 12.0, level, now) < 35.0
    cpu, task = world.load("m", now)
    assert 0.0 <= cpu <= 1.0
    assert task


def test_people_sit_about_as_long_as_told() -> None:
    world = World(1, turnover=60.0)
    changes = sum(world.live("m", 0, 1.0) for _ in range(6_000))
    assert 60 < changes < 150, "about one a minute in a hundred minutes"


def test_a_pinned_seat_stays() -> None:
    world = World(1, turnover=1e-9)
    world.sit("m", taken=True, until=NOW + PIN)
    assert not world.live("m", NOW + PIN - 1, 1.0)
    assert world.live("m", NOW + PIN, 1.0)


@given(st.integers(0, 5), TIMES)
def test_visitors_walk_along_the_tour_on_one_level_at_a_time(number: int, now: int) -> None:
    detectors = tuple(
        Detector(f"d{n}", float(n * 15 % 70), float(n % 3 * 10), n % 2) for n in range(9)
    )
    tour = simulation.tour_of(detectors)
    assert sorted(tour, key=lambda d: d.detector) == sorted(detectors, key=lambda d: d.detector)
    x, y, level = simulation.visitor_place(number, tour, now)
    on_level = [d for d in detectors if d.level == level]
    assert min(d.x for d in on_level) <= x <= max(d.x for d in on_level)
    assert min(d.y for d in on_level) <= y <= max(d.y for d in on_level)


def test_a_building_without_detectors_has_no_tour() -> None:
    assert simulation.tour_of(()) == ()
