"""The links that gateways have published: retained, one topic each, empty when gone."""

from collections.abc import Iterator

from federated_optimizer.statistics.link_hops import LinkHops
from federated_optimizer.statistics.planning_statistics import Homes
from streamsql.errors import WireError
from streamsql.wire.messages import LinkMessage
from streamsql.wire.topics import text_of_level

MAX_LINKS = 100_000
_OLD_LEVELS = 2
"""Until version 0.1 a link's topic named its ends only."""

Levels = tuple[str, ...]
Key = tuple[str, Levels]
"""Gateway, and what follows it in the link's topic."""
Link = tuple[str, str, float | None, str, str]
"""Source, target, cost (None: it has none), link source, gateway."""


class LinkTable:
    """Current links by owner and topic. Bounded; more are refused.

    Attributes:
        version: Grows whenever a link comes, changes or goes.
    """

    def __init__(self) -> None:
        self.version = 0
        self._links: dict[Key, tuple[str, str, float | None]] = {}
        self._homes: tuple[int, Homes] = (0, Homes())
        self._hops: tuple[tuple[object, ...], LinkHops] = ((0, ()), LinkHops())
        self._shown: tuple[int, frozenset[str], tuple[Link, ...]] | None = None

    def put(self, gateway: str, levels: Levels, link: LinkMessage) -> bool:
        """Add a link; return False when there is no room for another one.

        Raises:
            WireError: Its topic is not one of a link.
        """
        key = (gateway, levels)
        if key not in self._links and len(self._links) >= MAX_LINKS:
            return False
        source, target = _ends(levels)
        found = (source, target, link.cost)
        if self._links.get(key) != found:
            self._links[key] = found
            self.version += 1
        return True

    def remove(self, gateway: str, levels: Levels) -> None:
        """Take out a link that is gone."""
        if self._links.pop((gateway, levels), None) is not None:
            self.version += 1

    def owned_by(self, gateway: str) -> list[Levels]:
        """Return the topic levels of a gateway's links."""
        return [levels for owner, levels in self._links if owner == gateway]

    def homes(self) -> Homes:
        """Return at which gateway every end of links lives: the first that has links from it.

        It is the same object until a link changes.
        """
        if self._homes[0] != self.version:
            self._homes = self.version, self._found_homes()
        return self._homes[1]

    def _found_homes(self) -> Homes:
        links = sorted((owner, *ends[:2]) for (owner, _), ends in tuple(self._links.items()))
        gateway: dict[str, str] = {}
        for owner, source, _target in links:
            gateway.setdefault(source, owner)
        local = sum(gateway.get(target) == owner for owner, _source, target in links)
        return Homes(gateway, local / len(links) if links else 0.0)

    def hops(self, beside: tuple[tuple[str, str], ...] = ()) -> LinkHops:
        """Return the hops between gateways: the same object until a link changes.

        Args:
            beside: Pairs of a base site and the gateway next to it.
        """
        state = self.version, beside
        if self._hops[0] != state:
            gateway = self.homes().gateway
            ends = ((owner, _ends(levels)[1]) for owner, levels in tuple(self._links))
            crossing = {(a, home) for a, end in ends if (home := gateway.get(end, a)) != a}
            self._hops = state, LinkHops({*crossing, *beside} if crossing else ())
        return self._hops[1]

    def costs(self) -> Iterator[tuple[str, str, float | None]]:
        """Yield link source in lower case, gateway and cost of every link."""
        for (owner, levels), (_source, _target, cost) in tuple(self._links.items()):
            yield _relation(levels).lower(), owner, cost

    def of(self, gateways: frozenset[str]) -> tuple[Link, ...]:
        """Return the links that these gateways own, sorted: the same tuple until they change."""
        if self._shown is not None and self._shown[:2] == (self.version, gateways):
            return self._shown[2]
        version = self.version
        links: list[Link] = [
            (*link, _relation(levels), owner)
            for (owner, levels), link in tuple(self._links.items())
            if owner in gateways
        ]
        links.sort(key=lambda link: (*link[:2], *link[3:], link[2] is None, link[2] or 0.0))
        self._shown = version, gateways, tuple(links)
        return self._shown[2]


def _relation(levels: Levels) -> str:
    return "" if len(levels) == _OLD_LEVELS else text_of_level(levels[0])


def _ends(levels: Levels) -> tuple[str, str]:
    if len(levels) < _OLD_LEVELS:
        raise WireError("the topic of a link names relation, source and target")
    ends = levels if len(levels) == _OLD_LEVELS else levels[1:3]
    return text_of_level(ends[0]), text_of_level(ends[1])
