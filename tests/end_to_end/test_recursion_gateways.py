"""One recursion over twelve real gateway processes, in three ways at once, through every fault.

A user's query goes through the coordinator; links of a transit-stub network are spread over the
gateways by node. After each fault the settled answers equal the reference evaluator's.
"""

import asyncio
import signal
from pathlib import Path

import pytest

from benchmarks._fleet import LINK_SOURCE, Fleet, Link
from broker.broker_testing import BrokerProcess
from stream_engine.simulation.topologies import transit_stub
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.end_to_end.federation import PATIENCE
from tests.streamsql.from_text import bound_query, catalog_of

pytestmark = pytest.mark.end_to_end  # 45 s on two busy cores, most of it starting processes

GATEWAYS = 12
WAYS = ("witness", "flood", "centre")
TEXT = "SELECT src, dst FROM reachable WITH (way = '{}')"


def reference(links: set[Link]) -> set[Row]:
    """Return what the query means over these links."""
    catalog = catalog_of(LINK_SOURCE, library=True)
    bound = bound_query("SELECT src, dst FROM reachable", catalog)
    database = Database()
    database.append("link", [SourceEvent(link, 1) for link in sorted(links)])
    return set(evaluate(bound.plan, database, 2))


class World:
    """The fleet, its three queries, and what they must be."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.queries: dict[str, str] = {}

    async def begin(self) -> None:
        """Start the queries."""
        for way in WAYS:
            self.queries[way] = await self.fleet.query(TEXT.format(way))
        await self.right("everything is built")

    async def right(self, what: str) -> None:
        """Wait until every answer is settled and right."""
        wanted = reference(self.fleet.links)

        def good() -> bool:
            return all(
                self.fleet.info(query).settled and self.fleet.rows(query) == wanted
                for query in self.queries.values()
            )

        try:
            await self.fleet.until(good, what, PATIENCE)
        except TimeoutError as error:
            state = {
                way: (len(self.fleet.rows(q) ^ wanted), self.fleet.info(q))
                for way, q in self.queries.items()
            }
            raise AssertionError(f"{what}: {state}") from error

    def claims_settled(self) -> bool:
        """Whether any answer is said to be settled."""
        return any(self.fleet.info(query).settled for query in self.queries.values())

    def snapshots(self, way: str, but: str) -> int:
        """Return how many batches of snapshots all sites but one have sent for a query so far."""
        traffic = self.fleet.coordinator.explain(self.queries[way]).data["traffic"]
        return sum(int(counts["snapshots"]) for site, counts in traffic.items() if site != but)


@pytest.mark.timeout(900)
def test_the_answer_is_right_after_every_fault(tmp_path: Path) -> None:
    net = transit_stub(1, 2, seed=5)
    hosts = {node: f"gw-{net.host_of(node, GATEWAYS):02}" for node in net.nodes}
    links = sorted((link.source, link.target, float(link.latency)) for link in net.links)
    (tmp_path / "broker").mkdir()

    async def scenario(broker: BrokerProcess) -> None:
        fleet = Fleet(tmp_path, broker.url, hosts, patience=60.0)
        try:
            await fleet.start(links[10:], seconds=120.0)
            await faults(World(fleet), broker, links)
        finally:
            await fleet.stop()

    with BrokerProcess("embedded", tmp_path / "broker") as broker:
        asyncio.run(scenario(broker))


async def faults(world: World, broker: BrokerProcess, links: list[Link]) -> None:
    """Go through it all."""
    fleet = world.fleet
    await world.begin()
    assert len(fleet.rows(world.queries["flood"])) > 1_000

    fleet.change(up=links[:10], down=links[20:24])
    await world.right("links come and go")

    victim = fleet.sites["gw-03"]
    before = world.snapshots("witness", but="gw-03")
    victim.kill()
    mine = [link for link in sorted(fleet.links) if fleet.hosts[link[0]] == "gw-03"]
    fleet.edit("gw-03", mine[:2])
    fleet.change(down=[next(link for link in links[40:] if fleet.hosts[link[0]] == "gw-05")])
    victim.start()
    await world.right("a killed gateway is back with fewer links")
    # A process counts from its start, so the victim's own counts are back at zero; and counts
    # come with reports, a little after the answer.
    await fleet.until(
        lambda: world.snapshots("witness", but="gw-03") > before,
        "the others have sent the victim what it forgot",
        PATIENCE,
    )

    slow = fleet.sites["gw-07"]
    slow.signal(signal.SIGSTOP)
    others = [link for link in links[60:100] if fleet.hosts[link[0]] != "gw-07"]
    fleet.change(down=[link for link in others[::10] if link in fleet.links])
    await fleet.until(lambda: not world.claims_settled(), "it is waited for", PATIENCE)
    slow.signal(signal.SIGCONT)
    await world.right("a site that slept has caught up")

    broker.stop(signal.SIGKILL)
    await fleet.until(lambda: not world.claims_settled(), "nothing is settled", PATIENCE)
    slow.signal(signal.SIGSTOP)
    broker.start()
    # What is sent to a site that does not listen yet is lost: nobody may be taken for back by what
    # was known before, above all not the one that is slow to come.
    await fleet.until(lambda: len(fleet.live()) == len(fleet.sites) - 1, "the others are", PATIENCE)
    assert "gw-07" not in fleet.live()
    (missed,) = [site for site in fleet.coordinator.sites() if site.site == "gw-07"]
    if missed.online:  # else the others took so long that it is given up by now
        assert not world.claims_settled()
    slow.signal(signal.SIGCONT)
    await fleet.until(fleet.all_live, "all sites are back", PATIENCE)
    fleet.change(up=links[20:24])
    await world.right("the broker has lost everything and is back")

    for way, query in world.queries.items():
        explained = fleet.coordinator.explain(query)
        assert explained.data["recursions"][0]["way"] == way
        traffic = explained.data["traffic"]
        assert sum(site["snapshots"] for site in traffic.values()) > 0
        assert sum(site["resync_milliseconds"] for site in traffic.values()) > 0
        # Placed anew once at most: when the coordinator has heard which gateway a node belongs to.
        # None of the faults is a reason.
        assert fleet.info(query).version <= 2
