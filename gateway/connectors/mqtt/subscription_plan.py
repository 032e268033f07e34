"""Which filters to subscribe to, over which connections, so that no message is read twice. Pure."""

import zlib
from collections.abc import Iterable, Sequence

import msgspec

from gateway.connectors.mqtt.served_source import ServedSource
from host.mqtt.topic_filters import split_shared

MAX_CONNECTIONS = 8
"""To one broker that does not name subscriptions: one for each set of filters without overlap."""
_MAX_NUMBER = 268_435_455
"""Of a subscription, in MQTT 5."""


class Subscription(msgspec.Struct):
    """One filter, and what its messages are to whom.

    Attributes:
        readers: A source, and whether it reads the availability of devices there.
    """

    topic_filter: str
    qos: int
    readers: list[tuple[ServedSource, bool]]

    @property
    def number(self) -> int:
        """From 1, and of this filter in every life: the broker keeps subscriptions.

        Two filters may have the same.
        """
        return 1 + zlib.crc32(self.topic_filter.encode()) % _MAX_NUMBER


class Plan(msgspec.Struct):
    """Filters to subscribe to.

    Attributes:
        connections: The subscriptions of each connection, at least one.
        left_out: Subscriptions for which there is no connection.
    """

    connections: list[list[Subscription]]
    left_out: list[Subscription]


def plan_subscriptions(sources: Iterable[ServedSource], *, named: bool) -> Plan:
    """Return what to subscribe to for some sources.

    Args:
        sources: Those of one endpoint.
        named: The broker says of each message which subscriptions it is for: one connection is
            enough. Else a message that matches several filters of a connection comes once, or once
            for each of them, as the broker likes, and nobody can tell.
    """
    wanted: dict[str, Subscription] = {}
    for source in sources:
        for topic_filter, is_availability in source.filters:
            found = wanted.setdefault(topic_filter, Subscription(topic_filter, 0, []))
            found.qos = max(found.qos, source.options.qos)
            found.readers.append((source, is_availability))
    if named:
        return Plan([list(wanted.values())], [])
    return _divided(_without_covered(wanted))


def _without_covered(wanted: dict[str, Subscription]) -> list[Subscription]:
    """Leave out filters that another one covers; their readers read that one."""
    widest = {
        topic_filter: subscription
        for topic_filter, subscription in wanted.items()
        if not any(other != topic_filter and covers(other, topic_filter) for other in wanted)
    }
    for topic_filter, subscription in wanted.items():
        if topic_filter not in widest:
            wide = next(each for each in widest.values() if covers(each.topic_filter, topic_filter))
            wide.qos = max(wide.qos, subscription.qos)
            wide.readers += subscription.readers
    return list(widest.values())


def _divided(subscriptions: Sequence[Subscription]) -> Plan:
    """Put each subscription into the first connection where it overlaps with none."""
    plan = Plan([[]], [])
    for subscription in subscriptions:
        for connection in plan.connections:
            if not any(overlap(subscription.topic_filter, o.topic_filter) for o in connection):
                connection.append(subscription)
                break
        else:
            if len(plan.connections) < MAX_CONNECTIONS:
                plan.connections.append([subscription])
            else:
                plan.left_out.append(subscription)
    return plan


def covers(wide: str, narrow: str) -> bool:
    """Whether every message for one filter is one for the other, too; a shared one covers none.

    Examples:
        >>> covers("a/#", "a/+/c"), covers("a/+", "a/#"), covers("+/b", "a/b")
        (True, False, True)
        >>> covers("#", "$share/g/a"), covers("#", "$SYS/load")
        (False, False)
    """
    if wide == narrow:
        return True
    if wide.startswith("$share/") or _is_apart(wide, narrow):
        return False
    levels = wide.split("/")
    others = narrow.split("/")
    for position, level in enumerate(levels):
        if level == "#":
            return True
        if position >= len(others) or others[position] == "#":
            return False
        if level not in ("+", others[position]):
            return False
    return len(levels) == len(others)


def overlap(one: str, other: str) -> bool:
    """Whether there are topics that match both filters, shared or not.

    Examples:
        >>> overlap("a/+", "+/x"), overlap("a/#", "a"), overlap("$share/g/a/+", "a/b")
        (True, True, True)
        >>> overlap("a/+", "b/#"), overlap("a/+", "a/b/c"), overlap("#", "$SYS/load")
        (False, False, False)
    """
    one, other = split_shared(one)[1], split_shared(other)[1]
    if _is_apart(one, other) or _is_apart(other, one):
        return False
    levels, others = one.split("/"), other.split("/")
    for level, against in zip(levels, others, strict=False):
        if "#" in (level, against):
            return True
        if level != against and "+" not in (level, against):
            return False
    longer = levels if len(levels) > len(others) else others
    shorter = min(len(levels), len(others))
    # `a/#` matches the topic `a`, too.
    return len(longer) == shorter or longer[shorter:] == ["#"]


def _is_apart(wild: str, special: str) -> bool:
    """Whether a wildcard begins one filter and a `$` the other one: no topic matches both."""
    return wild[:1] in {"+", "#"} and special.startswith("$")
