"""Rebirth commands to Sparkplug nodes: seldom to one node, and not to all at once."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from streamsql.mapping.sparkplug.session_changes import Node

MAX_NODES = 2_000
"""Nodes of a source that are remembered as asked or to be asked: as many as it follows."""
AT_ONCE = 20
A_SECOND = 10
"""Commands that are published at once, and then in each second."""
PAUSE_SECONDS = 10.0
PAUSE_MOST_SECONDS = 600.0
"""Between two commands to a node; the pause doubles from the one to the other."""
CALM_SECONDS = 3_600.0
"""After so long without a command the pause is short again."""
UNANSWERED = 3
"""Commands to a node without its birth from which on that is a problem."""

_LOOKED_AT = 50
_MICROS = 1_000_000
_BOOLEAN = 11
_NAME = b"Node Control/Rebirth"


class _Asked(msgspec.Struct):
    """A node; times in microseconds.

    Attributes:
        reason: Why it is to be asked; empty: it is not.
        queues: How many sources' queues it is in.
    """

    reason: str = ""
    last: int = 0
    pause: float = 0.0
    unanswered: int = 0
    queues: int = 0


class RebirthRequests:
    """The nodes of one broker that are to be asked, for all sources.

    Sources have turns, and the nodes of a source, too: who was asked goes to the end of the queue.
    So invented nodes delay real ones, and keep none from being asked.

    Args:
        on_want: Called when a node is to be asked that was not before.
    """

    def __init__(self, on_want: Callable[[], None] = lambda: None) -> None:
        self._on_want = on_want
        self._nodes: dict[Node, _Asked] = {}
        self._queues: dict[str, dict[Node, None]] = {}
        self._tokens = float(AT_ONCE)
        self._counted = 0

    def want(self, source: str, node: Node, reason: str) -> None:
        """Ask a node as soon as it may be asked; with too many others, when it is wanted again."""
        queue = self._queues.setdefault(source, {})
        if node not in queue:
            if len(queue) >= MAX_NODES and not self._forget_one(queue):
                return
            queue[node] = None
            self._nodes.setdefault(node, _Asked()).queues += 1
        asked = self._nodes[node]
        if not asked.reason:
            asked.reason = reason
            self._on_want()

    def has_birth(self, node: Node) -> None:
        """Note a birth message: the node needs no command any more."""
        asked = self._nodes.get(node)
        if asked is not None:
            asked.reason, asked.unanswered = "", 0

    def due(self, now: int) -> Iterator[tuple[Node, str, bool]]:
        """Yield who is to be asked now, why, and whether it has left earlier commands unanswered.

        Args:
            now: Microseconds since 1970.
        """
        seconds = max(now - self._counted, 0) / _MICROS if self._counted else 0
        self._tokens = min(self._tokens + seconds * A_SECOND, AT_ONCE)
        self._counted = now
        turns = deque((source, iter(tuple(queue))) for source, queue in self._queues.items())
        while turns and self._tokens >= 1:
            source, nodes = turns.popleft()
            node = next((node for node in nodes if self._may_be_asked(node, now)), None)
            if node is None:
                continue
            turns.append((source, nodes))
            # The source's next turn comes after those of the others, also with the next call.
            queue = self._queues[source] = self._queues.pop(source)
            queue[node] = queue.pop(node)
            yield node, *self._ask(self._nodes[node], now)

    def _may_be_asked(self, node: Node, now: int) -> bool:
        asked = self._nodes[node]
        return bool(asked.reason) and (now - asked.last) / _MICROS >= asked.pause

    def _ask(self, asked: _Asked, now: int) -> tuple[str, bool]:
        self._tokens -= 1
        is_calm = (now - asked.last) / _MICROS > CALM_SECONDS
        asked.pause = PAUSE_SECONDS if is_calm else min(asked.pause * 2, PAUSE_MOST_SECONDS)
        reason, asked.reason, asked.last = asked.reason, "", now
        asked.unanswered += 1
        return reason, asked.unanswered >= UNANSWERED

    def _forget_one(self, queue: dict[Node, None]) -> bool:
        """Forget a node that is not to be asked; return whether there was one."""
        # Who was asked is at the end. In a flood all others wait, and each message would look.
        last = islice(reversed(queue), _LOOKED_AT)
        node = next((node for node in last if not self._nodes[node].reason), None)
        if node is None:
            return False
        del queue[node]
        self._nodes[node].queues -= 1
        if not self._nodes[node].queues:
            del self._nodes[node]
        return True


def rebirth_topic(node: Node) -> str:
    """Return where a node takes commands."""
    group, name = node
    return f"spBv1.0/{group}/NCMD/{name}"


def rebirth_command(now: int) -> bytes:
    """Return the payload that asks for births: the metric `Node Control/Rebirth`, true.

    Args:
        now: Microseconds since 1970.
    """
    time = _varint(now // 1_000)
    metric = b"".join((
        b"\x0a", _varint(len(_NAME)), _NAME, b"\x18", time, b"\x20", _varint(_BOOLEAN), b"\x70\x01",
    ))  # fmt: skip
    return b"\x08" + time + b"\x12" + _varint(len(metric)) + metric


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
