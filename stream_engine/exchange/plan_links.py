"""A plan as a site sees it: fragments in their order, channels to other sites, idle times."""

from collections.abc import Iterable

from stream_engine.exchange.channel_outbox import RESULT
from streamsql.algebra.operators import Scan, ScanPart, walk_plan
from streamsql.errors import InternalError
from streamsql.wire.fragments import Fragment, FragmentBundle


def producers_first(bundle: FragmentBundle, site: str) -> list[Fragment]:
    """Return the fragments of a site, each after those that feed it.

    Raises:
        InternalError: Fragments feed each other in a circle, or read one that does not exist.
    """
    by_id = {fragment.id: fragment for fragment in bundle.fragments}
    done: dict[str, Fragment] = {}
    open_ids: list[str] = []

    def visit(fragment: Fragment) -> None:
        if fragment.id in done:
            return
        if fragment.id in open_ids:
            raise InternalError(f"fragments feed each other: {' -> '.join(open_ids)}")
        open_ids.append(fragment.id)
        for name in fragment.inputs:
            producer = by_id.get(name)
            if producer is None or not set(fragment.sites) <= set(producer.destinations):
                raise InternalError(f"fragment {fragment.id} reads {name}, which does not feed it")
            visit(producer)
        open_ids.pop()
        done[fragment.id] = fragment

    for fragment in bundle.fragments:
        visit(fragment)
    here = {fragment.id for fragment in bundle.at(site)}
    return [fragment for name, fragment in done.items() if name in here]


def depth_of(bundle: FragmentBundle) -> int:
    """Return the number of fragments on the longest way through a bundle that has no circle.

    It grows along feeds: a bundle has a copy of all that computes a result that it reads.
    """
    by_id = {fragment.id: fragment for fragment in bundle.fragments}
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            depths[name] = 1 + max(map(depth, by_id[name].inputs), default=0)
        return depths[name]

    return max(map(depth, by_id), default=0)


class Links:
    """The channels of one site in a plan.

    Both ends of a channel derive its ports from the same bundle in the same order.

    Attributes:
        incoming: Number of columns by (sending site, port); 0 for a recursion.
        outgoing: Ports by destination.
    """

    def __init__(self, bundle: FragmentBundle, site: str, recursions: Iterable[str]) -> None:
        self.incoming: dict[tuple[str, str], int] = {}
        self.outgoing: dict[str, list[str]] = {}
        self._site = site
        self._recursions = tuple(recursions)
        for fragment in bundle.own:
            self._add(fragment)

    def _add(self, fragment: Fragment) -> None:
        destinations = fragment.destinations if fragment.consumer else (RESULT,)
        if not destinations:
            raise InternalError(f"fragment {fragment.id} feeds {fragment.consumer} at no site")
        here = self._site in fragment.sites
        if here:
            self._send(fragment.id, destinations)
        if self._site in destinations:
            self._take(fragment.id, fragment.sites, len(fragment.plan.schema))
        if here:
            for port in self._recursions:
                if port.partition("/")[0] == fragment.id:
                    self._send(port, fragment.sites)
                    self._take(port, fragment.sites, 0)

    def _send(self, port: str, destinations: Iterable[str]) -> None:
        for destination in destinations:
            if destination != self._site:
                self.outgoing.setdefault(destination, []).append(port)

    def _take(self, port: str, senders: Iterable[str], width: int) -> None:
        for sender in senders:
            if sender != self._site:
                self.incoming[(sender, port)] = width


def longest_idle(bundle: FragmentBundle) -> int | None:
    """Return for how long any site may be idle, in microseconds; None without end."""
    times = [
        node.ttl
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan) and node.part == ScanPart.PROGRESS
    ]
    bounds = [time for time in times if time is not None]
    return max(bounds) if bounds and len(bounds) == len(times) else None
