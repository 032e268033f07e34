"""Nodes and devices that a source follows, within bounds of number.

A node or device is provisional until its birth message: it leaves when others need room, or after
an hour of silence. One that was restored after a restart is not, until its time to answer is over.
"""

from collections.abc import Collection, Iterable, Iterator

from streamsql.mapping.payloads.sparkplug_payload import SparkplugPayload
from streamsql.mapping.sparkplug.device_metrics import DeviceMetrics, MetricsRow
from streamsql.mapping.sparkplug.provisional_entries import ProvisionalEntries
from streamsql.mapping.sparkplug.session_changes import DeviceId, KnownNode, Node

MAX_NODES = 2_000
MAX_DEVICES = 10_000
"""Nodes and devices of a source."""
MAX_METRICS = 500_000
"""Of all births of a source."""
SILENCE_SECONDS = 3_600
"""After so long without a message a provisional node or device without rows is removed."""

_MICROS = 1_000_000


class TooManyError(Exception):
    """A source follows as many nodes, devices or metrics as it may; says which is left out."""


class NodeState:
    """A node.

    Attributes:
        has_birth: Its birth message was received.
        birth: The number of its session (`bdSeq`), or None.
        sequence: Of its last message; None: not known.
        gap_since: Since when messages are missing; 0: none is.
        is_restored: It was known before a restart, and has not answered since.
        deadline: When devices without a message are gone; 0: never.
        devices: By name; the empty name is the node itself.
    """

    def __init__(self) -> None:
        self.has_birth = False
        self.birth: int | None = None
        self.sequence: int | None = None
        self.gap_since = 0
        self.is_restored = False
        self.deadline = 0
        self.devices: dict[str, DeviceMetrics] = {}


class FollowedNodes:
    """The nodes and devices of one source.

    Methods that take `gone` append the devices to it whose rows are to be withdrawn.

    Args:
        wanted: Names of the metrics that the source reads.

    Attributes:
        is_changed: Whether `known` says something new since this was last set to False.
        devices: How many nodes and devices count towards the bound.
        metrics: How many metrics count towards the bound.
    """

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = wanted
        self.is_changed = False
        self.devices = 0
        self.metrics = 0
        self._nodes: dict[Node, NodeState] = {}
        self._provisional_nodes: ProvisionalEntries[Node] = ProvisionalEntries()
        self._provisional_devices: ProvisionalEntries[tuple[Node, str]] = ProvisionalEntries()

    def __iter__(self) -> Iterator[tuple[Node, NodeState]]:
        return iter(list(self._nodes.items()))

    def get(self, node: Node) -> NodeState | None:
        """Return a node, or None."""
        return self._nodes.get(node)

    def known(self) -> list[KnownNode]:
        """Return the nodes and devices that have or may have rows."""
        found: list[KnownNode] = []
        for node, state in self._nodes.items():
            names = tuple(name for name, device in state.devices.items() if device.has_rows)
            if names or state.has_birth or state.is_restored:
                found.append((*node, state.birth, names))
        return found

    def restore(self, known: Iterable[KnownNode], now: int, *, asks: bool) -> Iterator[Node]:
        """Add the nodes of `known`, and yield each.

        Args:
            known: Of an earlier life.
            now: Microseconds since 1970.
            asks: Whether they are asked for their births. If not, they are provisional at once.
        """
        for group, name, birth, devices in known:
            node = (group, name)
            if len(self._nodes) >= MAX_NODES:
                return
            state = self._nodes[node] = NodeState()
            state.birth, state.is_restored = birth, asks
            for device in devices[: MAX_DEVICES - self.devices]:
                self._add(state, device, now).has_rows = True
            if not asks:
                self._make_provisional(node, state, now)
            yield node

    def node(self, gone: list[DeviceId], node: Node, now: int) -> NodeState:
        """Return a node, and add it if it is new.

        Raises:
            TooManyError: There are too many with births.
        """
        state = self._nodes.get(node)
        if state is None:
            if len(self._nodes) >= MAX_NODES:
                other = self._provisional_nodes.first()
                if other is None:
                    name = "/".join(node)
                    raise TooManyError(f"more than {MAX_NODES:,} nodes: {name} is left out")
                self.remove_node(gone, other)
            state = self._nodes[node] = NodeState()
            self._provisional_nodes.put(node, now, has_rows=False)
        elif node in self._provisional_nodes:
            self._provisional_nodes.put(node, now, has_rows=False)
        return state

    def device(
        self, gone: list[DeviceId], node: Node, state: NodeState, name: str, now: int
    ) -> DeviceMetrics:
        """Return a device of a node, and add it if it is new.

        Raises:
            TooManyError: There are too many with births.
        """
        device = state.devices.get(name)
        if device is None:
            if self.devices >= MAX_DEVICES:
                other = self._provisional_devices.first()
                if other is None:
                    text = "/".join(filter(None, (*node, name)))
                    raise TooManyError(
                        f"more than {MAX_DEVICES:,} nodes and devices: {text} is left out"
                    )
                self.remove_device(gone, *other, keep=node)
            device = self._add(state, name, now)
            self._provisional_devices.put((node, name), now, has_rows=False)
        elif (node, name) in self._provisional_devices:
            self._provisional_devices.put((node, name), now, has_rows=False)
        return device

    def take_node_birth(self, node: Node, state: NodeState, number: int | None, now: int) -> None:
        """Note a node's birth message: its devices' own ones follow."""
        self.is_changed |= not state.has_birth or state.birth != number
        state.has_birth, state.birth, state.gap_since = True, number, 0
        self._provisional_nodes.discard(node)
        for name, device in state.devices.items():
            # Aliases are given anew; the rows stay until the devices' own births.
            device.has_birth = device.is_heard = False
            device.since = now
            self._provisional_devices.discard((node, name))

    def take_birth(
        self,
        node: Node,
        state: NodeState,
        name: str,
        birth: SparkplugPayload,
        now: int,
    ) -> MetricsRow | None:
        """Take the birth of a device that is followed; see `DeviceMetrics.take_birth`.

        Raises:
            TooManyError: All births have too many metrics.
        """
        device = state.devices[name]
        more = len(birth.metrics) - device.size
        if self.metrics + more > MAX_METRICS:
            text = "/".join(filter(None, (*node, name)))
            raise TooManyError(
                f"the births of this source have more than {MAX_METRICS:,} metrics: {text} is left "
                "out"
            )
        self.metrics += more
        row = device.take_birth(birth)
        if state.has_birth:
            self._provisional_devices.discard((node, name))
        self.note_rows(node, name, device, now)
        return row

    def note_rows(self, node: Node, name: str, device: DeviceMetrics, now: int) -> None:
        """Note that there are rows of a device: it is remembered, and leaves later than others."""
        self.is_changed |= not device.has_rows
        device.has_rows = True
        if (node, name) in self._provisional_devices:
            self._provisional_devices.put((node, name), now, has_rows=True)
        if node in self._provisional_nodes:
            self._provisional_nodes.put(node, now, has_rows=True)

    def remove_device(
        self, gone: list[DeviceId], node: Node, name: str, keep: Node | None = None
    ) -> None:
        """Remove a device, and its node if that was all that was known of it.

        Args:
            gone: See the class.
            node: Its node.
            name: Of the device.
            keep: A node that stays without devices.
        """
        state = self._nodes.get(node)
        device = state.devices.pop(name, None) if state is not None else None
        if state is None or device is None:
            return
        self._provisional_devices.discard((node, name))
        self.devices -= 1
        self.metrics -= device.size
        if device.has_rows:
            self.is_changed = True
            gone.append(DeviceId(*node, name))
        if not state.devices and node in self._provisional_nodes and node != keep:
            self.remove_node(gone, node)

    def remove_node(self, gone: list[DeviceId], node: Node) -> None:
        """Remove a node with its devices."""
        self._provisional_nodes.discard(node)
        for name in list(self._nodes[node].devices):
            self.remove_device(gone, node, name)
        state = self._nodes.pop(node)
        self.is_changed |= state.has_birth or state.is_restored

    def end_wait(self, gone: list[DeviceId], node: Node, state: NodeState, now: int) -> None:
        """Remove the devices of a node that have not sent anything until its deadline."""
        state.deadline = 0
        self.is_changed |= state.is_restored
        state.is_restored = False
        for name, device in list(state.devices.items()):
            if not device.is_heard:
                self.remove_device(gone, node, name, keep=node)
        if not state.has_birth and not state.devices:
            self.remove_node(gone, node)
        else:
            self._make_provisional(node, state, now)

    def remove_silent(self, gone: list[DeviceId], now: int) -> None:
        """Remove provisional nodes and devices that have sent nothing for long."""
        since = now - SILENCE_SECONDS * _MICROS
        for node in self._provisional_nodes.silent(since):
            self.remove_node(gone, node)
        for node, name in self._provisional_devices.silent(since):
            self.remove_device(gone, node, name)

    def _make_provisional(self, node: Node, state: NodeState, now: int) -> None:
        """Let others have the room of what has no birth."""
        for name, device in state.devices.items():
            key = (node, name)
            has_birth = device.has_birth and state.has_birth
            if not has_birth and key not in self._provisional_devices:
                self._provisional_devices.put(key, now, has_rows=device.has_rows)
        if not state.has_birth:
            has_rows = any(device.has_rows for device in state.devices.values())
            self._provisional_nodes.put(node, now, has_rows=has_rows)

    def _add(self, state: NodeState, name: str, now: int) -> DeviceMetrics:
        self.devices += 1
        device = state.devices[name] = DeviceMetrics(self._wanted, now)
        return device
