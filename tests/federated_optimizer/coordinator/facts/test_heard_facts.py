"""Facts that are made of states, births, links and counts of recursions."""

import pytest

from federated_optimizer.coordinator.facts.heard_facts import (
    LOOK_MICROSECONDS,
    MAX_SOURCES,
    HeardFacts,
)
from federated_optimizer.coordinator.sites.published_links import LinkTable
from federated_optimizer.statistics.fact import DAY, Origin, Quantity, Subject, SubjectKind, share
from federated_optimizer.statistics.fact_store import Facts
from streamsql.wire.messages import LinkMessage
from streamsql.wire.site_messages import (
    Birth,
    ConnectorState,
    DeclaredState,
    SensorDescription,
    SiteRole,
    SiteState,
)
from tests.streamsql.from_text import catalog_of

SECOND = 1_000_000
HOUR = 3_600 * SECOND
SOURCES = """
CREATE SOURCE heat (sensor TEXT, celsius DOUBLE);
CREATE SOURCE seat (sensor TEXT, kg DOUBLE);
CREATE SOURCE elsewhere (sensor TEXT);
CREATE LINK SOURCE link (a TEXT, b TEXT, cost DOUBLE);
CREATE TABLE big (k INTEGER);
"""
CATALOG = catalog_of(SOURCES)


def state(seconds: int, readings: int = 0, started: int = 1, **more: object) -> SiteState:
    """A state of a site with a connector of two sources."""
    connector = ConnectorState("motes", "motes", ("heat", "Seat"), readings=readings)
    times = {"started": started * SECOND, "connectors": (connector,)}
    return SiteState(True, 1, seconds * SECOND, **{**times, **more})  # type: ignore[arg-type]


def rate(facts: Facts, source: str, site: str = "gw-1") -> float | None:
    fact = facts.find(Subject(SubjectKind.SOURCE, source, site), Quantity.INSERTS)
    return None if fact is None else fact.value


def test_the_first_state_gives_the_mean_of_the_life_and_later_ones_are_smoothed() -> None:
    facts = Facts()
    heard = HeardFacts(facts, CATALOG)
    heard.hear_state("gw-1", state(101, 400), 0)
    assert (rate(facts, "heat"), rate(facts, "seat")) == (2.0, 2.0)  # equal shares of both
    heard.hear_state("gw-1", state(201, 2_400), 0)  # ten a second of each since
    found = rate(facts, "heat")
    assert found is not None
    assert 6.0 < found < 7.0  # the mean of both times, the later one counts more
    heard.hear_state("gw-2", state(101, 400), 0)
    assert rate(facts, "heat") == found  # each gateway by itself
    for number in range(1, 40):
        heard.hear_state("gw-1", state(201 + 100 * number, 2_400 + 2_000 * number), 0)
    assert rate(facts, "heat") == pytest.approx(10.0, rel=1e-3)


def test_states_that_come_often_are_read_now_and_then() -> None:
    facts = Facts()
    heard = HeardFacts(facts, CATALOG)
    heard.hear_state("gw-1", state(101, 400), 0)
    for number in range(1, 30):
        heard.hear_state("gw-1", state(101 + number, 400 + 1_000 * number), 0)
        assert rate(facts, "heat") == 2.0
    heard.hear_state("gw-1", state(131, 400), 0)  # nothing was read in thirty seconds
    found = rate(facts, "heat")
    assert found is not None
    assert found < 2.0


def test_declared_sources_are_counted_one_by_one() -> None:
    facts = Facts()
    declared = (
        DeclaredState("Heat", 1, endpoint="motes", rows=300),
        DeclaredState("elsewhere", 1),
    )
    HeardFacts(facts, CATALOG).hear_state("gw-1", state(101, 400, declared=declared), 0)
    assert (rate(facts, "heat"), rate(facts, "seat")) == (3.0, 2.0)
    assert rate(facts, "elsewhere") is None


def test_a_coordinator_that_starts_again_goes_on_with_what_was_measured() -> None:
    before = Facts()
    first = HeardFacts(before, CATALOG)
    for step in range(20):
        first.hear_state("gw-1", state(1_000 + 100 * step, 2_000 * step), 0)
    known = rate(before, "heat")
    facts = Facts(before)
    again = HeardFacts(facts, CATALOG)
    again.hear_state("gw-1", state(3_000, 40_000), 0)
    assert rate(facts, "heat") == known  # not the mean over the life of the gateway
    again.hear_state("gw-1", state(3_100, 42_000), 0)
    assert rate(facts, "heat") == pytest.approx(known, rel=0.1)
    late = Facts(before)
    HeardFacts(late, CATALOG).hear_state("gw-1", state(3_000, 2_999 * 8), DAY)
    assert rate(late, "heat") == 4.0  # a day old: the mean is better


def test_a_will_says_nothing_about_rates() -> None:
    facts = Facts()
    heard = HeardFacts(facts, CATALOG)
    heard.hear_state("gw-1", SiteState(False, 1, 200 * SECOND, started=SECOND), 0)
    assert len(facts) == 0


def test_births_announce_sensors_until_the_next_one() -> None:
    facts = Facts()
    heard = HeardFacts(facts, CATALOG)
    seats = tuple(SensorDescription(f"s{i}", "Seat") for i in range(7))
    heat = (SensorDescription("h", "heat"),)
    heard.hear_birth(Birth("gw-1", 1, 0, 0, sensors=seats + heat), 5)
    heard.hear_birth(Birth("gw-2", 1, 0, 0, sensors=seats[:2]), 5)

    def told() -> dict[tuple[str, str], float]:
        found = [f for f in facts if f.quantity == Quantity.SENSORS]
        assert all(f.origin == Origin.ANNOUNCED and f.confidence == 1 for f in found)
        return {f.subject[1:]: f.value for f in found}

    assert told() == {("seat", "gw-1"): 7.0, ("heat", "gw-1"): 1.0, ("seat", "gw-2"): 2.0}
    heard.hear_birth(Birth("gw-1", 1, 1, 0, sensors=seats[:3]), 6)
    assert told() == {("seat", "gw-1"): 3.0, ("seat", "gw-2"): 2.0}
    for at, confirmed in ((9 * SECOND, 6), (3_700 * SECOND, 3_700 * SECOND)):
        heard.hear_state("gw-1", state(101, 400), at)
        seat = facts.find(Subject(SubjectKind.SOURCE, "seat", "gw-1"), Quantity.SENSORS)
        assert seat is not None
        assert seat.at == confirmed  # the site says so still
    heard.forget("gw-1")
    assert {f.subject.part for f in facts} == {"gw-2"}


def test_links_are_counted_by_gateway_with_the_range_of_their_costs() -> None:
    facts, links = Facts(), LinkTable()
    heard = HeardFacts(facts, CATALOG)
    for target, cost in (("b", 1.0), ("c", 4.0), ("d", None)):
        links.put("gw-1", ("Link", "a", target), LinkMessage("a", target, cost))
    links.put("gw-2", ("Link", "b", "a"), LinkMessage("b", "a", 7.0))
    heard.look((), links, now=0, moment=0)
    subject = Subject(SubjectKind.SOURCE, "link", "gw-1")
    rows, cost_ = (facts.find(subject, q) for q in (Quantity.ROWS, Quantity.LINK_COST))
    assert rows is not None
    assert cost_ is not None
    assert rows.value == 3.0
    assert (cost_.value, cost_.low, cost_.high) == (2.5, 1.0, 4.0)
    for target in ("b", "c", "d"):
        links.remove("gw-1", ("Link", "a", target))
    heard.look((), links, now=1, moment=LOOK_MICROSECONDS - 1)
    assert facts.find(subject, Quantity.ROWS) is not None  # looked at not long ago
    heard.look((), links, now=1, moment=LOOK_MICROSECONDS)
    assert {f.subject.part for f in facts} == {"gw-2"}


def test_times_of_engines_are_told_by_the_static_engine() -> None:
    facts = Facts()
    counters = {"spark_floor_us": 310_000, "spark_rows_per_s": 2_000_000, "local_floor_us": 90}
    told = SiteState(True, 1, 0, SiteRole.STATIC, counters=counters)
    HeardFacts(facts, CATALOG).hear_state("static", told, 5)
    found = {(f.subject.name, f.quantity): f.value for f in facts}
    assert found == {
        ("spark", Quantity.FLOOR_SECONDS): 0.31,
        ("spark", Quantity.ROWS_A_SECOND): 2e6,
        ("local", Quantity.FLOOR_SECONDS): 90e-6,
    }
    assert {(f.subject.kind, f.origin, f.at) for f in facts} == {
        (SubjectKind.ENGINE, Origin.TIMED, 5)
    }


def test_sizes_of_tables_are_known_as_long_as_there_is_the_table() -> None:
    facts, catalog = Facts(), catalog_of(SOURCES)
    heard = HeardFacts(facts, catalog)
    told = SiteState(True, 1, 0, SiteRole.STATIC, tables={"Big": 20_000, "small": 3})
    heard.hear_state("static", told, 0)
    assert {f.subject.name: f.value for f in facts} == {"big": 20_000.0}
    catalog.drop("big")
    heard.look((), LinkTable(), now=0, moment=0)
    assert len(facts) == 0


def test_the_greatest_costs_of_links_have_a_mean() -> None:
    facts, links = Facts(), LinkTable()
    for target in ("b", "c", "d"):
        links.put("gw-1", ("Link", "a", target), LinkMessage("a", target, 1.7e308))
    HeardFacts(facts, CATALOG).look((), links, now=0, moment=0)
    cost = facts.find(Subject(SubjectKind.SOURCE, "link", "gw-1"), Quantity.LINK_COST)
    assert cost is not None
    assert (cost.value, cost.low, cost.high) == (1.7e308, 1.7e308, 1.7e308)


def named(facts: Facts) -> set[tuple[str, str, Quantity]]:
    return {(*f.subject[1:], f.quantity) for f in facts}


def test_names_that_the_catalog_does_not_have_are_no_facts() -> None:
    facts = Facts()
    heard = HeardFacts(facts, CATALOG)
    strange = tuple(f"s{number}" for number in range(9_000))
    sensors = (*(SensorDescription(name, name) for name in strange), SensorDescription("h", "Heat"))
    heard.hear_birth(Birth("gw-1", 1, 0, 0, sensors=sensors), 0)
    connectors = (ConnectorState("c", "motes", (*strange, "heat"), readings=9_001),)
    counted = dict.fromkeys(strange, (5, 5))
    told = state(101, connectors=connectors, counted=counted)
    heard.hear_state("gw-1", told, 0)
    links = LinkTable()
    links.put("gw-1", ("strange", "a", "b"), LinkMessage("a", "b", 1.0))
    heard.look((), links, now=0, moment=0)
    assert named(facts) == {
        ("heat", "gw-1", Quantity.SENSORS),
        ("heat", "gw-1", Quantity.INSERTS),
    }


def test_a_site_has_facts_about_a_bounded_number_of_sources() -> None:
    names = tuple(f"s{number}" for number in range(MAX_SOURCES + 5))
    text = "".join(f"CREATE SOURCE {name} (sensor TEXT);" for name in names)
    facts = Facts()
    heard = HeardFacts(facts, catalog_of(text))
    sensors = tuple(SensorDescription(name, name) for name in names)
    heard.hear_birth(Birth("gw-1", 1, 0, 0, sensors=sensors), 0)
    connectors = (ConnectorState("c", "motes", names, readings=10_000),)
    counted = dict.fromkeys(names, (5, 5))
    heard.hear_state("gw-1", state(101, connectors=connectors, counted=counted), 0)
    assert len(facts) == 3 * MAX_SOURCES


def test_sensors_of_a_source_are_known_when_the_source_is_made_later() -> None:
    facts, catalog = Facts(), catalog_of("")
    heard = HeardFacts(facts, catalog)
    heard.hear_birth(Birth("gw-1", 1, 0, 0, sensors=(SensorDescription("h", "Heat"),)), 0)
    links = LinkTable()
    links.put("gw-1", ("link", "a", "b"), LinkMessage("a", "b", 1.0))
    heard.look((), links, now=0, moment=0)
    assert len(facts) == 0
    for source in CATALOG.sources:
        catalog.define(source)
    heard.hear_state("gw-2", state(101, 400), 0)
    assert rate(facts, "heat", "gw-2") == 2.0  # at once
    heard.look((), links, now=1, moment=LOOK_MICROSECONDS)
    assert named(facts) == {
        ("heat", "gw-2", Quantity.INSERTS),
        ("seat", "gw-2", Quantity.INSERTS),
        ("heat", "gw-1", Quantity.SENSORS),
        ("link", "gw-1", Quantity.ROWS),
        ("link", "gw-1", Quantity.LINK_COST),
    }


def test_rates_go_when_a_site_does_not_name_the_source_any_more() -> None:
    before = Facts()
    HeardFacts(before, CATALOG).hear_state("gw-1", state(101, 400, counted={"heat": (9, 9)}), 0)
    assert {name for name, _, _ in named(before)} == {"heat", "seat"}
    facts = Facts(before)  # after a restart of the coordinator
    heard = HeardFacts(facts, CATALOG)
    only_seat = (ConnectorState("scales", "motes", ("seat",), readings=100),)
    heard.hear_state("gw-1", state(130, started=101, connectors=()), 0)
    heard.hear_state("gw-1", state(900, started=0, connectors=()), 0)
    assert len(facts) == len(before)  # the gateway has just started, or does not say when
    heard.hear_state("gw-1", state(231, started=101, connectors=only_seat), 0)
    assert named(facts) == {("seat", "gw-1", Quantity.INSERTS)}
    heard.hear_state("gw-1", state(331, 400, started=101), 0)
    heard.hear_state("gw-1", state(361, 700, started=101), 0)
    assert {name for name, _, _ in named(facts)} == {"heat", "seat"}


def test_facts_of_sites_and_links_that_went_while_the_coordinator_was_away_go() -> None:
    before, links = Facts(), LinkTable()
    first = HeardFacts(before, CATALOG)
    for site in ("gw-1", "gw-2", "gw-3"):
        links.put(site, ("link", site, "b"), LinkMessage(site, "b", 1.0))
        first.hear_birth(Birth(site, 1, 0, 0, sensors=(SensorDescription("h", "heat"),)), 0)
        first.hear_state(site, state(101, 400), 0)
    first.hear_state("gw-4", state(101, 400), 0)
    first.look((), links, now=0, moment=0)
    facts, links = Facts(before), LinkTable()
    heard = HeardFacts(facts, CATALOG)
    heard.look((), links, now=0, moment=0)
    assert len(facts) == len(before)  # nothing was heard yet
    for site in ("gw-1", "gw-2"):
        links.put(site, ("link", site, "b"), LinkMessage(site, "b", 1.0))
    heard.look((), links, now=0, moment=10 * SECOND)
    linked = {f.subject.part for f in facts if f.quantity == Quantity.ROWS}
    assert linked == {"gw-1", "gw-2"}
    links.remove("gw-2", ("link", "gw-2", "b"))
    heard.hear_birth(Birth("gw-1", 1, 1, 0, sensors=(SensorDescription("s", "seat"),)), 0)
    assert ("heat", "gw-1", Quantity.SENSORS) not in named(facts)
    heard.hear_state("gw-2", SiteState(False, 1, 0), 0)  # away, but not removed
    heard.look((), links, now=0, moment=HOUR)
    assert {f.subject.part for f in facts} == {"gw-1", "gw-2"}


def test_the_last_links_that_went_while_the_coordinator_was_away_are_waited_for() -> None:
    before, links = Facts(), LinkTable()
    links.put("gw-1", ("link", "a", "b"), LinkMessage("a", "b", 1.0))
    HeardFacts(before, CATALOG).look((), links, now=0, moment=0)
    facts = Facts(before)
    heard = HeardFacts(facts, CATALOG)
    heard.look((), LinkTable(), now=0, moment=0)
    assert len(facts) == 2
    heard.look((), LinkTable(), now=0, moment=60 * SECOND)
    assert len(facts) == 0


def test_a_source_that_is_made_anew_has_no_facts_of_the_old_one() -> None:
    facts, catalog = Facts(), catalog_of(SOURCES)
    heard = HeardFacts(facts, catalog)
    heard.hear_state("gw-1", state(101, 400), 0)
    for source in ("heat", "seat"):
        for kind, part in ((SubjectKind.PREDICATE, "celsius > 25.0"), (SubjectKind.COLUMN, "x")):
            subject = Subject(kind, source, part)
            facts.put(share(subject, Quantity.SELECTIVITY, 1, 1_000_000, 0, Origin.COUNTED))
    heard.look((), LinkTable(), now=0, moment=0)
    assert len(facts) == 6
    catalog.drop("heat")
    catalog.define(catalog_of("CREATE SOURCE heat (celsius INTEGER);").sources[0])
    heard.look((), LinkTable(), now=0, moment=LOOK_MICROSECONDS)
    assert {f.subject.name for f in facts} == {"seat"}
    few = share(
        Subject(SubjectKind.PREDICATE, "heat", "celsius > 25.0"),
        *(Quantity.SELECTIVITY, 60, 64, 1, Origin.COUNTED),
    )
    assert facts.learn(few)
    catalog.drop("seat")
    heard.look((), LinkTable(), now=0, moment=2 * LOOK_MICROSECONDS)
    assert [*facts] == [few]
