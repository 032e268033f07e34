"""Sparkplug B births: NBIRTH and DBIRTH name the metrics of a node or device, with data types."""

from streamsql.data.types import DataType
from streamsql.mapping.payloads.sparkplug_payload import SparkplugMetric, decode_sparkplug
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat
from streamsql.proposals.announcements.announced import AnnouncedDevice
from streamsql.proposals.proposal import TIME, ProposedColumn
from streamsql.proposals.sample import SPARKPLUG_ROOT, Sample
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


def announced_metrics(sample: Sample) -> list[AnnouncedDevice]:
    """Return the node or device of a birth; nothing if it is none."""
    if not sample.topic.startswith(SPARKPLUG_ROOT):
        return []
    match sample.topic.split("/"):
        case [_, group, "NBIRTH", node]:
            names = [group, node]
            pattern = "{group}/NDATA/{node}"
        case [_, group, "DBIRTH", node, device]:
            names = [group, node, device]
            pattern = "{group}/DDATA/{node}/{device}"
        case _:
            return []
    try:
        metrics = decode_sparkplug(sample.payload).metrics
    except ValueError:
        return []
    columns = _columns(metrics, {"group", "node", "device"})
    if not columns:
        return []
    return [
        AnnouncedDevice(
            f"Sparkplug: {', '.join(column.name for column in columns[:4])}",
            identifier(names[-1].rstrip("0123456789")) or "sparkplug",
            "/".join(names),
            sample.topic.replace("BIRTH/", "DATA/", 1),
            (*columns, ProposedColumn(TIME, DataType.TIMESTAMP, ColumnMapping(path="@time"))),
            PayloadFormat.SPARKPLUG,
            pattern=SPARKPLUG_ROOT + pattern,
        )
    ]


def _columns(metrics: tuple[SparkplugMetric, ...], taken: set[str]) -> list[ProposedColumn]:
    found: list[ProposedColumn] = []
    taken |= {TIME}
    for metric in metrics[: 10 * MAX_METRICS]:
        name, dtype = metric.name, _TYPES.get(metric.datatype)
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


def _free(name: str, taken: set[str]) -> str:
    """Return a column's name for a metric: its last part, or more of it where that is taken."""
    for candidate in (identifier(name.rpartition("/")[2]), identifier(name)):
        if candidate and candidate not in taken:
            return candidate
    return ""
