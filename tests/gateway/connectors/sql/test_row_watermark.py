"""A watermark knows which rows it has seen, also after a restart."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from gateway.connectors.sql.row_watermark import Watermark, WatermarkError, remembered
from streamsql.wire.codec import decode_json, encode_json


@pytest.mark.parametrize(
    "values",
    [
        [1, 1, 2],
        [1.5, 1.5, 2.5],
        ["a", "a", "b"],
        [Decimal("1.10"), Decimal("1.1"), Decimal("1.2")],
        [datetime(2026, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 2)],  # noqa: DTZ001
        [datetime(2026, 1, 1, tzinfo=UTC)] * 3,
        [date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 2)],
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_rows_are_new_once_also_after_a_restart(values: list[object]) -> None:
    rows = [("a", values[0]), ("b", values[1]), ("c", values[2])]
    watermark = Watermark()
    assert list(watermark.new_rows(rows[:2])) == rows[:2]
    plain = decode_json(encode_json(watermark.to_remember()), list[object])
    restarted = remembered(plain)
    assert restarted is not None
    assert restarted.value == values[1]
    assert list(restarted.new_rows(rows)) == rows[2:]
    assert list(restarted.new_rows(rows[2:])) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, Decimal("NaN"), b"x", True, [1]])
def test_what_has_no_order_is_no_watermark(value: object) -> None:
    with pytest.raises(WatermarkError):
        list(Watermark().new_rows([("a", value)]))


@pytest.mark.parametrize(
    "plain", [None, [], ["int"], ["int", "x"], ["eval", "1"], ["Decimal", "x"], [1, 2], {"a": 1}]
)
def test_what_was_not_remembered_is_none(plain: object) -> None:
    assert remembered(plain) is None


def test_pieces_of_memory_are_equal_if_their_bytes_are() -> None:
    watermark = Watermark()
    assert len(list(watermark.new_rows([(memoryview(b"x"), 1)]))) == 1
    assert list(watermark.new_rows([(memoryview(b"x"), 1)])) == []
