"""One source of an OPC UA server: its nodes, their newest values, and the rows of these."""

import asyncio
from datetime import UTC, datetime, timedelta

from asyncua import ua
from asyncua.client.client import Client
from asyncua.common.node import Node
from asyncua.common.subscription import DataChangeNotif
from asyncua.ua.uaerrors import UaError

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.opcua.opcua_options import OpcuaSource
from gateway.connectors.record_columns import record_columns
from streamsql.data.types import MICROSECONDS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObservedNodes:
    """The nodes of a source. asyncua calls it with their changes.

    Raises:
        ValueError: The FROM of a column is no node id; names the column.
    """

    def __init__(self, source: DeclaredSource) -> None:
        self.options = source.options_as(OpcuaSource)
        self._source = source
        self._nodes = _nodes_of(source)
        self._values: dict[str, object] = {}
        self._time: int | None = None
        self._changed = asyncio.Event()

    async def subscribe(self, client: Client) -> None:
        """Ask for changes; a node that the server refuses is a problem of the source.

        Raises:
            UaError: The server takes no subscription.
        """
        milliseconds = float(self.options.interval) * 1_000
        subscription = await client.create_subscription(milliseconds, self)
        handles = await subscription.subscribe_data_change(
            [client.get_node(node) for node in self._nodes],
            queuesize=1,
            sampling_interval=ua.Double(milliseconds),
        )
        for text, handle in zip(self._nodes.values(), handles, strict=True):
            if isinstance(handle, ua.StatusCode):
                self._source.problem(f"node {text}: {handle.name}")

    def datachange_notification(self, node: Node, _value: object, data: DataChangeNotif) -> None:
        """Keep a node's newest value; a bad one has none."""
        text = self._nodes[node.nodeid]
        given = data.monitored_item.Value
        status = given.StatusCode
        if status is not None and not status.is_good():
            self._values.pop(text, None)
            self._source.problem(f"node {text}: {status.name}")
        else:
            self._values[text] = plain_value(given.Value.Value if given.Value else None)
        time = _micros(given.SourceTimestamp)
        if time is not None:
            self._time = max(time, self._time or time)
        self._changed.set()

    async def emit_changes(self, context: ConnectorContext) -> None:
        """Emit a row of the newest values at each change, when the former one is kept."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            facts = {} if self._time is None else {"time": self._time}
            readings = self._source.read_record(self._values, **facts) if self._values else []
            if readings:
                context.emit(readings)
                await context.kept()


def plain_value(value: object) -> object:
    """Return a value of OPC UA as the mapping of columns takes it."""
    if isinstance(value, datetime):
        # asyncua's times are in UTC and do not say so.
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, ua.LocalizedText):
        return value.Text
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [plain_value(element) for element in value[:100]]
    return value.hex()[:4_000] if isinstance(value, bytes) else str(value)[:4_000]


def _nodes_of(source: DeclaredSource) -> dict[ua.NodeId, str]:
    found: dict[ua.NodeId, str] = {}
    for name, text, _form in record_columns(source.definition):
        try:
            node = ua.NodeId.from_string(text)
        except (UaError, ValueError):
            node = None
        if node is None or "=" not in text:
            raise ValueError(
                f"column {name}: FROM {text!r:.60} is no node id, such as 'ns=2;s=Line.Speed' or "
                "'ns=3;i=1001'"
            )
        if found.setdefault(node, text) != text:
            raise ValueError(
                f"column {name}: FROM {text!r:.60} is {found[node]!r:.60}; write them alike"
            )
    return found


def _micros(time: datetime | None) -> int | None:
    if time is None:
        return None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    micros = (aware - _EPOCH) // timedelta(microseconds=1)
    # Servers without a clock send 1601.
    return micros if micros > 86_400 * MICROSECONDS else None
