"""Networks of sites that own links, for recursions; and what may happen to their sites."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from typing_extensions import override

from stream_engine.simulation.fragmentations import everywhere
from stream_engine.simulation.network import Faults, Network
from stream_engine.testing.recursion_programs import LINK
from streamsql.algebra.operators import Fixpoint, Plan, Scan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate

SITES = ("gw-1", "gw-2", "base")


class LinkNetwork(ABC):
    """A network of sites, one recursion over the links of all of them, and its reference."""

    def __init__(self, plan: Plan, seed: int, faults: Faults, link: Scan = LINK) -> None:
        self.random = random.Random(seed)
        self.plan = plan
        self.network = Network(SITES, seed=seed, faults=faults)
        for site in SITES:
            self.network.declare(site, link)
        self.network.install(everywhere(plan, SITES))

    @abstractmethod
    def change(self) -> None:
        """Let a site that is there tell of one of its links."""

    @abstractmethod
    def events_of(self, site: str) -> list[SourceEvent]:
        """Return what a site's devices tell again after its restart."""

    def run(self, actions: int) -> None:
        """Change links among deliveries and steps."""
        for _ in range(actions):
            if self.random.random() < 0.3:
                self.change()
            else:
                self.network.act()

    def kill_one(self) -> str:
        """Kill a site; return its name."""
        site = self.random.choice(SITES)
        self.network.kill(site, in_flight_survives=self.random.random() < 0.5)
        return site

    def come_back(self, site: str) -> None:
        """Restart a site; its devices tell it again what they know."""
        self.network.restart(site)
        self.network.ingest(site, "link", self.events_of(site))

    def check(self, without: str = "") -> None:
        """Compare the answer with the reference over the links of all sites but one."""
        self.network.settle()
        assert self.network.failures == []
        database = Database()
        for site in SITES:
            if site != without:
                database.append("link", self.events_of(site))
        assert self.network.result("q") == evaluate(self.plan, database, self.network.now)


class ToggledLinks(LinkNetwork):
    """Sites that own the links leaving some nodes each; a link that is told of again goes."""

    def __init__(self, plan: Fixpoint, seed: int, faults: Faults, links: Sequence[Row]) -> None:
        super().__init__(plan, seed, faults)
        self.links = links
        self.nodes = sorted({str(row[0]) for row in links})
        self.live: dict[str, dict[Row, None]] = {site: {} for site in SITES}

    @override
    def change(self) -> None:
        row = self.random.choice(self.links)
        site = SITES[self.nodes.index(str(row[0])) % len(SITES)]
        if site in self.network.sites:
            is_live = row in self.live[site]
            self.network.ingest(site, "link", [SourceEvent(row, 0, delete=is_live)])
            if is_live:
                del self.live[site][row]
            else:
                self.live[site][row] = None

    @override
    def events_of(self, site: str) -> list[SourceEvent]:
        return [SourceEvent(row, 0) for row in self.live[site]]


Happening = Callable[[LinkNetwork], None]


def nothing(_links: LinkNetwork) -> None:
    """All sites stay."""


def death_and_return(links: LinkNetwork) -> None:
    """A site dies; later it begins anew with what its devices know."""
    site = links.kill_one()
    links.run(links.random.randrange(30))
    links.come_back(site)
    links.run(20)


def disconnection(links: LinkNetwork) -> None:
    """A site is held for dead, and returns as it was."""
    links.network.disconnect(links.random.choice(SITES))
    links.run(20)


def reinstallation(links: LinkNetwork) -> None:
    """A site loses the query and gets it again.

    Its peers know tokens of the same epoch, which must not mean other rows now.
    """
    site = links.random.choice(SITES)
    links.network.sites[site].uninstall("q")
    links.run(links.random.randrange(30))
    links.network.install(everywhere(links.plan, SITES), at=[site])
    links.run(20)
