"""Subscribers by topic: a trie of filters with a cache of whole topics.

A topic is matched level by level against the trie; the set of live trie nodes is a list, so depth
and width are bounded by the filters that exist and nothing recurses. Sensors publish on the same
topics again and again, so the result is remembered per topic until any subscription changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from broker.embedded.packets.packets import Options
from host.mqtt.topic_filters import split_shared

Subscriber = TypeVar("Subscriber", bound=Hashable)

_CACHED_TOPICS: Final = 20_000


class SharedGroup(Generic[Subscriber]):
    """The members of one shared subscription; each message goes to one of them in turn."""

    __slots__ = ("_turn", "members")

    def __init__(self) -> None:
        self.members: dict[Subscriber, Options] = {}
        self._turn = 0

    def rotation(self) -> Iterator[tuple[Subscriber, Options]]:
        """Yield every member once, starting one further each time."""
        members = list(self.members.items())
        self._turn = (self._turn + 1) % len(members)
        yield from members[self._turn :]
        yield from members[: self._turn]


@dataclass(slots=True, eq=False)
class Route(Generic[Subscriber]):
    """The subscribers of one topic: `direct` ones, once each, and shared groups."""

    direct: tuple[tuple[Subscriber, Options], ...]
    shared: tuple[SharedGroup[Subscriber], ...]


class _Node(Generic[Subscriber]):
    """One level of the trie."""

    __slots__ = ("children", "direct", "shared")

    def __init__(self) -> None:
        self.children: dict[str, _Node[Subscriber]] = {}
        self.direct: dict[Subscriber, Options] = {}
        self.shared: dict[str, SharedGroup[Subscriber]] = {}

    def empty(self) -> bool:
        return not (self.children or self.direct or self.shared)


class Subscriptions(Generic[Subscriber]):
    """All subscriptions of a broker.

    Filters must have passed `host.mqtt.topic_filters.check_filter`.
    """

    def __init__(self) -> None:
        self._root: _Node[Subscriber] = _Node()
        self._cache: dict[str, Route[Subscriber]] = {}

    def add(self, topic_filter: str, subscriber: Subscriber, options: Options) -> None:
        """Add a subscription, or replace its options."""
        self._cache.clear()
        group, plain = split_shared(topic_filter)
        node = self._root
        for level in plain.split("/"):
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node()
            node = child
        if group is None:
            node.direct[subscriber] = options
        else:
            node.shared.setdefault(group, SharedGroup()).members[subscriber] = options

    def remove(self, topic_filter: str, subscriber: Subscriber) -> None:
        """Remove a subscription, if it exists, and the branch that only it needed."""
        self._cache.clear()
        group, plain = split_shared(topic_filter)
        levels = plain.split("/")
        path = [self._root]
        for level in levels:
            child = path[-1].children.get(level)
            if child is None:
                return
            path.append(child)
        self._remove_from(path[-1], group, subscriber)
        for parent, level, node in reversed(list(zip(path, levels, path[1:], strict=False))):
            if not node.empty():
                break
            del parent.children[level]

    @staticmethod
    def _remove_from(node: _Node[Subscriber], group: str | None, subscriber: Subscriber) -> None:
        if group is None:
            node.direct.pop(subscriber, None)
        elif group in node.shared:
            members = node.shared[group].members
            members.pop(subscriber, None)
            if not members:
                del node.shared[group]

    def match(self, topic: str) -> Route[Subscriber]:
        """Return who gets a message on this topic; overlapping subscriptions are merged."""
        route = self._cache.get(topic)
        if route is None:
            route = self._match(topic)
            if len(self._cache) >= _CACHED_TOPICS:
                self._cache.clear()
            self._cache[topic] = route
        return route

    def _match(self, topic: str) -> Route[Subscriber]:
        hits: list[_Node[Subscriber]] = []
        live = [self._root]
        # A topic that starts with $ is not matched by a wildcard in first place.
        wildcards = not topic.startswith("$")
        for level in topic.split("/"):
            found: list[_Node[Subscriber]] = []
            for node in live:
                children = node.children
                if level in children:
                    found.append(children[level])
                if wildcards and "+" in children:
                    found.append(children["+"])
                if wildcards and "#" in children:
                    hits.append(children["#"])
            live, wildcards = found, True
            if not live:
                break
        hits.extend(live)
        # "a/#" matches "a" too.
        hits.extend(node.children["#"] for node in live if "#" in node.children)
        return self._merge(hits)

    @staticmethod
    def _merge(hits: list[_Node[Subscriber]]) -> Route[Subscriber]:
        direct: dict[Subscriber, Options] = {}
        shared: list[SharedGroup[Subscriber]] = []
        for node in hits:
            shared.extend(node.shared.values())
            for subscriber, options in node.direct.items():
                known = direct.get(subscriber)
                direct[subscriber] = options if known is None else _merge(known, options)
        return Route(tuple(direct.items()), tuple(shared))

    def size(self) -> int:
        """Count the nodes of the trie, its root not included: 0 when nobody subscribes."""
        count, pending = -1, [self._root]
        while pending:
            node = pending.pop()
            count += 1
            pending.extend(node.children.values())
        return count


def _merge(one: Options, other: Options) -> Options:
    """Combine overlapping subscriptions of one subscriber into a single delivery."""
    return Options(
        qos=max(one.qos, other.qos),
        no_local=one.no_local and other.no_local,
        retain_as_published=one.retain_as_published or other.retain_as_published,
    )
