"""What running queries and sites teach the prices of recursions."""

import pytest

from federated_optimizer.coordinator.queries.planner import facts_of, source_facts
from federated_optimizer.coordinator.sites.federation_membership import Membership
from federated_optimizer.placement import SourceFacts
from streamsql.wire.messages import RecursionReport
from streamsql.wire.site_messages import (
    Birth,
    ConnectorState,
    SensorDescription,
    SiteRole,
    SiteState,
)
from tests.streamsql.from_text import catalog_of

SECOND = 1_000_000


def test_without_changes_nothing_is_known() -> None:
    assert facts_of([], 60.0) is None
    assert facts_of([RecursionReport("r")], 60.0) is None


def test_what_is_there_is_no_motion() -> None:
    # 100 base rows have come, and then 30 went and came back; the view moved 5 rows each time.
    one = RecursionReport("r", leaf_rows=60, leaf_changes=90, view_rows=400, view_changes=550)
    two = RecursionReport("r", leaf_rows=40, leaf_changes=70, view_rows=500, view_changes=650)
    facts = facts_of([one, two], 60.0)
    assert facts is not None
    assert (facts.base_rows, facts.view_rows) == (100.0, 900.0)
    assert facts.changes == pytest.approx(1.0)
    assert facts.view_changes == pytest.approx(5.0)


def test_a_few_changes_do_not_tell_how_far_they_reach() -> None:
    report = RecursionReport("r", leaf_rows=10, leaf_changes=12, view_rows=10, view_changes=500)
    facts = facts_of([report], 10.0)
    assert facts is not None
    assert facts.view_changes == 0.0


def test_births_and_states_tell_of_sources() -> None:
    catalog = catalog_of(
        "CREATE SOURCE seat (mid TEXT, kg DOUBLE, KEY (mid));"
        "CREATE SOURCE heat (sensor TEXT, celsius DOUBLE) WITH (ttl = '10 s');"
        "CREATE SOURCE quiet (sensor TEXT);"
    )
    membership = Membership()
    sensors = tuple(SensorDescription(f"s{i}", "Seat") for i in range(7))
    membership.hear_birth(Birth("gw-1", 1, 0, 0, sensors=sensors, sources=("seat", "heat")))
    connector = ConnectorState("motes", "motes", ("heat", "seat"), readings=400)
    state = SiteState(True, 1, 101 * SECOND, started=1 * SECOND, connectors=(connector,))
    membership.hear_state("gw-1", state, 0)
    assert source_facts(catalog, membership) == {
        "seat": SourceFacts(rows=7.0),
        "heat": SourceFacts(rows=20.0, changes=4.0),
    }


def test_what_databases_compare_comes_from_the_static_engine() -> None:
    catalog = catalog_of("CREATE TABLE big (k INTEGER, x DOUBLE);")
    membership = Membership()
    state = SiteState(True, 1, 0, SiteRole.STATIC, tables={"big": 20_000}, compared={"big": ("k",)})
    membership.hear_state("static", state, 0)
    facts = SourceFacts(rows=20_000.0, compared=frozenset({"k"}))
    assert source_facts(catalog, membership) == {"big": facts}


def test_a_site_is_long_gone_only_after_its_time() -> None:
    membership = Membership()
    membership.hear_state("gw-1", SiteState(True, 1, 0), 0)
    assert membership.long_gone(100 * SECOND, 10 * SECOND) == frozenset()
    membership.hear_state("gw-1", SiteState(False, 1, 0), 100 * SECOND)
    assert membership.long_gone(109 * SECOND, 10 * SECOND) == frozenset()
    assert membership.long_gone(110 * SECOND, 10 * SECOND) == frozenset({"gw-1"})
    membership.hear_state("gw-1", SiteState(True, 2, 0), 111 * SECOND)
    assert membership.long_gone(200 * SECOND, 10 * SECOND) == frozenset()
