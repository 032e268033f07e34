"""Payloads through a mapper: rows, problems, and that nothing from outside raises."""

import json

import pytest

from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Value
from streamsql.mapping.mapper import MAX_PROBLEMS, Mapped, Mapper
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import Columns, Source, mapper

ARRIVAL = 1_700_000_000_000_000
CLIMATE: Columns = {
    "device": (DataType.TEXT, ColumnMapping()),
    "temperature": (DataType.DOUBLE, ColumnMapping("AM2301.Temperature", unit="Cel")),
    "humidity": (DataType.DOUBLE, ColumnMapping("AM2301.Humidity")),
    "ts": (DataType.TIMESTAMP, ColumnMapping("Time")),
}
TASMOTA = b'{"Time":"2024-05-01T10:00:00","AM2301":{"Temperature":21.5,"Humidity":44.1}}'


def climate() -> Mapper:
    return mapper(CLIMATE, key=(0,), time_column=3, topic="tele/{device}/SENSOR")


def test_a_tasmota_payload_is_a_row() -> None:
    mapped = climate().map(TASMOTA, {"device": "th16", "topic": "tele/th16/SENSOR"}, ARRIVAL)
    row: dict[str, Value] = {
        "device": "th16",
        "temperature": 21.5,
        "humidity": 44.1,
        "ts": 1714557600000000,
    }
    assert mapped == Mapped([row], [])
    assert list(mapped.rows[0]) == ["device", "temperature", "humidity", "ts"]


def test_a_row_without_a_time_has_that_of_its_arrival() -> None:
    mapped = climate().map(b'{"AM2301":{"Temperature":20}}', {"device": "a"}, ARRIVAL)
    assert mapped.rows == [{"device": "a", "temperature": 20.0, "humidity": None, "ts": ARRIVAL}]
    assert mapped.problems == []


def test_a_bad_value_is_null_and_a_problem() -> None:
    mapped = climate().map(b'{"AM2301":{"Temperature":"hot"}}', {"device": "a"}, ARRIVAL)
    assert mapped.rows[0]["temperature"] is None
    assert mapped.problems == ["column temperature: 'hot' is no number"]
    assert mapped.refused == 0


def test_a_row_without_its_key_is_refused() -> None:
    mapped = climate().map(TASMOTA, {}, ARRIVAL)
    assert mapped == Mapped([], ["the key column device has no value"], 1)


def test_a_payload_of_another_device_is_refused_with_what_it_has() -> None:
    mapped = climate().map(b'{"POWER":"ON"}', {"device": "a"}, ARRIVAL)
    assert mapped.rows == []
    assert mapped.refused == 1
    assert "no column's field is there" in mapped.problems[0]
    assert "'POWER'" in mapped.problems[0]


@pytest.mark.parametrize("payload", [b"[1,", b"\xff\xfe", b"NaN", b"[" * 100_000, b'"\\ud800"'])
def test_what_is_no_json_is_one_problem(payload: bytes) -> None:
    mapped = climate().map(payload, {}, ARRIVAL)
    assert (mapped.rows, mapped.refused, len(mapped.problems)) == ([], 1, 1)
    assert mapped.problems[0].startswith("payload: ")


def test_payloads_are_bounded() -> None:
    mapped = climate().map(b" " * 1_000_001, {}, ARRIVAL)
    assert mapped.problems == ["payload: 1,000,001 bytes; the max is 1,000,000"]
    deep = b'{"a":' * 66 + b"1" + b"}" * 66
    assert climate().map(deep, {}, ARRIVAL).problems == ["payload: it is nested deeper than 64"]
    fits = b'{"AM2301":' + b"[" * 60 + b"]" * 60 + b"}"
    assert climate().map(fits, {}, ARRIVAL).problems != ["payload: it is nested deeper than 64"]


def test_an_empty_payload_is_ignored() -> None:
    assert climate().map(b"", {}, ARRIVAL) == Mapped([], [], ignored=True)


SENSORS: Columns = {
    "id": (DataType.TEXT, ColumnMapping("@key")),
    "site": (DataType.TEXT, ColumnMapping("$.site")),
    "value": (DataType.INTEGER, ColumnMapping("v")),
}


def test_elements_of_an_object_are_rows_with_their_key() -> None:
    payload = b'{"site":"north","sensors":{"a":{"v":1},"b":{"v":2}}}'
    mapped = mapper(SENSORS, SourceMapping("mqtt", rows="sensors[*]")).map(payload, {}, ARRIVAL)
    assert [tuple(row.values()) for row in mapped.rows] == [("a", "north", 1), ("b", "north", 2)]
    assert (
        mapper(SENSORS, SourceMapping("mqtt", rows="sensors")).map(payload, {}, ARRIVAL) == mapped
    )


def test_elements_of_an_array_have_an_index_and_a_bad_one_is_told_by_number() -> None:
    columns: Columns = {
        "place": (DataType.INTEGER, ColumnMapping("@index")),
        "value": (DataType.INTEGER, ColumnMapping("v")),
    }
    mapped = mapper(columns, SourceMapping("mqtt", rows="s[*]"), key=(1,)).map(
        b'{"s":[{"v":1},{"v":1.5},{"v":3},7]}', {}, ARRIVAL
    )
    assert mapped.rows == [{"place": 0, "value": 1}, {"place": 2, "value": 3}]
    assert mapped.refused == 2
    assert mapped.problems[0] == "row 2: column value: 1.5 has a fraction; the column is an INTEGER"


def test_a_payload_without_the_array_of_rows_is_a_problem_and_an_empty_array_is_none() -> None:
    source = mapper(SENSORS, SourceMapping("mqtt", rows="sensors[*]"))
    assert source.map(b'{"sensors":[]}', {}, ARRIVAL) == Mapped([], [])
    assert source.map(b'{"x":[]}', {}, ARRIVAL).problems == [
        "payload: rows 'sensors[*]': there is no array or object"
    ]


def test_rows_and_problems_are_bounded() -> None:
    columns: Columns = {"v": (DataType.INTEGER, ColumnMapping())}
    payload = json.dumps([{"v": "x"}] * 30 + [{"v": 1}] * 10_000).encode()
    mapped = mapper(columns, SourceMapping("mqtt", rows="[*]")).map(payload, {}, ARRIVAL)
    assert len(mapped.rows) == 10_000
    assert mapped.refused == 30
    assert len(mapped.problems) == MAX_PROBLEMS
    assert mapped.problems[0] == "more than 10,000 rows; the others are refused"


@pytest.mark.parametrize(
    ("payload", "facts", "ignored"),
    [
        (b'{"type":"sensor","v":1}', {"retained": False}, False),
        (b'{"type":"light","v":1}', {"retained": False}, True),
        (b'{"type":"sensor"}', {"retained": False}, True),
        (b'{"type":"sensor","v":1}', {"retained": True}, True),
        (b"[1]", {"retained": False}, True),
    ],
)
def test_payloads_that_do_not_match_are_ignored(
    payload: bytes, facts: dict[str, bool], *, ignored: bool
) -> None:
    source = mapper(
        {"v": (DataType.INTEGER, ColumnMapping())},
        SourceMapping("mqtt", only=(("type", "sensor"), ("v", None), ("@retained", "false"))),
    )
    mapped = source.map(payload, facts, ARRIVAL)
    assert mapped.ignored == ignored
    assert mapped.problems == []
    assert len(mapped.rows) == (not ignored)


def test_facts_of_a_message_are_columns() -> None:
    columns: Columns = {
        "topic": (DataType.TEXT, ColumnMapping("@topic")),
        "came": (DataType.TIMESTAMP, ColumnMapping("@arrival")),
        "kept": (DataType.BOOLEAN, ColumnMapping("@retained")),
        "v": (DataType.DOUBLE, ColumnMapping(".")),
    }
    mapped = mapper(columns).map(b"7", {"topic": "a/b", "retained": True}, 12)
    assert mapped.rows == [{"topic": "a/b", "came": 12, "kept": True, "v": 7.0}]


def test_a_record_is_looked_up_by_the_connectors_addresses() -> None:
    columns: Columns = {
        "power": (DataType.DOUBLE, ColumnMapping("holding:100", "uint16", scale=0.1)),
        "state": (DataType.TEXT, ColumnMapping("a.b[0]")),
        "room": (DataType.TEXT, ColumnMapping()),
    }
    source = mapper(columns, SourceMapping("modbus", format=PayloadFormat.FIELDS))
    mapped = source.map_record({"holding:100": 217, "a.b[0]": "on", "room": "k"}, {}, ARRIVAL)
    assert mapped == Mapped([{"power": 21.7, "state": "on", "room": "k"}], [])
    assert source.map(b"{}", {}, ARRIVAL).refused == 1


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (ColumnMapping("a..b"), "column v: 'a..b' is no field path: expected a name"),
        (ColumnMapping("a[*]"), "column v: 'a[*]': [*] is allowed only in the option rows"),
        (ColumnMapping("@"), "column v: '@' names no fact"),
        (ColumnMapping("a", "octal"), "column v: 'octal' is no format of numbers"),
        (
            ColumnMapping("a", unit="Celsus"),
            "column v: there is no unit 'Celsus'; did you mean Cel",
        ),
        (ColumnMapping("a", unit_in="W", unit="Wh"), "column v: W does not convert to Wh"),
        (ColumnMapping("a", scale=0), "column v: SCALE and OFFSET are finite"),
        (ColumnMapping("a", zone="UTC"), "column v: ZONE is for times"),
        (ColumnMapping("a", values=(("ON", True),)), "column v: VALUES: true is no DOUBLE"),
    ],
)
def test_a_wrong_clause_is_told_with_its_column(column: ColumnMapping, message: str) -> None:
    with pytest.raises(ValueError, match=r"^column v: ") as raised:
        mapper({"v": (DataType.DOUBLE, column)})
    assert str(raised.value).startswith(message)


def test_a_mapping_of_other_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="no mapping"):
        Mapper(Source(mapper_schema()))


def mapper_schema() -> Schema:
    return Schema.of(("v", DataType.DOUBLE))
