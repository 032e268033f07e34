"""Sparkplug B: births name the metrics of a node or device, with their data types."""

from collections.abc import Iterable, Sequence

import msgspec

from streamsql.data.types import DataType
from streamsql.mapping.payloads.sparkplug_payload import (
    SparkplugKind,
    SparkplugMetric,
    SparkplugTopic,
    decode_sparkplug,
    sparkplug_topic,
)
from streamsql.mapping.source_mapping import SPARKPLUG_IDENTITY, ColumnMapping, PayloadFormat
from streamsql.mapping.sparkplug.sparkplug_pattern import ROOT
from streamsql.proposals.announcements.announced import AnnouncedDevice
from streamsql.proposals.proposal import TIME, ProposedColumn
from streamsql.proposals.sample import Sample
from streamsql.proposals.topic_shapes import identifier

MAX_METRICS = 100
_TYPES = {
    **dict.fromkeys(range(1, 9), DataType.INTEGER),
    9: DataType.DOUBLE, 10: DataType.DOUBLE, 11: DataType.BOOLEAN, 12: DataType.TEXT,
    13: DataType.TIMESTAMP, 14: DataType.TEXT, 15: DataType.TEXT,
}  # fmt: skip
"""By the data type's number in the specification."""
_OWN = ("bdSeq",)
_OWN_BEGINS = ("Node Control/", "Device Control/", "Node Info/", "Properties/")


def announced_metrics(samples: Iterable[Sample], listened: str = "") -> list[AnnouncedDevice]:
    """Return the nodes and devices of births, and of data that names its metrics.

    Args:
        samples: Messages; others than Sparkplug's are left out.
        listened: The topic that was listened to: its group is the only one that is proposed.
    """
    metrics: dict[SparkplugTopic, dict[str, SparkplugMetric]] = {}
    for sample in samples:
        place = sparkplug_topic(sample.topic)
        if place is None or place.kind in {SparkplugKind.NDEATH, SparkplugKind.DDEATH}:
            continue
        try:
            found = decode_sparkplug(sample.payload).metrics
        except ValueError:
            continue
        kind = SparkplugKind.DDATA if place.device else SparkplugKind.NDATA
        known = metrics.setdefault(msgspec.structs.replace(place, kind=kind), {})
        named = {metric.name: metric for metric in found if metric.name}
        if place.kind.is_birth:
            known.update(named)  # births know the data types
        else:
            known.update({name: named[name] for name in named.keys() - known.keys()})
    levels = listened.split("/")
    group = levels[1] if len(levels) > 1 and not set(levels[1]) & set("+#{") else "{group}"
    devices = [_device(place, list(known.values()), group) for place, known in metrics.items()]
    return [device for device in devices if device is not None]


def _device(
    place: SparkplugTopic, metrics: Sequence[SparkplugMetric], group: str
) -> AnnouncedDevice | None:
    columns = _columns(metrics, set(SPARKPLUG_IDENTITY))
    if not columns:
        return None
    levels = [place.group, place.kind, place.node, *([place.device] if place.device else [])]
    pattern = [group, "+", "{node}", *(["{device}"] if place.device else [])]
    own = place.device or place.node
    return AnnouncedDevice(
        f"Sparkplug: {', '.join(column.name for column in columns[:4])}",
        identifier(own.rstrip("0123456789")) or "sparkplug",
        "/".join(filter(None, (place.group, place.node, place.device))),
        "/".join((ROOT, *levels)),
        (*columns, ProposedColumn(TIME, DataType.TIMESTAMP, ColumnMapping(path="@time"))),
        PayloadFormat.SPARKPLUG,
        pattern="/".join((ROOT, *pattern)),
    )


def _columns(metrics: Sequence[SparkplugMetric], taken: set[str]) -> list[ProposedColumn]:
    found: list[ProposedColumn] = []
    taken |= {TIME}
    for metric in metrics[: 10 * MAX_METRICS]:
        name, dtype = metric.name, _type_of(metric)
        is_own = name in _OWN or name.startswith(_OWN_BEGINS) or name.startswith("@")
        if dtype is None or is_own or name != name.strip() or not 0 < len(name) <= 200:
            continue
        column = _free(name, taken)
        if column and len(found) < MAX_METRICS:
            taken.add(column)
            form = "unix_ms" if dtype == DataType.TIMESTAMP else ""
            origin = ColumnMapping(path="" if name == column else name, format=form)
            found.append(ProposedColumn(column, dtype, origin))
    return found


def _type_of(metric: SparkplugMetric) -> DataType | None:
    if metric.datatype:
        return _TYPES.get(metric.datatype)
    match metric.value:
        case bool():
            return DataType.BOOLEAN
        case int():
            return DataType.INTEGER
        case float():
            return DataType.DOUBLE
        case str():
            return DataType.TEXT
        case _:
            return None


def _free(name: str, taken: set[str]) -> str:
    """Return a column's name for a metric: its last part, or more of it where that is taken."""
    for candidate in (identifier(name.rpartition("/")[2]), identifier(name)):
        if candidate and candidate not in taken:
            return candidate
    return ""
