"""The retained set: the last retained message of each topic, found by filter."""

from __future__ import annotations

from broker.embedded.packets.packets import Message


class _Node:
    """One level of the tree of topics."""

    __slots__ = ("children", "message")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.message: Message | None = None


class RetainedMessages:
    """A bounded tree of retained messages.

    Args:
        max_messages: Most topics kept.
        max_bytes: Most payload bytes kept.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._root = _Node()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        """Count the topics with a retained message."""
        return self._count

    def store(self, message: Message) -> bool:
        """Keep a message in place of its topic's last one; an empty payload removes it.

        Returns:
            False when a bound is reached and the message was not kept (the old one stays).
        """
        if not message.payload:
            self.remove(message.topic)
            return True
        old = self.get(message.topic)
        extra = len(message.payload) - (len(old.payload) if old else 0)
        if (old is None and self._count >= self._max_messages) or (
            self._bytes + extra > self._max_bytes
        ):
            return False
        node = self._root
        for level in message.topic.split("/"):
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node()
            node = child
        node.message = message
        self._count += old is None
        self._bytes += extra
        return True

    def get(self, topic: str) -> Message | None:
        """Return the retained message of a topic."""
        node: _Node | None = self._root
        for level in topic.split("/"):
            node = node.children.get(level) if node else None
        return node.message if node else None

    def remove(self, topic: str) -> None:
        """Forget the retained message of a topic, if there is one."""
        levels = topic.split("/")
        path = [self._root]
        for level in levels:
            child = path[-1].children.get(level)
            if child is None:
                return
            path.append(child)
        message = path[-1].message
        if message is None:
            return
        path[-1].message = None
        self._count -= 1
        self._bytes -= len(message.payload)
        for parent, level, node in reversed(list(zip(path, levels, path[1:], strict=False))):
            if node.children or node.message is not None:
                break
            del parent.children[level]

    def find(self, topic_filter: str, now: float) -> list[Message]:
        """Return the retained messages under a plain filter; expired ones are forgotten."""
        nodes = [self._root]
        levels = topic_filter.split("/")
        for depth, level in enumerate(levels):
            if level == "#":
                nodes = _subtree(nodes, skip_dollar=depth == 0)
                break
            nodes = _children(nodes, level, skip_dollar=depth == 0)
        found = [node.message for node in nodes if node.message is not None]
        expired = [m for m in found if m.expires_at is not None and m.expires_at <= now]
        for message in expired:
            self.remove(message.topic)
        return [m for m in found if m not in expired] if expired else found


def _children(nodes: list[_Node], level: str, *, skip_dollar: bool) -> list[_Node]:
    if level != "+":
        return [node.children[level] for node in nodes if level in node.children]
    return [
        child
        for node in nodes
        for name, child in node.children.items()
        if not (skip_dollar and name.startswith("$"))
    ]


def _subtree(nodes: list[_Node], *, skip_dollar: bool) -> list[_Node]:
    """Return the nodes and everything below them, parents first."""
    found: list[_Node] = []
    pending = list(nodes)
    while pending:
        node = pending.pop()
        found.append(node)
        if skip_dollar and node is nodes[0]:
            pending.extend(c for name, c in node.children.items() if not name.startswith("$"))
        else:
            pending.extend(node.children.values())
    return found
