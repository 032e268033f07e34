"""A choice rests on what the search looked up, and stays while that moves little."""

import random
from dataclasses import replace

import pytest

from federated_optimizer.alternatives.recursion.recursions import MUCH
from federated_optimizer.coordinator.adaptation.plan_basis import (
    STAYS,
    NotedStatistics,
    left_range,
    range_of,
)
from federated_optimizer.network.topology import Topology, colocation_of
from federated_optimizer.planning import normalize
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import Passing, SourceFacts, Statistics
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE room (rid TEXT, status TEXT, KEY (rid)) WITH (colocate = 'rid');"
    "CREATE SOURCE seat (mid TEXT, rid TEXT, KEY (mid)) WITH (colocate = 'rid');"
    "CREATE SOURCE other (x TEXT, KEY (x));"
)
SITES = Topology(
    dict.fromkeys(("gw-1", "gw-2"), frozenset({"room", "seat", "other"})),
    colocation=colocation_of(CATALOG),
)
COUNT = "SELECT status, COUNT(*) AS n FROM room GROUP BY status"
TEXTS = (
    COUNT,
    "SELECT DISTINCT status FROM room",
    "SELECT s.mid, r.status FROM seat s JOIN room r ON s.rid = r.rid",
)


def known(**sources: tuple[float, float]) -> Statistics:
    return Statistics(sources={name: SourceFacts(*facts) for name, facts in sources.items()})


def noted(text: str, statistics: Statistics) -> NotedStatistics:
    found = NotedStatistics(statistics)
    Search(normalize(bound_query(text, CATALOG).plan, SITES), SITES, found.statistics).taken()
    return found


def test_the_basis_is_what_the_search_looked_up() -> None:
    basis = noted(COUNT, known(room=(10.0, 0.5), other=(1.0, 1.0))).basis()
    assert basis["sources", "room", "rows"] == 10.0
    assert basis["sources", "room", "changes"] == 0.5
    assert not any("other" in key for key in basis)


def test_a_number_has_to_leave_its_range() -> None:
    basis = noted(COUNT, known(room=(10.0, 0.5))).basis()
    assert not left_range(basis, known(room=(10.0, 0.5)))
    assert not left_range(basis, known(room=(10.0 * STAYS * 0.99, 0.5 / STAYS * 1.01)))
    (more,) = left_range(basis, known(room=(10.0, 0.5 * STAYS * 1.01)))
    assert str(more).startswith("changes a second of room: 0.5 before, now 0.714; ")
    assert str(more).endswith("the plan was chosen for 0.354 to 0.707")
    first, second = left_range(basis, known(room=(20.0, 5.0)))
    assert (first.key[2], second.key[2]) == ("changes", "rows")  # what changed most


def test_numbers_that_move_together_leave_their_ranges_together() -> None:
    join = noted(TEXTS[2], known(room=(10.0, 0.5), seat=(20.0, 2.0))).basis()
    assert not left_range(join, known(room=(14.0, 0.5), seat=(14.5, 2.0)))
    found = left_range(join, known(room=(14.0, 0.5), seat=(14.5, 1.6)))
    assert str(found[0]) == (
        "rows of room: 10 before, now 14; it moved together with 2 other numbers"
    )
    slightly = known(room=(10.0 * 1.18, 0.5 / 1.18), seat=(20.0 * 1.18, 2.0 / 1.18))
    assert not left_range(join, slightly), "as any measurement does"


def test_what_becomes_known_is_told_and_what_is_forgotten_is_not() -> None:
    basis = noted(COUNT, known()).basis()
    (found,) = left_range(basis, known(room=(10.0, 0.5)))
    assert "not known before, now" in str(found)
    assert not left_range(noted(COUNT, known(room=(10.0, 0.5))).basis(), known())


def test_rates_near_nothing_are_all_the_same() -> None:
    basis = noted(COUNT, known(room=(10.0, 0.0))).basis()
    assert range_of(0.0)[0] == 0.0
    assert not left_range(basis, known(room=(10.0, 0.009)))
    assert left_range(basis, known(room=(10.0, 0.02)))


def test_age_alone_changes_nothing() -> None:
    text = "SELECT rid, status FROM room WHERE status = 'open'"
    filtered = replace(
        known(room=(10.0, 0.5)), passing={("room", "status = 'open'"): Passing(0.5, 0.4, 0.6)}
    )
    basis = noted(text, filtered).basis()
    aged = replace(filtered, passing={("room", "status = 'open'"): Passing(0.5, 0.0, 1.0)})
    assert ("passing", ("room", "status = 'open'"), "share") in basis
    assert not left_range(basis, aged)


@pytest.mark.parametrize("text", TEXTS)
def test_while_one_number_stays_no_plan_is_much_cheaper(text: str) -> None:
    """The range is sound: a search with one number moved to its edge keeps the choice."""
    chance = random.Random(text)
    plan = normalize(bound_query(text, CATALOG).plan, SITES)
    for _ in range(12):
        facts = {
            name: (10 ** chance.uniform(0, 4), 10 ** chance.uniform(-2, 3))
            for name in ("room", "seat")
        }
        taken = Search(plan, SITES, known(**facts)).taken()
        source, edge = chance.choice(("room", "seat")), chance.choice((STAYS, 1 / STAYS))
        rows, changes = facts[source]
        moved = (rows * edge, changes) if chance.random() < 0.5 else (rows, changes * edge)
        search = Search(plan, SITES, known(**{**facts, source: moved}))
        after = search.taken(running=(taken.number, taken.digest), much=MUCH)
        assert after.digest == taken.digest, (facts, source, moved)
