"""Estimates by columns are as often right as devices that are simulated say."""

import random
from collections.abc import Callable

import pytest

from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.costs.tree_shares import TreeShare
from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    SourceFacts,
    Statistics,
)
from tests import user_aggregates
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE meter (device TEXT, v DOUBLE, ts TIMESTAMP, KEY (device)) WITH (ttl = '1 h');
    CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, ts TIMESTAMP, KEY (src, dst))
      WITH (ttl = '1 h');""",
    user_aggregates.DEFINITIONS,
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
@pytest.mark.parametrize(("name", "best"), [("MAX", max), ("MIN", min), ("peak", max)])
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


def test_gateways_that_meet_have_the_values_of_all_of_them() -> None:
    """Merging parts of devices that are at one gateway each saves nothing."""
    part = bound_query("SELECT DISTINCT room FROM heat [RANGE 1 MINUTE]", TREE).plan
    apart = ColumnFacts(distinct=24.0, local=4.0)
    known = Statistics(sources={"heat": SourceFacts(None, 0.8)}, columns={("heat", "room"): apart})
    alone = estimate(part, known, sites=6)
    met = TreeShare(part, 2, 3, 6).rows(known)
    assert met.rows == pytest.approx(alone.rows, rel=0.3)
    assert met.events == pytest.approx(alone.events, rel=0.3)
    same = Statistics(
        sources=known.sources, columns={("heat", "room"): ColumnFacts(distinct=4.0, local=4.0)}
    )
    assert TreeShare(part, 2, 3, 6).rows(same).events < 0.5 * estimate(part, same, sites=6).events


TREE = catalog_of("CREATE SOURCE Heat (room TEXT, celsius DOUBLE);")
