"""The conversation with Sparkplug nodes, as one source follows it.

Law: whoever has heard a node's birth and all messages since knows the last value of each metric;
where something is missing, a rebirth says all of it again (Sparkplug 3.0, operational behaviour).
"""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from streamsql.mapping.payloads.sparkplug_payload import (
    SparkplugKind,
    SparkplugPayload,
    SparkplugTopic,
)
from streamsql.mapping.sparkplug.device_metrics import SHOWN_NAMES, DeviceMetrics, MetricsRow

MAX_NODES = 2_000
MAX_DEVICES = 10_000
"""Nodes and devices of a source."""
MAX_METRICS = 500_000
"""Of all births of a source."""
BIRTH_SECONDS = 10
"""How long after its node's birth a device may take for its own."""
ANSWER_SECONDS = 60
"""How long a node may take to answer the command to be born again; then data counts without."""

_MICROS = 1_000_000
_SEQUENCE = 256
_BD_SEQ = "bdSeq"

Node = tuple[str, str]
"""Group and node."""

KnownNode = tuple[str, str, int | None, tuple[str, ...]]
"""Group, node, number of its session, devices; the empty name is the node itself."""


class DeviceId(msgspec.Struct, frozen=True):
    """A device, or with an empty `device` the node itself."""

    group: str
    node: str
    device: str = ""


class Changes(msgspec.Struct):
    """Changes by a message or by time.

    Attributes:
        rows: New values of the node or device that has sent the message.
        gone: Devices that have died; their rows are to be withdrawn.
        born: The node whose birth this is.
        doubts: Nodes that are to be born again, and why.
        problem: What is wrong, or empty.
    """

    rows: list[MetricsRow] = msgspec.field(default_factory=list)
    gone: list[DeviceId] = msgspec.field(default_factory=list)
    born: Node | None = None
    doubts: list[tuple[Node, str]] = msgspec.field(default_factory=list)
    problem: str = ""


class _NodeState:
    """A node.

    Attributes:
        is_born: Its birth was heard.
        birth: The number of its session (`bdSeq`), or None.
        sequence: Of its last message; None: not known.
        doubted: Since when messages are missing; 0: none is.
        deadline: When devices that are not heard are gone; 0: never.
        devices: By name; the empty name is the node itself.
    """

    def __init__(self) -> None:
        self.is_born = False
        self.birth: int | None = None
        self.sequence: int | None = None
        self.doubted = 0
        self.deadline = 0
        self.devices: dict[str, DeviceMetrics] = {}


class SparkplugSession:
    """The nodes and devices of one source.

    Args:
        wanted: Names of the metrics that it reads; empty: facts alone.
        asks: Whether nodes are asked to be born again. If not, data counts as it comes.

    Attributes:
        is_changed: Whether `known` says something new since this was last set to False.
    """

    def __init__(self, wanted: Collection[str], *, asks: bool) -> None:
        self._wanted = frozenset(wanted)
        self._asks = asks
        self.is_changed = False
        self._nodes: dict[Node, _NodeState] = {}
        self._devices = 0
        self._metrics = 0
        self._fits = not self._wanted
        self._misfit: tuple[int, str] | None = None

    def known(self) -> list[KnownNode]:
        """Return what `restore` takes up after a restart."""
        return [(*node, s.birth, tuple(s.devices)) for node, s in self._nodes.items()]

    def used(self) -> tuple[int, int]:
        """Return how many devices and metrics count towards the bounds."""
        return self._devices, self._metrics

    def restore(self, known: Iterable[KnownNode], now: int) -> Changes:
        """Take up the nodes that were known before a restart.

        Whoever does not answer the command to be born again is gone.
        """
        changes = Changes()
        for group, name, birth, devices in known:
            node = (group, name)
            if len(self._nodes) >= MAX_NODES:
                break
            state = self._nodes[node] = _NodeState()
            state.birth = birth
            state.deadline = now + ANSWER_SECONDS * _MICROS if self._asks else 0
            for device in devices[: MAX_DEVICES - self._devices]:
                self._device(changes, node, state, device, now)
            self._doubt(changes, node, "the gateway was restarted")
        return changes

    def heard(
        self, topic: SparkplugTopic, message: SparkplugPayload, now: int, *, is_old: bool = False
    ) -> Changes:
        """Return what a message changes.

        Args:
            topic: Where it came.
            message: What came.
            now: Microseconds since 1970.
            is_old: It was retained before we subscribed: the node may be dead since.

        Raises:
            ValueError: There are too many nodes, devices or metrics.
        """
        changes = Changes()
        node: Node = (topic.group, topic.node)
        if is_old and not topic.kind.is_birth:
            return changes
        match topic.kind:
            case SparkplugKind.NDEATH:
                self._node_dies(changes, node, message)
            case SparkplugKind.NBIRTH:
                self._node_is_born(changes, topic, message, now, is_old=is_old)
            case SparkplugKind.DBIRTH:
                state = self._node(changes, node)
                if not is_old:
                    self._in_order(changes, node, state, message, now)
                self._bear(changes, state, topic, message, now)
            case SparkplugKind.DDEATH:
                self._in_order(changes, node, self._node(changes, node), message, now)
                self._device_dies(changes, node, topic.device)
            case SparkplugKind.NDATA | SparkplugKind.DDATA:
                state = self._node(changes, node)
                self._in_order(changes, node, state, message, now)
                self._take_data(changes, state, topic, message, now)
        return changes

    def due(self, now: int) -> Changes:
        """Return what the time alone changes; call it about once a second."""
        changes = Changes()
        for node, state in list(self._nodes.items()):
            if not state.deadline:
                continue
            if now < state.deadline:
                if not state.is_born:
                    self._doubt(changes, node, "the gateway was restarted")
                continue
            state.deadline = 0
            for name, device in list(state.devices.items()):
                if not device.is_heard:
                    self._device_dies(changes, node, name)
            if not state.is_born and not state.devices:
                del self._nodes[node]
        if self._misfit is not None and now >= self._misfit[0]:
            changes.problem, self._misfit = self._misfit[1], None
        return changes

    def _node_is_born(
        self,
        changes: Changes,
        topic: SparkplugTopic,
        birth: SparkplugPayload,
        now: int,
        *,
        is_old: bool,
    ) -> None:
        node = (topic.group, topic.node)
        state = self._node(changes, node)
        state.is_born, state.doubted = True, 0
        state.birth = _bd_seq(birth)
        self.is_changed = True
        state.sequence = None if is_old else birth.seq
        state.deadline = now + BIRTH_SECONDS * _MICROS
        for device in state.devices.values():
            # Aliases are given anew; the rows stay until the devices' own births.
            device.is_born = device.is_heard = False
            device.since = now
        self._bear(changes, state, topic, birth, now)
        if is_old:
            self._doubt(changes, node, "its birth was retained and may be old")
        else:
            changes.born = node

    def _node_dies(self, changes: Changes, node: Node, death: SparkplugPayload) -> None:
        state = self._nodes.get(node)
        if state is None:
            return
        birth = _bd_seq(death)
        if birth is not None and state.birth is not None and birth != state.birth:
            return  # the death of an earlier session, which the broker noticed late
        self._forget(changes, node)

    def _in_order(
        self, changes: Changes, node: Node, state: _NodeState, message: SparkplugPayload, now: int
    ) -> None:
        """Doubt the node of a message where messages before it are missing."""
        last, state.sequence = state.sequence, message.seq
        if not state.is_born:
            self._doubt(changes, node, "its birth was not received")
        elif last is not None and message.seq is not None:
            # A message that comes twice misses none.
            if message.seq not in {last, (last + 1) % _SEQUENCE} and self._asks:
                state.doubted = state.doubted or now
            if state.doubted:
                self._doubt(changes, node, f"messages are missing before number {message.seq}")

    def _bear(
        self,
        changes: Changes,
        state: _NodeState,
        topic: SparkplugTopic,
        birth: SparkplugPayload,
        now: int,
    ) -> None:
        device = self._device(changes, (topic.group, topic.node), state, topic.device, now)
        more = len(birth.metrics) - device.size
        if self._metrics + more > MAX_METRICS:
            raise ValueError(f"the births of this source have more than {MAX_METRICS:,} metrics")
        self._metrics += more
        row = device.bear(birth)
        if row is not None:
            self._fits, self._misfit = True, None
            changes.rows.append(row)
        elif not self._fits and self._misfit is None:
            names = ", ".join(m.name for m in birth.metrics[:SHOWN_NAMES])
            where = "/".join(filter(None, (topic.group, topic.node, topic.device)))
            text = f"no birth has a metric that a column reads; {where} has {names}"
            self._misfit = (now + BIRTH_SECONDS * _MICROS, text)

    def _take_data(
        self,
        changes: Changes,
        state: _NodeState,
        topic: SparkplugTopic,
        data: SparkplugPayload,
        now: int,
    ) -> None:
        node = (topic.group, topic.node)
        device = self._device(changes, node, state, topic.device, now)
        trusted = not self._asks or not state.doubted or _is_over(state.doubted, now)
        rows, unknown = device.rows(data, aliases_count=trusted)
        if not device.is_born:
            self._doubt(changes, node, "a birth was not received")
        elif unknown is not None:
            self._doubt(changes, node, f"no birth has defined the alias {unknown}")
        # Until the birth, columns of metrics that this message leaves out would be NULL.
        if device.is_born or not self._asks or _is_over(device.since, now):
            changes.rows += rows
        if unknown is not None and not rows and (not self._asks or _is_over(device.since, now)):
            changes.problem = f"no birth has defined the alias {unknown}"

    def _device_dies(self, changes: Changes, node: Node, name: str) -> None:
        state = self._nodes.get(node)
        device = state.devices.pop(name, None) if state is not None else None
        if device is not None:
            self._devices -= 1
            self._metrics -= device.size
            self.is_changed = True
        changes.gone.append(DeviceId(*node, name))

    def _node(self, changes: Changes, node: Node) -> _NodeState:
        state = self._nodes.get(node)
        if state is None:
            if len(self._nodes) >= MAX_NODES:
                # Nodes without a birth leave: messages of invented nodes must not bar real ones.
                unborn = next((n for n, each in self._nodes.items() if not each.is_born), None)
                if unborn is None:
                    raise ValueError(f"more than {MAX_NODES:,} nodes: {'/'.join(node)} is left out")
                self._forget(changes, unborn)
            state = self._nodes[node] = _NodeState()
        return state

    def _forget(self, changes: Changes, node: Node) -> None:
        for name in list(self._nodes[node].devices):
            self._device_dies(changes, node, name)
        del self._nodes[node]

    def _device(
        self, changes: Changes, node: Node, state: _NodeState, name: str, now: int
    ) -> DeviceMetrics:
        device = state.devices.get(name)
        if device is None:
            if self._devices >= MAX_DEVICES:
                unborn = next((n for n, each in state.devices.items() if not each.is_born), None)
                if unborn is None:
                    raise ValueError(
                        f"more than {MAX_DEVICES:,} nodes and devices: {name} is left out"
                    )
                self._device_dies(changes, node, unborn)
            self._devices += 1
            self.is_changed = True
            device = state.devices[name] = DeviceMetrics(self._wanted, now)
        return device

    def _doubt(self, changes: Changes, node: Node, reason: str) -> None:
        if self._asks and not any(doubted == node for doubted, _ in changes.doubts):
            changes.doubts.append((node, reason))


def _bd_seq(payload: SparkplugPayload) -> int | None:
    numbers: Iterator[int] = (
        m.value for m in payload.metrics if m.name == _BD_SEQ and isinstance(m.value, int)
    )
    return next(numbers, None)


def _is_over(since: int, now: int) -> bool:
    return now - since >= ANSWER_SECONDS * _MICROS
