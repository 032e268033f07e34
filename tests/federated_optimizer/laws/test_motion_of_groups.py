"""Rows a second that groups and distinct rows change by, against counting them one by one."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.costs.sent_columns import sent_bytes
from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    SourceFacts,
    Statistics,
)
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE bag (level INTEGER, v DOUBLE) WITH (ttl = '60 s');
    CREATE SOURCE seat (seat TEXT, level INTEGER, v DOUBLE, KEY (seat)) WITH (ttl = '600 s');
    CREATE TABLE room (seat TEXT PRIMARY KEY, floor INTEGER) WITH (source = 'csv', path = 'r.csv');
    CREATE TABLE step (level INTEGER PRIMARY KEY, name INTEGER) WITH (source = 'csv', path = 's');
    """
)
Held = list[tuple[int, float]]
Groups = Callable[[Held], set[tuple[float, ...]]]


def by_level(value: Callable[[Held], float]) -> Groups:
    def groups(held: Held) -> set[tuple[float, ...]]:
        levels = {level for level, _ in held}
        return {(k, value([row for row in held if row[0] == k])) for k in levels}

    return groups


QUERIES: dict[str, Groups] = {
    "SELECT DISTINCT level FROM {}": lambda held: {(level,) for level, _ in held},
    "SELECT level, COUNT(*) AS n FROM {} GROUP BY level": by_level(len),
    "SELECT level, SUM(level) AS s FROM {} GROUP BY level": by_level(
        lambda rows: sum(level for level, _ in rows)
    ),
    "SELECT level, MIN(v) AS m FROM {} GROUP BY level": by_level(
        lambda rows: min(v for _, v in rows)
    ),
}


@dataclass(frozen=True)
class World:
    """Rows that hold, levels from 0 on, and the share of the first one."""

    rows: int
    levels: int
    common: float

    def level(self, chance: random.Random) -> int:
        if chance.random() < self.common:
            return 0
        return chance.randrange(1, self.levels) if self.levels > 1 else 0

    def statistics(self, source: str, changes: float) -> Statistics:
        levels = sorted(self.level(random.Random(n)) for n in range(4_000))
        deciles = tuple(float(levels[min(n * 400, 3_999)]) for n in range(11))
        same = sum((levels.count(k) / len(levels)) ** 2 for k in range(self.levels))
        level = ColumnFacts(self.levels, self.levels, self.common, 1.0, 0.0, same, deciles)
        v = ColumnFacts(1e9, 1e9, 1e-9, 1.0, 0.0, 0.0)
        return Statistics(
            sources={source: SourceFacts(float(self.rows), changes)},
            columns={(source, "level"): level, (source, "v"): v},
        )


WORLDS = [World(40, 2, 0.5), World(60, 20, 0.5), World(30, 400, 1 / 400), World(4, 2, 0.5)]


def moved(groups: Groups, world: World, *, replace: bool) -> float:
    """Rows that come or go for a reading that takes the oldest row's, or another one's, place."""
    chance, steps = random.Random(7), 400
    held = [(world.level(chance), chance.random()) for _ in range(world.rows)]
    before, count = groups(held), 0
    for _ in range(steps):
        new = (world.level(chance), chance.random())
        if replace:
            held[chance.randrange(len(held))] = new
            after = groups(held)
            count += len(before ^ after)
        else:  # the old row goes at another time
            held.append(new)
            between = groups(held)
            held.pop(0)
            after = groups(held)
            count += len(before ^ between) + len(between ^ after)
        before = after
    return count / steps


@pytest.mark.parametrize("world", WORLDS, ids=str)
@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("source", ["bag", "seat"])
def test_changes_are_those_that_are_counted(text: str, world: World, source: str) -> None:
    statistics = world.statistics(source, 2.0)  # a reading a second: a row comes, one goes
    found = estimate(bound_query(text.format(source), CATALOG).plan, statistics)
    wanted = moved(QUERIES[text], world, replace=source == "seat")
    # A sixth of a row for a reading: less is nothing beside the others.
    assert found.inserts + found.deletes == pytest.approx(wanted, rel=0.5, abs=0.17)


def moved_by_table(text: str, seats: int, levels: int) -> float:
    """Rows that come or go for a reading of one of some seats, which stand on four floors."""
    chance, steps = random.Random(5), 600
    held = [(chance.randrange(levels), chance.random()) for _ in range(seats)]

    def groups() -> set[tuple[float, ...]]:
        rows: dict[int, list[float]] = {}
        for seat, (level, v) in enumerate(held):
            rows.setdefault(seat % 4 if "room" in text else level, []).append(v)
        return {(k, max(vs) if "MAX" in text else len(vs)) for k, vs in rows.items()}

    before, count = groups(), 0
    for _ in range(steps):
        held[chance.randrange(seats)] = (chance.randrange(levels), chance.random())
        after = groups()
        count, before = count + len(before ^ after), after
    return count / steps


@pytest.mark.parametrize("seats", [8, 40])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT r.floor, COUNT(*) AS n FROM seat s JOIN room r ON r.seat = s.seat GROUP BY r.floor",
        "SELECT r.floor, MAX(s.v) AS m FROM seat s JOIN room r ON r.seat = s.seat GROUP BY r.floor",
        "SELECT t.name, COUNT(*) AS n FROM seat s JOIN step t ON t.level = s.level GROUP BY t.name",
    ],
)
def test_groups_by_columns_of_a_table_change_with_the_key_that_finds_its_row(
    text: str, seats: int
) -> None:
    levels = 16
    known = World(seats, levels, 1 / levels).statistics("seat", 2.0)
    floors = ColumnFacts(4.0, 4.0, 0.25)
    names = ColumnFacts(float(levels), float(levels), 1 / levels)
    statistics = replace(
        known,
        sources={**known.sources, "room": SourceFacts(seats), "step": SourceFacts(levels)},
        columns={**known.columns, ("room", "floor"): floors, ("step", "name"): names},
    )
    found = estimate(bound_query(text, CATALOG).plan, statistics)
    wanted = moved_by_table(text, seats, levels)
    assert found.inserts + found.deletes == pytest.approx(wanted, rel=0.5, abs=0.17)


def test_whole_numbers_are_as_wide_as_they_are() -> None:
    plan = bound_query("SELECT level, v FROM bag", CATALOG).plan
    unknown = sent_bytes(plan, Statistics())

    def wider(most: int) -> float:
        deciles = tuple(most * n / 10 for n in range(11))
        known = {("bag", "level"): ColumnFacts(10.0, 10.0, deciles=deciles)}
        return sent_bytes(plan, Statistics(columns=known)) - unknown

    assert wider(9) == -2.0
    assert 0.0 < wider(90_000) < 2.0
