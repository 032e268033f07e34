"""Estimates by columns are as often right as devices that are simulated say."""

import random
from collections.abc import Callable

import pytest

from federated_optimizer.costs.estimates import estimate
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE meter (device TEXT, v DOUBLE, ts TIMESTAMP, KEY (device)) WITH (ttl = '1 h');
    CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, ts TIMESTAMP, KEY (src, dst))
      WITH (ttl = '1 h');"""
)


def changed(best: Callable[[list[float]], float], devices: int) -> float:
    """Return the share of readings that change the best one of so many devices."""
    chance = random.Random(devices)
    held = [chance.random() for _ in range(devices)]
    changes, readings = 0, 20_000
    for _ in range(readings):
        before = best(held)
        held[chance.randrange(devices)] = chance.random()
        changes += before != best(held)
    return changes / readings


@pytest.mark.parametrize("devices", [1, 2, 3, 8, 40])
@pytest.mark.parametrize(("name", "best"), [("MAX", max), ("MIN", min)])
def test_the_best_reading_changes_as_often(
    name: str, best: Callable[[list[float]], float], devices: int
) -> None:
    bound = bound_query(f"SELECT {name}(v) AS best FROM meter", CATALOG)
    known = Statistics(sources={"meter": SourceFacts(float(devices), 2_000.0)})
    found = estimate(bound.plan, known)
    assert found.inserts / 1_000.0 == pytest.approx(changed(best, devices), rel=0.1)


def test_links_that_are_heard_again_as_they_were_hardly_move() -> None:
    known = Statistics(sources={"link": SourceFacts(50.0, 10.0)})
    ends = estimate(bound_query("SELECT src, dst FROM link", CATALOG).plan, known)
    assert ends.inserts < 0.01
    times = estimate(bound_query("SELECT src, ts FROM link", CATALOG).plan, known)
    assert times.inserts == pytest.approx(5.0)
