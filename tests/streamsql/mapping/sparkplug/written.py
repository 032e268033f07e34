"""Sparkplug payloads as the protobuf library writes them, which shares nothing with our reader."""

from typing import Any

from benchmarks._mapping.sparkplug_library import payload_class

PAYLOAD = payload_class()

NOON = 1_780_308_000_000
"""Milliseconds since 1970."""
BOOLEAN, DOUBLE, INT32, UINT64 = 11, 10, 3, 8

Metric = dict[str, Any]


def written(*metrics: Metric, seq: int | None = None, ms: int | None = NOON) -> bytes:
    """Return a payload."""
    fields = {"seq": seq, "timestamp": ms}
    known = {name: value for name, value in fields.items() if value is not None}
    data: bytes = PAYLOAD(metrics=metrics, **known).SerializeToString()
    return data


def bd_seq(number: int) -> Metric:
    """Return the metric that numbers the sessions of a node."""
    return {"name": "bdSeq", "datatype": UINT64, "long_value": number}


def temp(value: float, **more: object) -> Metric:
    """Return the metric Temp with its name and the alias 1, as in a birth."""
    return {"name": "Temp", "alias": 1, "datatype": DOUBLE, "double_value": value, **more}


def level(value: int, **more: object) -> Metric:
    """Return the metric Level with its name and the alias 2, as in a birth."""
    return {
        "name": "Level",
        "alias": 2,
        "datatype": INT32,
        "int_value": value % 2**32,
        **more,
    }


def alias(number: int, **value: object) -> Metric:
    """Return a metric that is named by its alias alone, as in data."""
    return {"alias": number, **value}
