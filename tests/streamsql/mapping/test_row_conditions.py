"""Rows that do not meet the option `only_rows` are ignored, and nothing is made of them."""

import json

import pytest

from streamsql.data.types import DataType
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import mapper

COLUMNS = {"v": (DataType.TEXT, ColumnMapping("name"))}


def kept(condition: tuple[str, str, str], values: list[object]) -> list[int]:
    """Positions of the rows that meet a condition on their field x."""
    rows = [{"name": str(n), "x": value} for n, value in enumerate(values)]
    mapping = SourceMapping("mqtt", rows="[*]", only_rows=(condition,))
    mapped = mapper(COLUMNS, mapping).map(json.dumps([*rows, {"name": "-"}]).encode(), {}, 0)
    assert mapped.problems == []
    assert mapped.ignored == (not mapped.rows)
    return [int(str(row["v"])) for row in mapped.rows]


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        (("x", ">", "0"), [0, 0.1, -1, "0.0", " 7 ", None, ""], [1, 4]),
        (("x", ">=", "0.5"), [0.5, "0.50", 0.49], [0, 1]),
        (("x", "<", "-1e3"), [-1001, -1000, "-1000.5"], [0, 2]),
        (("x", "<=", "2"), [2, 2.0, 3], [0, 1]),
        (("x", "=", "1"), [1, 1.0, "1", "1.0", "one", True], [0, 1, 2, 3]),
        (("x", "!=", "up"), ["up", "down", None, "", 5], [1, 4]),
        (("x", "=", "true"), [True, "true", False], [0, 1]),
        (("x", "", ""), [0, False, "", None, "a", []], [0, 1, 4, 5]),
        (("x", ">", "0"), [0, -1], []),
    ],
)
def test_values_are_compared(
    condition: tuple[str, str, str], values: list[object], expected: list[int]
) -> None:
    assert kept(condition, values) == expected


@pytest.mark.parametrize("value", ["bad", True, [1], "nan", "inf", "1_000", "0,5", "9" * 400])
def test_what_is_no_number_is_a_problem_and_the_row_refused(value: object) -> None:
    mapping = SourceMapping("mqtt", rows="[*]", only_rows=(("x", ">", "0"),))
    payload = json.dumps([{"name": "a", "x": value}, {"name": "b", "x": 1}]).encode()
    mapped = mapper(COLUMNS, mapping).map(payload, {}, 0)
    assert [row["v"] for row in mapped.rows] == ["b"]
    assert mapped.refused == 1
    assert mapped.problems[0].startswith("row 1: only_rows: x: ")
    assert mapped.problems[0].endswith("is no number")


def test_an_ignored_row_is_no_refused_one_though_its_key_is_missing() -> None:
    mapping = SourceMapping(
        *("mqtt", "", (), PayloadFormat.CSV), header=False, only_rows=(("[1]", ">", "0"),)
    )
    columns = {
        "channel": (DataType.INTEGER, ColumnMapping("[0]")),
        "pdr": (DataType.DOUBLE, ColumnMapping("[1]")),
    }
    source = mapper(columns, mapping, key=(0,))
    mapped = source.map(b"11,0.5\n,0\n,0.25\n", {}, 0)
    assert mapped.rows == [{"channel": 11, "pdr": 0.5}]
    assert (mapped.refused, mapped.some_ignored, mapped.ignored) == (1, True, False)
    assert source.map(b",0\n", {}, 0).ignored


def test_facts_of_a_row_and_payloads_of_one_row() -> None:
    by_key = SourceMapping("mqtt", rows="s[*]", only_rows=(("@key", "!=", "b"),))
    mapped = mapper(COLUMNS, by_key).map(b'{"s":{"a":{"name":"1"},"b":{"name":"2"}}}', {}, 0)
    assert [row["v"] for row in mapped.rows] == ["1"]
    one = mapper(COLUMNS, SourceMapping("mqtt", only_rows=(("x", ">", "1"),)))
    assert one.map(b'{"name":"1","x":1}', {}, 0).ignored
    assert len(one.map(b'{"name":"1","x":2}', {}, 0).rows) == 1
