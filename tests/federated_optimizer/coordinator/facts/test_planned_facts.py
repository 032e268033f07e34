"""Plans are made with the facts."""

from federated_optimizer.coordinator.facts.heard_facts import HeardFacts
from federated_optimizer.coordinator.facts.planned_facts import recursion_facts, source_facts
from federated_optimizer.statistics.default_facts import DATABASE_ROWS
from federated_optimizer.statistics.fact import HOUR, Origin, Quantity, Subject, SubjectKind, exact
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.planning_statistics import RecursionFacts, SourceFacts
from streamsql.wire.site_messages import (
    Birth,
    ConnectorState,
    SensorDescription,
    SiteRole,
    SiteState,
)
from tests.streamsql.from_text import catalog_of

SECOND = 1_000_000


def test_births_and_states_tell_of_sources() -> None:
    catalog = catalog_of(
        "CREATE SOURCE seat (mid TEXT, kg DOUBLE, KEY (mid));"
        "CREATE SOURCE heat (sensor TEXT, celsius DOUBLE) WITH (ttl = '10 s');"
        "CREATE SOURCE quiet (sensor TEXT);"
        "CREATE SOURCE events (badge TEXT);"
    )
    facts = Facts()
    heard = HeardFacts(facts, catalog)
    for gateway, count in (("gw-1", 5), ("gw-2", 2)):
        sensors = tuple(SensorDescription(f"s{i}", "Seat") for i in range(count))
        heard.hear_birth(Birth(gateway, 1, 0, 0, sensors=sensors), 0)
        connector = ConnectorState("motes", "motes", ("heat", "seat", "events"), readings=300)
        state = SiteState(True, 1, 101 * SECOND, started=SECOND, connectors=(connector,))
        heard.hear_state(gateway, state, 0)
    assert source_facts(catalog, facts, {}) == {
        "seat": SourceFacts(rows=7.0),
        "heat": SourceFacts(rows=20.0, changes=4.0),
        "events": SourceFacts(rows=None, changes=4.0),
    }


def test_sites_count_readings_and_changed_rows_of_each_source() -> None:
    catalog = catalog_of("CREATE SOURCE seat (mid TEXT, kg DOUBLE, KEY (mid));")
    facts = Facts()
    heard = HeardFacts(facts, catalog)
    connector = ConnectorState("motes", "motes", ("heat", "seat"), readings=10_000)
    for gateway in ("gw-1", "gw-2"):
        state = SiteState(
            *(True, 1, 101 * SECOND),
            started=SECOND,
            connectors=(connector,),
            counted={"seat": (800, 150)},
        )
        heard.hear_state(gateway, state, 0)
    assert source_facts(catalog, facts, {}) == {"seat": SourceFacts(rows=None, changes=3.0)}
    told = {(f.quantity, f.subject.part): f.value for f in facts if f.subject.name == "seat"}
    assert told[Quantity.INSERTS, "gw-1"] == 8.0


def test_sizes_and_what_databases_compare_come_from_the_static_engine() -> None:
    catalog = catalog_of(
        "CREATE TABLE big (k INTEGER, x DOUBLE);"
        "CREATE TABLE unheard (k INTEGER) "
        "WITH (source = 'sql', url = 'sqlite:///x.db', table = 't');"
        "CREATE TABLE file (k INTEGER);"
    )
    facts = Facts()
    state = SiteState(True, 1, 0, SiteRole.STATIC, tables={"big": 20_000})
    HeardFacts(facts, catalog).hear_state("static", state, 0)
    found = source_facts(catalog, facts, {"big": frozenset({"k"})})
    assert found == {
        "big": SourceFacts(rows=20_000.0, compared=frozenset({"k"})),
        "unheard": SourceFacts(rows=DATABASE_ROWS.value),
    }


def test_recursions_are_known_by_their_key() -> None:
    facts = Facts()
    told = {
        Quantity.ROWS: 100.0,
        Quantity.VIEW_ROWS: 900.0,
        Quantity.CHANGES: 1.5,
        Quantity.VIEW_CHANGES: 0.0,
    }
    for key in ("a", "b"):
        for quantity, value in told.items():
            subject = Subject(SubjectKind.RECURSION, key)
            facts.put(exact(subject, quantity, value, 0, Origin.COUNTED))
    one = RecursionFacts(100.0, 900.0, 1.5, 0.0, age=7.0)
    assert recursion_facts(facts, 7 * SECOND) == {"a": one, "b": one}


def test_rates_of_gateways_that_are_away_do_not_count() -> None:
    catalog = catalog_of("CREATE SOURCE heat (sensor TEXT) WITH (ttl = '10 s');")
    facts = Facts()
    for gateway, hours in (("gw-1", 5), ("gw-2", 1), ("gw-3", 0)):
        subject = Subject(SubjectKind.SOURCE, "heat", gateway)
        rate = exact(subject, Quantity.INSERTS, 10.0, -hours * HOUR, Origin.COUNTED)
        facts.put(rate)
    assert source_facts(catalog, facts, {})["heat"] == SourceFacts(rows=200.0, changes=40.0)
    facts.discard(Subject(SubjectKind.SOURCE, "heat", "gw-2"), Quantity.INSERTS)
    facts.discard(Subject(SubjectKind.SOURCE, "heat", "gw-3"), Quantity.INSERTS)
    # After a night in which nobody was heard the last rates are the best there are.
    assert source_facts(catalog, facts, {})["heat"] == SourceFacts(rows=100.0, changes=20.0)


def test_sensors_count_until_they_are_discarded() -> None:
    catalog = catalog_of("CREATE SOURCE seat (mid TEXT, KEY (mid));")
    facts = Facts()
    for gateway, hours in (("gw-1", 500), ("gw-2", 0)):
        subject = Subject(SubjectKind.SOURCE, "seat", gateway)
        facts.put(exact(subject, Quantity.SENSORS, 7.0, -hours * HOUR, Origin.ANNOUNCED))
    assert source_facts(catalog, facts, {})["seat"] == SourceFacts(rows=14.0)
