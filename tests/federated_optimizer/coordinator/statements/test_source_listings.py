"""SHOW SOURCES and DESCRIBE of sources that gateways read from devices."""

from federated_optimizer.coordinator.contract.coordinator_model import Freshness, SiteInfo
from federated_optimizer.coordinator.statements.listings import describe_definition, show
from streamsql.wire.site_messages import DeclaredState, SiteRole, SiteState
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of(
    """
    CREATE SOURCE climate (
      device TEXT, temp DOUBLE FROM 'AM2301.Temperature' UNIT 'Cel',
      kwh DOUBLE IN 'Wh' UNIT 'kWh', raw INTEGER FROM 'adc' SCALE 0.1 OFFSET -40,
      contact BOOLEAN VALUES ('ON' = TRUE, 'OFF' = FALSE),
      ts TIMESTAMP FROM 'Time' FORMAT '%d.%m.%Y' ZONE 'Europe/Berlin', KEY (device)
    ) WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{device}/SENSOR', ttl = '90 s',
            only = 'type=sensor, ENERGY', gateways = 'west');
    CREATE SOURCE seat (desk TEXT, ts TIMESTAMP, KEY (desk));
    """
)


def test_sources_are_listed_with_what_feeds_them() -> None:
    listed = show("sources", CATALOG, (), ())
    rows = {row[0]: dict(zip(listed.columns, row, strict=True)) for row in listed.rows}
    climate, seat = rows["climate"], rows["seat"]
    assert (climate["connector"], climate["endpoint"], climate["version"]) == ("mqtt", "home", 1)
    assert (seat["connector"], seat["endpoint"], seat["version"]) == ("", "", None)


def site(name: str, *declared: DeclaredState, online: bool = True) -> SiteInfo:
    state = SiteState(online=online, epoch=1, ts=1, declared=declared)
    freshness = Freshness.LIVE if online else Freshness.STALE
    return SiteInfo(name, SiteRole.GATEWAY, online, freshness, epoch=1, since=0, state=state)


def climate(*sites: SiteInfo) -> tuple[object, object]:
    listed = show("sources", CATALOG, (), sites)
    row = next(dict(zip(listed.columns, r, strict=True)) for r in listed.rows if r[0] == "climate")
    return row["gateways"], row["missing"]


def test_gateways_whose_rows_are_missing_are_listed_with_the_reason() -> None:
    assert climate(
        site("a", DeclaredState("climate", 1)),
        site("b", DeclaredState("climate", 1, "connector mqtt is not installed")),
        site("c", DeclaredState("climate", 7)),
        site("d", DeclaredState("climate", 1), online=False),
        site("e", DeclaredState("other", 1)),
        site("west", DeclaredState("climate", 1)),
    ) == (
        "a, west",
        "b: connector mqtt is not installed; c: serves version 7, not 1; d: is offline",
    )
    assert climate() == ("", "west: has never reported")
    unknown = "west: endpoint 'home' is unknown here; there are: none"
    assert climate(site("west")) == ("", unknown)


def test_a_declared_source_says_where_each_column_comes_from() -> None:
    definition = CATALOG.find("climate")
    assert definition is not None
    described = describe_definition(definition, CATALOG)
    assert described.columns == ("column", "type", "from", "unit", "note")
    assert described.rows == (
        ("device", "TEXT", "{device}", "", "key"),
        ("temp", "DOUBLE", "AM2301.Temperature", "Cel", ""),
        ("kwh", "DOUBLE", "kwh", "kWh", "IN 'Wh'"),
        ("raw", "INTEGER", "adc", "", "SCALE 0.1; OFFSET -40"),
        ("contact", "BOOLEAN", "contact", "", "VALUES of 'ON', 'OFF'"),
        ("ts", "TIMESTAMP", "Time", "", "event time; FORMAT '%d.%m.%Y'; ZONE 'Europe/Berlin'"),
        (
            *("", "", "", ""),
            "connector mqtt, endpoint home, gateways west, topic tele/{device}/SENSOR, "
            "format json, only type=sensor, ENERGY",
        ),
        ("", "", "", "", "version 1"),
    )


def test_other_sources_are_described_as_before() -> None:
    definition = CATALOG.find("seat")
    assert definition is not None
    described = describe_definition(definition, CATALOG)
    assert described.columns == ("column", "type", "note")
    assert described.rows == (("desk", "TEXT", "key"), ("ts", "TIMESTAMP", "event time"))
