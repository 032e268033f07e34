"""Results of messages and of time in a conversation with Sparkplug nodes."""

import msgspec

from streamsql.mapping.sparkplug.device_metrics import MetricsRow

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
        birth_of: The node whose birth message this is.
        rebirths: Nodes that are to publish their birth messages again, and why.
        problem: What is wrong, or empty.
    """

    rows: list[MetricsRow] = msgspec.field(default_factory=list)
    gone: list[DeviceId] = msgspec.field(default_factory=list)
    birth_of: Node | None = None
    rebirths: dict[Node, str] = msgspec.field(default_factory=dict)
    problem: str = ""
