"""CREATE SINK: what is understood, and what is refused with a way out."""

import pytest

from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition, SinkFormat, SinkMode
from streamsql.errors import BindingError
from tests.streamsql.from_text import bound_query, catalog_of

SCHEMA = """
CREATE SOURCE climate (device TEXT, temperature DOUBLE UNIT 'Cel', humidity DOUBLE UNIT '%RH',
  ts TIMESTAMP, KEY (device)) WITH (connector = 'mqtt', topic = 'tele/{device}/S');
CREATE SOURCE seen (device TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 s');
CREATE VIEW warm AS SELECT device, temperature FROM climate WHERE temperature > 20;
"""
MQTT = "connector = 'mqtt', topic = 'b/{device}'"
HOOK = "connector = 'webhook', endpoint = 'hook'"


def sink(query: str, options: str) -> SinkDefinition:
    text = f"CREATE SINK s FROM {query} WITH ({options})"
    (found,) = catalog_of(SCHEMA, text).sinks
    assert found.text == text
    return found


def test_a_relation_is_upserts_by_the_columns_of_its_topic() -> None:
    found = sink("warm", MQTT)
    assert (found.connector, found.mode) == (SinkConnector.MQTT, SinkMode.UPSERT)
    assert (found.key, found.units) == (("device",), ("", "Cel"))
    assert (found.endpoint, found.format, found.discovery) == ("", SinkFormat.JSON, "")
    assert found.target == "b/{device} at the federation's broker"
    assert found.query_name == "sink s"


@pytest.mark.parametrize(
    "query",
    [
        "ISTREAM(SELECT device, temperature FROM climate)",
        "SELECT device, COUNT(*) AS n, window_end FROM TUMBLE(seen, ts, INTERVAL '1 minute') "
        "GROUP BY device, window_start, window_end EMIT ON WINDOW CLOSE",
    ],
)
def test_rows_that_are_final_are_appended(query: str) -> None:
    found = sink(query, MQTT)
    assert (found.mode, found.key) == (SinkMode.APPEND, ())


def test_a_relation_of_one_row_needs_no_column_in_its_topic() -> None:
    found = sink("SELECT COUNT(*) AS n FROM climate", "connector = 'mqtt', topic = 'b/count'")
    assert (found.mode, found.key) == (SinkMode.UPSERT, ())


def test_options_are_read() -> None:
    found = sink(
        "SELECT device, temperature AS t, humidity * 2 AS h FROM climate",
        f"{HOOK}, key = 'device', format = 'senml', units = 'h = %, t=degF', batch = 5, "
        "tries = 3, timeout = '2 s'",
    )
    assert (found.connector, found.endpoint) == (SinkConnector.WEBHOOK, "hook")
    assert (found.format, found.units) == (SinkFormat.SENML, ("", "degF", "%"))
    assert (found.batch, found.tries, found.timeout) == (5, 3, 2_000_000)
    assert found.target == "hook"
    found = sink("warm", f"{MQTT}, discovery = 'homeassistant', endpoint = 'home'")
    assert (found.discovery, found.endpoint) == ("homeassistant", "home")
    found = sink("warm", f"{MQTT}, discovery = 'homeassistant', discovery_prefix = 'ha'")
    assert found.discovery == "ha"


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("warm", "topic = 'b/{device}'", "needs a connector"),
        ("warm", "connector = 'kafka'", "no connector 'kafka'"),
        ("warm", "connector = 'mqtt'", "needs a topic"),
        ("warm", f"{MQTT}, batch = 3", "no option 'batch'"),
        ("warm", f"{MQTT}, endpoint = 'mqtt://u:p@h'", "not the name of an endpoint"),
        ("warm", "connector = 'mqtt', topic = 'b/{desk}'", "no column 'desk'"),
        ("warm", "connector = 'mqtt', topic = 'pando/{device}'", "first level"),
        ("warm", f"{MQTT}, key = 'temperature'", "different columns"),
        ("warm", f"{MQTT}, key = 'desk'", "no column 'desk'"),
        ("warm", f"{HOOK}, key = 'device, device'", "twice"),
        ("warm", HOOK, "needs a key"),
        ("warm", "connector = 'webhook', key = 'device'", "needs an endpoint"),
        ("warm", f"{MQTT}, format = 'xml'", "no format 'xml'"),
        ("warm", f"{MQTT}, discovery = 'openhab'", "no discovery"),
        ("warm", f"{MQTT}, discovery_prefix = 'ha'", "without discovery"),
        (
            "warm",
            f"{MQTT}, discovery = 'homeassistant', discovery_prefix = 'a/b'",
            "no level",
        ),
        ("warm", f"{MQTT}, discovery = 'homeassistant', format = 'senml'", "reads JSON"),
        ("warm", f"{MQTT}, units = 'temperature'", "not column=unit"),
        ("warm", f"{MQTT}, units = 'temperature=parsec'", "no unit 'parsec'"),
        ("warm", f"{HOOK}, key = 'device', tries = 0", "from 1 to 100"),
        ("warm", f"{HOOK}, key = 'device', batch = 5000", "from 1 to 1000"),
        ("warm", f"{HOOK}, key = 'device', timeout = '1 h'", "up to 2 min"),
        ("warm", f"{HOOK}, key = 'device', timeout = 'soon'", "up to 2 min"),
        ("ISTREAM(SELECT device FROM climate)", f"{HOOK}, key = 'device'", "have no key"),
        (
            "ISTREAM(SELECT device FROM climate)",
            f"{MQTT}, discovery = 'homeassistant'",
            "no state",
        ),
    ],
)
def test_what_is_wrong_is_refused(query: str, options: str, message: str) -> None:
    with pytest.raises(BindingError, match=message) as refused:
        sink(query, options)
    assert refused.value.hint


def test_a_sink_is_no_relation() -> None:
    script = f"{SCHEMA} CREATE SINK s FROM warm WITH ({MQTT});"
    with pytest.raises(BindingError, match="is a sink, not a relation"):
        bound_query("SELECT * FROM s", catalog_of(script))


ROOMS = "CREATE SINK first FROM SELECT device, humidity FROM climate WITH ({});"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("b/{device}", "b/{humidity}"),
        ("b/{device}", "b/d1"),
        ("b/x", "b/x"),
        ("b/a-{device}", "b/{humidity}-z"),
        ("b/{device}/{humidity}", "b/a/{device}"),
    ],
)
def test_topics_that_another_sink_may_write_are_refused(first: str, second: str) -> None:
    query = "SELECT device, humidity, temperature FROM climate"
    for one, other in ((first, second), (second, first)):
        made = ROOMS.format(f"connector = 'mqtt', topic = '{one}'")
        text = f"CREATE SINK s FROM {query} WITH (connector = 'mqtt', topic = '{other}')"
        with pytest.raises(BindingError, match="sink first writes topics of") as refused:
            catalog_of(SCHEMA, made, text)
        assert refused.value.code == "topic_in_use"
        assert "DROP SINK first" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("first", "second", "endpoint"),
    [
        ("b/{device}", "b/{device}/humidity", ""),
        ("b/{device}", "c/{device}", ""),
        ("b/a-{device}", "b/b-{device}", ""),
        ("b/{device}-a", "b/{device}-b", ""),
        ("b/a-{device}", "b/a-", ""),
        ("b/{device}", "b/{device}", ", endpoint = 'home'"),
    ],
)
def test_topics_that_no_other_sink_writes_are_taken(first: str, second: str, endpoint: str) -> None:
    query = "SELECT device, humidity, temperature FROM climate"
    made = ROOMS.format(f"connector = 'mqtt', topic = '{first}'")
    text = f"CREATE SINK s FROM {query} WITH (connector = 'mqtt', topic = '{second}'{endpoint})"
    assert len(catalog_of(SCHEMA, made, text).sinks) == 2
