"""Columns by what they read: the topic, facts, the row, the payload's root."""

from streamsql.data.types import DataType
from streamsql.mapping.row_columns import topic_names
from streamsql.mapping.source_mapping import ColumnMapping, SourceMapping
from tests.streamsql.mapping.sources import Columns, mapper

ARRIVAL = 1_700_000_000_000_000


def test_names_in_options_feed_columns() -> None:
    mapping = SourceMapping(
        "mqtt", options=(("topic", "{site}/shelly-{id}/#"), ("url", '{"a": 1}'), ("path", "{x y}"))
    )
    assert topic_names(mapping) == {"site", "id"}


def test_a_level_of_the_topic_wins_over_a_field_of_its_name() -> None:
    columns: Columns = {
        "device": (DataType.TEXT, ColumnMapping()),
        "field": (DataType.TEXT, ColumnMapping("device")),
        "topic": (DataType.TEXT, ColumnMapping()),
    }
    payload = b'{"device":"payload","topic":"mine"}'
    facts = {"device": "level", "topic": "a/b"}
    assert mapper(columns, topic="{device}").map(payload, facts, ARRIVAL).rows == [
        {"device": "level", "field": "payload", "topic": "mine"}
    ]


def test_an_event_time_of_the_root_is_that_of_all_rows() -> None:
    columns: Columns = {
        "v": (DataType.INTEGER, ColumnMapping()),
        "ts": (DataType.TIMESTAMP, ColumnMapping("$.at", format="unix")),
    }
    source = mapper(columns, SourceMapping("x", rows="r"), time_column=1)
    assert source.map(b'{"at":7,"r":[{"v":1},{"v":2}]}', {}, ARRIVAL).rows == [
        {"v": 1, "ts": 7_000_000},
        {"v": 2, "ts": 7_000_000},
    ]
    bad = source.map(b'{"at":"x","r":[{"v":1},{"v":2}]}', {}, ARRIVAL)
    assert [row["ts"] for row in bad.rows] == [ARRIVAL, ARRIVAL]
    assert "column ts: 'x' is no number" in bad.problems


def test_an_event_time_may_be_a_fact() -> None:
    columns: Columns = {
        "v": (DataType.INTEGER, ColumnMapping()),
        "ts": (DataType.TIMESTAMP, ColumnMapping("@time")),
    }
    source = mapper(columns, time_column=1)
    assert source.map(b'{"v":1}', {"time": 5}, ARRIVAL).rows == [{"v": 1, "ts": 5}]
    assert source.map(b'{"v":1}', {"time": 2**63}, ARRIVAL).rows == [{"v": 1, "ts": ARRIVAL}]


def test_columns_of_facts_are_converted() -> None:
    columns: Columns = {
        "room": (DataType.INTEGER, ColumnMapping()),
        "kept": (
            DataType.TEXT,
            ColumnMapping("@retained", values=(("true", "old"), ("false", "new"))),
        ),
    }
    mapped = mapper(columns, topic="r/{room}").map(b"{}", {"room": "12", "retained": True}, ARRIVAL)
    assert mapped.rows == [{"room": 12, "kept": "old"}]
    wrong = mapper(columns, topic="r/{room}").map(b"{}", {"room": "x"}, ARRIVAL)
    assert wrong.rows == [{"room": None, "kept": None}]
    assert wrong.problems == ["column room: 'x' is no number"]
