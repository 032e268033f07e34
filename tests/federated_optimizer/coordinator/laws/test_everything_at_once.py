"""Whatever happens to the network and the sites: in the end the answer is the one from scratch."""

import asyncio
import random
from typing import Any

import pytest

from host.mqtt.in_memory import Faults

ROOMS = "SELECT rid, status FROM RoomSensor"
REACH = """
WITH RECURSIVE reach (src, dst) AS (
  SELECT src, dst FROM Link
  UNION SELECT r.src, l.dst FROM reach r JOIN Link l ON r.dst = l.src)
SELECT src, dst FROM reach
"""
GATEWAYS = ("gw-1", "gw-2", "gw-3")
NODES = "abcdef"
ACTIONS = 60


class Building:
    """What the gateways' present lives have told, and the disasters."""

    def __init__(self, federation: Any, seed: int) -> None:
        self.federation = federation
        self.random = random.Random(seed)
        self.links: set[tuple[str, str, str]] = set()
        self.rooms: dict[tuple[str, str], str] = {}

    def change(self, number: int) -> None:
        """A link comes or goes, a room changes."""
        rng, gateway = self.random, self.random.choice(GATEWAYS)
        site = self.federation.sites[gateway]
        # Each node's links belong to one gateway.
        src = rng.choice(NODES[GATEWAYS.index(gateway) :: len(GATEWAYS)])
        dst = rng.choice(NODES)
        gone = (gateway, src, dst) in self.links and rng.random() < 0.5
        site.put("link", (src, dst, 1.0), delete=gone)
        (self.links.discard if gone else self.links.add)((gateway, src, dst))
        room = f"{gateway}-{rng.randrange(4)}"
        site.put("roomsensor", (room, str(number)))
        self.rooms[gateway, room] = str(number)

    async def disaster(self) -> None:
        """Cut a site off, let the broker forget everything, or restart a site."""
        federation, rng = self.federation, self.random
        site = rng.choice((*GATEWAYS, "base"))
        match rng.choice(("cut", "forget", "restart")):
            case "cut":
                federation.broker.cut(site)
                await asyncio.sleep(rng.random() * 0.4)  # time passes: when things happen
                federation.broker.restore(site)
            case "forget":
                federation.broker.stop(forget=True)
                await asyncio.sleep(0.02)  # time passes: when things happen
                federation.broker.start()
            case "restart":
                epoch, role = federation.sites[site].epoch + 1, federation.sites[site].role
                federation.broker.cut(site)
                await federation.sites[site].stop()
                await federation.site(site, role, epoch=epoch)
                self.links = {link for link in self.links if link[0] != site}
                self.rooms = {k: v for k, v in self.rooms.items() if k[0] != site}

    def expected(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Return rooms and reachable pairs, from scratch."""
        edges = {(src, dst) for _, src, dst in self.links}
        reach: set[tuple[str, str]] = set()
        found = edges
        while found - reach:
            reach |= found
            found = {(a, d) for a, b in reach for c, d in edges if b == c}
        return (sorted((room, status) for (_, room), status in self.rooms.items()), sorted(reach))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seed", range(3))
def test_everything_at_once(harness: Any, seed: int) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=3)
        queries = [await harness.start_query(coordinator, text) for text in (ROOMS, REACH)]
        building = Building(federation, seed)
        federation.broker.faults = Faults(reorder=True, duplicate=0.2, lose=0.1)
        for number in range(ACTIONS):
            building.change(number)
            if number % 6 == 5:
                await building.disaster()
            await asyncio.sleep(0.01)
        federation.broker.faults = Faults()
        for site in federation.sites.values():
            site._announce(connected=True)  # as every ten seconds
        for query, rows in zip(queries, building.expected(), strict=True):
            await harness.until_rows(coordinator, query, rows)
            await harness.until(lambda q=query: coordinator.query(q).settled, "settled")
            await harness.until_rows(coordinator, query, rows)

    harness.run(scenario)
