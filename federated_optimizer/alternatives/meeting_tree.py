"""Trees of gateways: where parts of an operator meet and are merged on their way to the base.

A gateway sends its part to the site to which fewest hops lead: the base, or a gateway that is
nearer, where it becomes one part with those that have come there before it goes on. Of two trees
the one with fewer hops is taken: the cheapest one to connect all gateways with the base (Prim), cut
off where a part would wait too often to be merged; and one whose meeting gateways are added one by
one for what they save.

The tree of a running query stays as long as its gateways do: another one is another plan.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.pieces import GatewayPiece
from federated_optimizer.alternatives.words import names_text
from federated_optimizer.costs.tree_shares import TreeShare, hops_of, saves_hops
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Parents, Statistics
from federated_optimizer.statistics.wires import MOST_PAIRS, Wires
from streamsql.algebra.operators import Plan, RemoteSource, walk_plan

MAX_LEVELS = 3
"""Hops of a part from site to site; each but the last ends at a gateway that merges."""

MANY = 32
"""Gateways up to which meeting gateways are chosen for what all others save."""

NAMED = 3
"""Gateways that the words of a tree name."""


@dataclass(frozen=True)
class MeetingTree:
    """Gateways by the one to which they send; None: to the base.

    Attributes:
        parents: Of every gateway, in the order of their names.
        is_near: Whether gateways meet where hops are saved; else at one of them.
    """

    parents: Parents
    is_near: bool = True

    @cached_property
    def below(self) -> Mapping[str | None, tuple[str, ...]]:
        """Gateways that send to a gateway, or to the base."""
        found: dict[str | None, tuple[str, ...]] = {}
        for site, parent in self.parents.items():
            found[parent] = (*found.get(parent, ()), site)
        return found

    @property
    def meeting(self) -> tuple[str, ...]:
        """Gateways that merge parts of others."""
        return tuple(site for site in self.parents if site in self.below)

    def leaves(self, parent: str | None) -> tuple[str, ...]:
        """Return the gateways that send their own part only."""
        return tuple(site for site in self.below.get(parent, ()) if site not in self.below)

    def inner(self, parent: str | None) -> tuple[str, ...]:
        """Return the gateways that send a merged part."""
        return tuple(site for site in self.below.get(parent, ()) if site in self.below)

    def size(self, site: str) -> int:
        """Return the number of gateways whose rows are in what a gateway sends."""
        return 1 + sum(map(self.size, self.below.get(site, ())))

    def share(self, part: Plan, senders: tuple[str, ...]) -> TreeShare:
        """Return the parts that some gateways send, each with as many merged into it."""
        merged, gateways = self.size(senders[0]), len(self.parents)
        return TreeShare(part, len(senders), merged, gateways, self.is_near)

    @property
    def words(self) -> str:
        """The meeting gateways, for EXPLAIN."""
        named = names_text(self.meeting[:NAMED])
        more = len(self.meeting) - NAMED
        named += f" and {more} more" if more > 0 else ""
        why = "" if self.is_near else ", as no gateway is nearer to another one than to the base"
        return f"parts of {len(self.parents)} gateways merged at {named} on their way{why}"


def meeting_tree(
    piece: GatewayPiece, topology: Topology, statistics: Statistics
) -> MeetingTree | Refused:
    """Return where parts of a piece's gateways meet, or why they do not."""
    sites = piece.sites
    if len(sites) < 2:
        return Refused("one gateway has all rows")
    if set(sites) & set(topology.bases):
        return Refused("a base site has rows of its own")
    if any(isinstance(node, RemoteSource) for node in walk_plan(piece.plan)):
        return Refused("rows that gateways have exchanged lie by the plan of all of them")
    there = frozenset(site for site in sites if site not in topology.absent)
    if not there:
        return Refused("all gateways that have some are away")
    base, wires = topology.bases[0], statistics.wires
    parents = statistics.devices.trees.get(sites)
    if parents is None or not there.issuperset(MeetingTree(parents).meeting):
        parents = _connected(sites, there, base, wires)
    return MeetingTree(parents, is_near=saves_hops(parents, base, wires))


def _connected(sites: tuple[str, ...], there: frozenset[str], base: str, wires: Wires) -> Parents:
    """Return gateways by the site that they send to: by fewest hops, else all to one of them."""
    nearest = sorted(there, key=lambda site: (wires.between(site, base), site))
    may_meet = nearest[: max(MOST_PAIRS // len(sites), 1)]
    found = _grown(sites, may_meet, base, wires)
    if len(sites) <= MANY:
        found = min(
            found, _chosen(sites, may_meet, base, wires), key=lambda p: hops_of(p, base, wires)
        )
    if any(found.values()):
        return dict(sorted(found.items()))
    return {site: None if site == nearest[0] else nearest[0] for site in sites}


def _grown(sites: tuple[str, ...], may_meet: list[str], base: str, wires: Wires) -> Parents:
    """Return the tree to which always the nearest gateway is added."""
    level: dict[str, int] = {}
    parents: dict[str, str | None] = {}
    best: dict[str, tuple[float, str | None]] = {
        site: (wires.between(site, base), None) for site in sites
    }
    while best:
        site = min(best, key=lambda each: (best[each][0], each))
        parent = parents[site] = best.pop(site)[1]
        level[site] = 1 if parent is None else level[parent] + 1
        if site in may_meet and level[site] < MAX_LEVELS:
            for other, (hops, _) in best.items():
                if _apart(other, site, wires) < hops:
                    best[other] = _apart(other, site, wires), site
    return parents


def _apart(site: str, meeting: str, wires: Wires) -> float:
    """Return the hops between gateways; of two whose links are not known nobody is near."""
    return wires.hops.get((site, meeting), wires.hops.get((meeting, site), math.inf))


def _chosen(sites: tuple[str, ...], may_meet: list[str], base: str, wires: Wires) -> Parents:
    """Return the tree to which always the meeting gateway is added that saves most hops."""
    level: dict[str, int] = {}
    parents: dict[str, str | None] = dict.fromkeys(sites)
    while True:
        now = {site: wires.between(site, parent or base) for site, parent in parents.items()}
        others = [site for site in sites if site not in level]
        over = (None, *(site for site, at in level.items() if at < MAX_LEVELS - 1))
        best: tuple[float, str, str | None] = (0.0, "", None)
        for site in (each for each in may_meet if each not in level):
            near = {o: _apart(o, site, wires) for o in others if o != site}
            saved = sum(max(now[other] - hops, 0.0) for other, hops in near.items())
            for parent in over:
                up = wires.between(site, base) if parent is None else _apart(site, parent, wires)
                saves = saved + now[site] - up
                if saves > best[0]:
                    best = (saves, site, parent)
        _, meeting, parent = best
        if not meeting:
            return parents
        parents[meeting] = parent
        level[meeting] = 1 if parent is None else level[parent] + 1
        for other in others:
            if other != meeting and _apart(other, meeting, wires) < now[other]:
                parents[other] = meeting
