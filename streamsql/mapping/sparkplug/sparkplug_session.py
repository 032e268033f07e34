"""The conversation with Sparkplug nodes, as one source follows it.

Law: whoever has received a node's birth and all messages since knows the last value of each metric;
where something is missing, a rebirth says all of it again (Sparkplug 3.0, operational behaviour).
"""

from collections.abc import Collection, Iterable, Iterator

from streamsql.mapping.payloads.sparkplug_payload import (
    SparkplugKind,
    SparkplugPayload,
    SparkplugTopic,
)
from streamsql.mapping.sparkplug.device_metrics import SHOWN_NAMES
from streamsql.mapping.sparkplug.followed_nodes import FollowedNodes, NodeState, TooManyError
from streamsql.mapping.sparkplug.session_changes import Changes, DeviceId, KnownNode, Node

BIRTH_SECONDS = 10
"""How long after its node's birth a device may take for its own."""
ANSWER_SECONDS = 60
"""How long a node may take to answer the rebirth command; then data counts without a birth."""

_MICROS = 1_000_000
_SEQUENCE = 256
_BD_SEQ = "bdSeq"
_RESTARTED = "the gateway was restarted"


class SparkplugSession:
    """The nodes and devices of one source.

    Args:
        wanted: Names of the metrics that it reads; empty: facts alone.
        asks: Whether nodes are told to publish their births. If not, data counts as it comes.
    """

    def __init__(self, wanted: Collection[str], *, asks: bool) -> None:
        self._wanted = frozenset(wanted)
        self._asks = asks
        self._nodes = FollowedNodes(self._wanted)
        self._fits = not self._wanted
        self._misfit: tuple[int, str] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether `known` says something new since `known` was last called or restored."""
        return self._nodes.is_changed

    def known(self) -> list[KnownNode]:
        """Return what `restore` takes after a restart."""
        self._nodes.is_changed = False
        return self._nodes.known()

    def used(self) -> tuple[int, int]:
        """Return how many devices and metrics count towards the bounds."""
        return self._nodes.devices, self._nodes.metrics

    def restore(self, known: Iterable[KnownNode], now: int) -> Changes:
        """Follow the nodes that were known before a restart.

        What does not answer the rebirth command in time is gone; see `asked`.
        """
        changes = Changes()
        for node in self._nodes.restore(known, now, asks=self._asks):
            self._want_rebirth(changes, node, _RESTARTED)
        return changes

    def asked(self, node: Node, now: int) -> None:
        """Note that a rebirth command was published; the time for an answer begins.

        Args:
            node: It was told to publish its births.
            now: Microseconds since 1970.
        """
        state = self._nodes.get(node)
        if state is not None and state.is_restored and not state.deadline:
            state.deadline = now + ANSWER_SECONDS * _MICROS

    def heard(
        self, topic: SparkplugTopic, message: SparkplugPayload, now: int, *, is_old: bool = False
    ) -> Changes:
        """Return what a message changes.

        Args:
            topic: Where it came.
            message: What came.
            now: Microseconds since 1970.
            is_old: It was retained before we subscribed: the node may be dead since.
        """
        changes = Changes()
        if is_old and not topic.kind.is_birth:
            return changes
        try:
            self._take(changes, topic, message, now, is_old=is_old)
        except TooManyError as error:
            # Rows of devices that had to leave before are to be withdrawn all the same.
            changes.problem = str(error)
        return changes

    def due(self, now: int) -> Changes:
        """Return what the time alone changes; call it about once a second.

        Args:
            now: Up to which time messages were handed to `heard`.
        """
        changes = Changes()
        for node, state in self._nodes:
            if state.deadline and now >= state.deadline:
                self._nodes.end_wait(changes.gone, node, state, now)
            elif state.is_restored:
                self._want_rebirth(changes, node, _RESTARTED)
        self._nodes.remove_silent(changes.gone, now)
        if self._misfit is not None and now >= self._misfit[0]:
            changes.problem, self._misfit = self._misfit[1], None
        return changes

    def _take(
        self,
        changes: Changes,
        topic: SparkplugTopic,
        message: SparkplugPayload,
        now: int,
        *,
        is_old: bool,
    ) -> None:
        node: Node = (topic.group, topic.node)
        match topic.kind:
            case SparkplugKind.NDEATH:
                self._node_dies(changes, node, message)
            case SparkplugKind.DDEATH:
                self._device_dies(changes, node, topic.device, message, now)
            case SparkplugKind.NBIRTH:
                self._take_node_birth(changes, topic, message, now, is_old=is_old)
            case SparkplugKind.DBIRTH:
                state = self._nodes.node(changes.gone, node, now)
                if not is_old:
                    self._check_order(changes, node, state, message, now)
                self._take_birth(changes, state, topic, message, now)
            case SparkplugKind.NDATA | SparkplugKind.DDATA:
                state = self._nodes.node(changes.gone, node, now)
                self._check_order(changes, node, state, message, now)
                self._take_data(changes, state, topic, message, now)

    def _take_node_birth(
        self,
        changes: Changes,
        topic: SparkplugTopic,
        birth: SparkplugPayload,
        now: int,
        *,
        is_old: bool,
    ) -> None:
        node = (topic.group, topic.node)
        state = self._nodes.node(changes.gone, node, now)
        self._nodes.take_node_birth(node, state, _bd_seq(birth), now)
        if is_old:
            self._want_rebirth(changes, node, "its birth was retained and may be old")
        else:
            changes.birth_of = node
        state.sequence = None if is_old else birth.seq
        # A retained birth is no answer: the devices have time until that of the node is over.
        if not (is_old and self._asks):
            state.is_restored = False
            state.deadline = now + BIRTH_SECONDS * _MICROS
        self._take_birth(changes, state, topic, birth, now)

    def _node_dies(self, changes: Changes, node: Node, death: SparkplugPayload) -> None:
        state = self._nodes.get(node)
        if state is None:
            return
        birth = _bd_seq(death)
        if birth is not None and state.birth is not None and birth != state.birth:
            return  # the death of an earlier session, which the broker noticed late
        self._nodes.remove_node(changes.gone, node)

    def _device_dies(
        self, changes: Changes, node: Node, name: str, death: SparkplugPayload, now: int
    ) -> None:
        state = self._nodes.get(node)
        if state is None:
            self._want_rebirth(changes, node, "its birth was not received")
        else:
            self._check_order(changes, node, state, death, now)
            self._nodes.remove_device(changes.gone, node, name)
        gone = DeviceId(*node, name)
        if gone not in changes.gone:
            changes.gone.append(gone)

    def _check_order(
        self, changes: Changes, node: Node, state: NodeState, message: SparkplugPayload, now: int
    ) -> None:
        """Want a rebirth where messages before this one are missing."""
        last, state.sequence = state.sequence, message.seq
        if not state.has_birth:
            self._want_rebirth(changes, node, "its birth was not received")
        elif last is not None and message.seq is not None:
            # A message that comes twice misses none.
            if message.seq not in {last, (last + 1) % _SEQUENCE} and self._asks:
                state.gap_since = state.gap_since or now
            if state.gap_since:
                self._want_rebirth(
                    changes, node, f"messages are missing before number {message.seq}"
                )

    def _take_birth(
        self,
        changes: Changes,
        state: NodeState,
        topic: SparkplugTopic,
        birth: SparkplugPayload,
        now: int,
    ) -> None:
        node = (topic.group, topic.node)
        self._nodes.device(changes.gone, node, state, topic.device, now)
        row = self._nodes.take_birth(node, state, topic.device, birth, now)
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
        state: NodeState,
        topic: SparkplugTopic,
        data: SparkplugPayload,
        now: int,
    ) -> None:
        node = (topic.group, topic.node)
        device = self._nodes.device(changes.gone, node, state, topic.device, now)
        trusted = not self._asks or not state.gap_since or _is_over(state.gap_since, now)
        rows, unknown = device.rows(data, aliases_count=trusted)
        if not device.has_birth:
            self._want_rebirth(changes, node, "a birth was not received")
        elif unknown is not None:
            self._want_rebirth(changes, node, f"no birth has defined the alias {unknown}")
        # Until the birth, columns of metrics that this message leaves out would be NULL.
        if rows and (device.has_birth or not self._asks or _is_over(device.since, now)):
            changes.rows += rows
            self._nodes.note_rows(node, topic.device, device, now)
        if unknown is not None and not rows and (not self._asks or _is_over(device.since, now)):
            changes.problem = f"no birth has defined the alias {unknown}"

    def _want_rebirth(self, changes: Changes, node: Node, reason: str) -> None:
        if self._asks:
            changes.rebirths.setdefault(node, reason)


def _bd_seq(payload: SparkplugPayload) -> int | None:
    numbers: Iterator[int] = (
        m.value for m in payload.metrics if m.name == _BD_SEQ and isinstance(m.value, int)
    )
    return next(numbers, None)


def _is_over(since: int, now: int) -> bool:
    return now - since >= ANSWER_SECONDS * _MICROS
