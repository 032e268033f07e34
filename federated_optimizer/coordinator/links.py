"""The links that gateways have published: retained, one topic each, empty when gone."""

from federated_optimizer.placement import Homes
from streamsql.wire.messages import LinkMessage

MAX_LINKS = 100_000


class LinkTable:
    """Current links by owner, source and target. Bounded; more are refused."""

    def __init__(self) -> None:
        self._links: dict[tuple[str, str, str], float] = {}

    def put(self, gateway: str, source: str, target: str, link: LinkMessage) -> bool:
        """Take in a link; return False when there is no room for another one."""
        key = (gateway, source, target)
        if key not in self._links and len(self._links) >= MAX_LINKS:
            return False
        self._links[key] = link.cost
        return True

    def remove(self, gateway: str, source: str, target: str) -> None:
        """Take out a link that is gone."""
        self._links.pop((gateway, source, target), None)

    def owned_by(self, gateway: str) -> list[tuple[str, str]]:
        """Return source and target of a gateway's links."""
        return [(source, target) for owner, source, target in self._links if owner == gateway]

    def homes(self) -> Homes:
        """Return at which gateway every end of links lives: the first that has links from it."""
        links = dict(self._links)
        gateway: dict[str, str] = {}
        for owner, source, _target in sorted(links):
            gateway.setdefault(source, owner)
        local = sum(gateway.get(target) == owner for owner, _source, target in links)
        return Homes(gateway, local / len(links) if links else 0.0)

    def of(self, gateways: frozenset[str]) -> tuple[tuple[str, str, float], ...]:
        """Return (source, target, cost) of the links that these gateways own, sorted."""
        links = dict(self._links)
        return tuple(sorted((s, t, cost) for (g, s, t), cost in links.items() if g in gateways))
