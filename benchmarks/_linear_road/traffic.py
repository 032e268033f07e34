"""Position reports of cars on expressways: the same ones every time for the same numbers.

Every car reports each thirty seconds where it is, each car at its own second. Cars drive at the
speed of their segment, which is slow in places, and some stand still for a while: where two or more
do, there is an accident.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026-01-01
REPORT_SECONDS = 30
FEET_PER_MILE = 5_280
SEGMENT_FEET = FEET_PER_MILE
SEGMENTS = 100

Report = tuple[int, int, int, int, int, int]
"""Car, speed in miles per hour, expressway, direction, position in feet, time in microseconds."""


@dataclass(slots=True)
class _Car:
    number: int
    road: int
    direction: int
    position: float
    speed: int
    halted: int = 0


def reports(
    cars: int, *, roads: int = 1, seed: int = 7, segments: int = SEGMENTS, halts: float = 0.004
) -> Iterator[tuple[int, list[Report]]]:
    """Yield, without end, each second's time and reports.

    Args:
        cars: That are on the road at any time; one that leaves is replaced by another.
        roads: Expressways.
        seed: Of all choices.
        segments: Miles of every expressway.
        halts: Probability that a car stands still from a report on.
    """
    random = Random(seed)
    numbers = iter(range(10**12))
    found = [_new(next(numbers), roads, segments, random) for _ in range(cars)]
    second = 0
    while True:
        now = START + second * SECOND
        batch = []
        for place in range(second % REPORT_SECONDS, cars, REPORT_SECONDS):
            car = found[place]
            _drive(car, halts, random)
            if not 0 <= car.position < segments * SEGMENT_FEET:
                car = found[place] = _new(next(numbers), roads, segments, random)
            feet = int(car.position)
            batch.append((car.number, car.speed, car.road, car.direction, feet, now))
        yield now, batch
        second += 1


def _new(number: int, roads: int, segments: int, random: Random) -> _Car:
    position = random.random() * segments * SEGMENT_FEET
    return _Car(number, random.randrange(roads), random.randrange(2), position, 60)


def _drive(car: _Car, halts: float, random: Random) -> None:
    """Move a car for the time between two reports."""
    segment = int(car.position) // SEGMENT_FEET
    if car.halted:
        car.halted -= 1
        car.speed = 0
        return
    if random.random() < halts:
        car.halted = random.randint(3, 12)
        # Cars stop beside each other: accidents are at few places of a segment.
        car.position = segment * SEGMENT_FEET + random.randrange(4) * SEGMENT_FEET // 4
        car.speed = 0
        return
    slow = segment % 7 == 3
    car.speed = random.randint(10, 45) if slow else random.randint(40, 90)
    feet = car.speed * FEET_PER_MILE / 3_600 * REPORT_SECONDS
    car.position += feet if car.direction == 0 else -feet
