"""Metrics of one node or device: aliases of its birth, and the last values."""

from collections.abc import Collection, Mapping

import msgspec

from streamsql.mapping.payloads.sparkplug_payload import (
    Scalar,
    SparkplugMetric,
    SparkplugPayload,
    signed,
)

SHOWN_NAMES = 8
"""Of metrics, in a report of a birth that holds none of a source's."""

_NO_NAMES: Mapping[int, str] = {}


class MetricsRow(msgspec.Struct, frozen=True):
    """The metrics of a node or device at one time.

    Attributes:
        values: The last one of each metric that a source reads, as far as it is known.
        time: Of the newest metric that came, or of the payload; microseconds, or None.
        is_repeat: A birth that says what was known already.
    """

    values: Mapping[str, Scalar]
    time: int | None
    is_repeat: bool = False


class DeviceMetrics:
    """One node's or device's metrics, as far as a source reads them.

    Args:
        wanted: Names of the metrics that the source reads; empty: it reads facts alone.
        since: When it was first heard of.

    Attributes:
        has_birth: Its birth counts: aliases mean what it said.
        is_heard: Something came from it since the last birth of its node, or since a restart.
        has_rows: There may be rows of it, of an earlier life, too.
        size: How many metrics its birth has.
    """

    def __init__(self, wanted: Collection[str], since: int) -> None:
        self._wanted = wanted
        self.since = since
        self.has_birth = False
        self.is_heard = False
        self.has_rows = False
        self.size = 0
        self._named: Mapping[int, str] = _NO_NAMES
        self._others: frozenset[int] = frozenset()
        self._datatypes: dict[str, int] = {}
        self._values: dict[str, Scalar] = {}

    def take_birth(self, birth: SparkplugPayload) -> MetricsRow | None:
        """Take a birth in place of all that was known; return None if no metric is wanted."""
        wanted = [m for m in birth.metrics if m.name in self._wanted]
        aliases = {m.alias: m.name for m in birth.metrics if m.name and m.alias is not None}
        self._named = {alias: name for alias, name in aliases.items() if name in self._wanted}
        self._others = frozenset(aliases.keys() - self._named.keys())
        self._datatypes = {m.name: m.datatype for m in wanted}
        self.size = len(birth.metrics)
        self.since, self.has_birth, self.is_heard = 0, True, True
        newest = [m for m in wanted if not m.is_historical]
        values = {m.name: m.value for m in newest}
        is_repeat = bool(values) and values == self._values
        self._values = values
        if self._wanted and not values:
            return None
        return MetricsRow(dict(values), _time(newest, birth.time), is_repeat=is_repeat)

    def rows(
        self, data: SparkplugPayload, *, aliases_count: bool
    ) -> tuple[list[MetricsRow], int | None]:
        """Return the rows of data, and an alias that no birth gave, or None.

        A metric that comes twice in a message begins another row. Historical ones are left out.

        Args:
            data: What has come.
            aliases_count: Whether aliases still mean what the birth said.
        """
        self.is_heard = True
        rows: list[MetricsRow] = []
        changed: dict[str, SparkplugMetric] = {}
        unknown: int | None = None
        for metric in data.metrics:
            name = metric.name
            if not name:
                if metric.alias is None or metric.alias in self._others:
                    continue
                name = self._named.get(metric.alias, "")
                if not name:
                    unknown = metric.alias
                    continue
                if not aliases_count:
                    continue
            if metric.is_historical or name not in self._wanted:
                continue
            if name in changed:
                rows.append(self._row(changed, data.time))
                changed = {}
            changed[name] = metric
        if changed or not self._wanted:
            rows.append(self._row(changed, data.time))
        return rows, unknown

    def _row(self, changed: Mapping[str, SparkplugMetric], payload_time: int | None) -> MetricsRow:
        for name, metric in changed.items():
            datatype = metric.datatype or self._datatypes.get(name, 0)
            self._values[name] = signed(metric.value, datatype)
        return MetricsRow(dict(self._values), _time(changed.values(), payload_time))


def _time(metrics: Collection[SparkplugMetric], payload_time: int | None) -> int | None:
    """Return the time of the newest metric, or of the payload."""
    return max((m.time for m in metrics if m.time is not None), default=payload_time)
