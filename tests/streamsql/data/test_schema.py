"""Rows from outside against a schema."""

import pytest

from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SCHEMA = Schema.of(("mid", DataType.TEXT), ("cpu", DataType.DOUBLE), ("ts", DataType.TIMESTAMP))


def test_missing_columns_become_null_and_integers_become_doubles() -> None:
    assert SCHEMA.coerce_row({"cpu": 1, "mid": "m"}) == ("m", 1.0, None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mid": "m", "speed": 3}, "unknown column 'speed'"),
        ({"mid": "m", "cpu": "fast"}, "column cpu"),
        (["m"], "1 values for 3 columns"),
    ],
)
def test_says_what_is_wrong_with_a_row(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SCHEMA.coerce_row(values)


def test_shows_rows_with_readable_times() -> None:
    assert SCHEMA.to_object(("m", None, 0)) == {
        "mid": "m",
        "cpu": None,
        "ts": "1970-01-01T00:00:00Z",
    }


def test_finds_selects_and_joins_columns() -> None:
    assert SCHEMA.index_of("cpu") == 1
    assert SCHEMA.select((2, 0)).names == ("ts", "mid")
    assert len(SCHEMA + SCHEMA) == 6
    with pytest.raises(KeyError):
        SCHEMA.index_of("watts")
