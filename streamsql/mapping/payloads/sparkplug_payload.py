"""Sparkplug B: topics and payloads.

A decoder of our own for the dozen protobuf fields that carry values: what a payload claims bounds
nothing but itself, and gateways need no protobuf library.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum, StrEnum

import msgspec
from typing_extensions import override

from streamsql.mapping.payloads.payload_formats import FieldsReader
from streamsql.mapping.payloads.payload_reader import Element
from streamsql.mapping.time_formats import is_time

MAX_METRICS = 10_000

Scalar = bool | int | float | str | bytes | None

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIGNED_BITS = {1: 8, 2: 16, 3: 32, 4: 64}
"""Int8 to Int64 among the data types; they travel as unsigned two's complement."""

_FLOAT32 = struct.Struct("<f")
_FLOAT64 = struct.Struct("<d")


class _PayloadField(IntEnum):
    """Fields of a payload that are read."""

    TIMESTAMP = 1
    METRICS = 2
    SEQ = 3


class _MetricField(IntEnum):
    """Fields of a metric that are read."""

    NAME = 1
    ALIAS = 2
    TIMESTAMP = 3
    DATATYPE = 4
    IS_HISTORICAL = 5
    IS_NULL = 7
    INT = 10
    LONG = 11
    FLOAT = 12
    DOUBLE = 13
    BOOLEAN = 14
    STRING = 15
    BYTES = 16


class SparkplugMetric(msgspec.Struct, frozen=True):
    """One metric of a payload.

    Attributes:
        name: Empty where an alias stands for it.
        alias: None if it has none.
        time: Microseconds since 1970, or None.
        datatype: Number of the data type in the specification; 0: not said.
        value: None: it is null, or of a kind that is no single value (data sets, templates).
        is_historical: Whether it is of the past, and not the newest.
    """

    name: str
    alias: int | None
    time: int | None
    datatype: int
    value: Scalar
    is_historical: bool


class SparkplugPayload(msgspec.Struct, frozen=True):
    """A payload; `time` in microseconds since 1970, or None."""

    time: int | None
    seq: int | None
    metrics: tuple[SparkplugMetric, ...]


class SparkplugKind(StrEnum):
    """Types of messages of nodes and of their devices, by the third level of the topic."""

    NBIRTH = "NBIRTH"
    NDATA = "NDATA"
    NDEATH = "NDEATH"
    DBIRTH = "DBIRTH"
    DDATA = "DDATA"
    DDEATH = "DDEATH"

    @property
    def is_birth(self) -> bool:
        """Whether it names the metrics of a node or device."""
        return self in {SparkplugKind.NBIRTH, SparkplugKind.DBIRTH}


class SparkplugTopic(msgspec.Struct, frozen=True):
    """Topic of a payload: `spBv1.0/group/NDATA/node` or `…/DDATA/node/device`."""

    group: str
    kind: SparkplugKind
    node: str
    device: str


def sparkplug_topic(topic: str) -> SparkplugTopic | None:
    """Return the parts of a topic of a birth, data or a death, or None for another topic.

    Examples:
        >>> sparkplug_topic("spBv1.0/plant/DDATA/line1/press").device
        'press'
    """
    match topic.split("/"):
        case ["spBv1.0", group, ("NBIRTH" | "NDATA" | "NDEATH") as kind, node]:
            return SparkplugTopic(group, SparkplugKind(kind), node, "")
        case ["spBv1.0", group, ("DBIRTH" | "DDATA" | "DDEATH") as kind, node, device] if device:
            return SparkplugTopic(group, SparkplugKind(kind), node, device)
        case _:
            return None


def decode_sparkplug(payload: bytes) -> SparkplugPayload:
    """Return the metrics of a payload.

    Raises:
        ValueError: It is no Sparkplug B payload, or has more than 10,000 metrics.
    """
    time = seq = None
    metrics: list[SparkplugMetric] = []
    try:
        for number, value in _fields(payload):
            if number == _PayloadField.TIMESTAMP and isinstance(value, int):
                time = _micros(value)
            elif number == _PayloadField.SEQ and isinstance(value, int):
                seq = value
            elif number == _PayloadField.METRICS and isinstance(value, bytes):
                metrics.append(_metric(value))
                if len(metrics) > MAX_METRICS:
                    raise ValueError(f"more than {MAX_METRICS:,} metrics")
    except (IndexError, struct.error):
        raise ValueError("it is no Sparkplug payload: it ends too early") from None
    return SparkplugPayload(time, seq, tuple(metrics))


class SparkplugReader(FieldsReader):
    """One payload as it stands: FROM is the metric's name, verbatim.

    A metric with an alias only gives no value; a payload of nothing else is refused. What came
    before is known to a `SparkplugSession`, which hands over values by name.
    """

    @override
    def decode(self, payload: bytes, arrival: int) -> object:
        """Return the payload."""
        return decode_sparkplug(payload)

    @override
    def elements(self, root: object) -> Iterator[Element] | None:
        """Return the one row of a payload, with its time."""
        if not isinstance(root, SparkplugPayload):
            return None
        values = {m.name: m.value for m in root.metrics if m.name and not m.is_historical}
        if not values and any(m.alias is not None and not m.name for m in root.metrics):
            raise ValueError("its metrics have aliases only, and their birth is not known")
        return iter([({} if root.time is None else {"time": root.time}, values)])


def signed(value: Scalar, datatype: int) -> Scalar:
    """Return an integer of a signed data type from its two's complement.

    Examples:
        >>> signed(0xFFFFFFFE, 3), signed(7, 3), signed(0xFE, 1)
        (-2, 7, -2)
    """
    bits = _SIGNED_BITS.get(datatype)
    if bits is None or not isinstance(value, int) or isinstance(value, bool):
        return value
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


def _metric(data: bytes) -> SparkplugMetric:
    name, alias, time, datatype = "", None, None, 0
    value: Scalar = None
    historical = null = False
    for number, field in _fields(data):
        match number, field:
            case _MetricField.INT | _MetricField.LONG, int():
                value = field
            case _MetricField.BOOLEAN, int():
                value = bool(field)
            case _MetricField.FLOAT, bytes():
                value = _FLOAT32.unpack(field)[0]
            case _MetricField.DOUBLE, bytes():
                value = _FLOAT64.unpack(field)[0]
            case _MetricField.STRING, bytes():
                value = _text(field)
            case _MetricField.BYTES, bytes():
                value = field
            case _MetricField.NAME, bytes():
                name = _text(field)
            case _MetricField.ALIAS, int():
                alias = field
            case _MetricField.TIMESTAMP, int():
                time = _micros(field)
            case _MetricField.DATATYPE, int():
                datatype = field
            case _MetricField.IS_HISTORICAL, int():
                historical = bool(field)
            case _MetricField.IS_NULL, int():
                null = bool(field)
            case _:
                pass
    value = None if null else value
    return SparkplugMetric(name, alias, time, datatype, signed(value, datatype), historical)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, varint or bytes) of a protobuf message; unknown fields too.

    Raises:
        ValueError: A wire type that Sparkplug does not use.
        IndexError: It ends within a field.
    """
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in {_FIXED32, _FIXED64}:
            size = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"it is no Sparkplug payload: wire type {wire} at byte {position}")
        if position + size > end:
            raise IndexError
        yield number, data[position : position + size]
        position += size


def _micros(milliseconds: int) -> int | None:
    """Return a time of a payload; None where a device's clock is beyond the year 9999."""
    micros = milliseconds * 1_000
    return micros if is_time(micros) else None


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result & (2**64 - 1), position
        shift += 7
        if shift > 63:
            raise ValueError("it is no Sparkplug payload: a number of more than 64 bits")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("it is no Sparkplug payload: a text is not UTF-8") from None
