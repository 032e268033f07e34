"""Runs that read results of runs, in any graph and order, have the answers of runs alone."""

import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stream_engine.simulation.network import Faults
from stream_engine.simulation.recorded_network import Disk, RecordedNetwork
from stream_engine.testing.fed_bundles import Leaves, bundle_over, fed_again, without
from stream_engine.testing.histories import COLUMNS, SECOND
from stream_engine.testing.plans import plans
from stream_engine.testing.random_bundles import expected_result
from streamsql.algebra.operators import Plan, Scan, SourceKind, Window, transform_up, walk_plan
from streamsql.algebra.streams import keeps_history
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference.reference_database import Database
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

GATEWAYS = ("gw-1", "gw-2")
KEYED = Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0,))
FADING = Scan("fading", SourceKind.STREAM, COLUMNS, key=(0, 1), ttl=4 * SECOND)
SOURCES = (KEYED, FADING)
MOST_RUNS = 6
MOST_FRAGMENTS = 60


def no_window(node: Plan) -> Plan:
    return node.input if isinstance(node, Window) else node


class World:
    """A network on which runs come and go, each with a twin that computes everything itself."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Plan]], Plan], seed: int) -> None:
        self.draw = draw
        self.random = random.Random(seed)
        faults = Faults(loss=0.05, repetition=0.05) if seed % 2 else None
        self.network = RecordedNetwork((*GATEWAYS, "base"), seed=seed, faults=faults)
        self.databases = {site: Database() for site in self.network.sites}
        for gateway in GATEWAYS:
            for scan in SOURCES:
                self.network.declare(gateway, scan)
        self.runs: dict[str, FragmentBundle] = {}
        self.number = 0

    def start(self) -> None:
        """Start a run that reads sources and results of others, and its twin."""
        if len(self.runs) >= MOST_RUNS:
            return
        names = self.random.sample(list(self.runs), min(2, len(self.runs)))
        owners = {f"result_{name}": self.runs[name] for name in names}
        results = [Scan(n, SourceKind.TABLE, o.schema, (0,)) for n, o in owners.items()]
        leaves = self.random.choice((SOURCES, tuple(results) or SOURCES, (*SOURCES, *results)))
        plan = transform_up(self.draw(plans(leaves, depth=self.random.randrange(3))), no_window)
        if any(keeps_history(node) for node in walk_plan(plan)):
            plan = leaves[-1]
        self.number += 1
        name = f"q{self.number}"
        silent = self.random.random() < 0.3
        bundle = bundle_over(name, plan, Leaves(owners, GATEWAYS), silent=silent)
        if len(bundle.fragments) > MOST_FRAGMENTS:
            return
        self.deploy(bundle)
        self.deploy(replace(bundle, query=f"alone {name}", feeds=(), silent=False))

    def deploy(self, *bundles: FragmentBundle) -> None:
        """Install bundles at all sites, in an order of each site's own."""
        for bundle in bundles:
            if not bundle.query.startswith("alone"):
                self.runs[bundle.query] = bundle
        for site in self.network.sites:
            for bundle in self.random.sample(bundles, len(bundles)):
                self.network.install(bundle, at=(site,))
                if self.random.random() < 0.2:
                    self.act()

    def readers(self, name: str) -> list[FragmentBundle]:
        return [b for b in self.runs.values() if any(f.run == name for f in b.feeds)]

    def replaced(self, first: list[FragmentBundle]) -> list[FragmentBundle]:
        """Return new versions with those of all that read them, and so on."""
        found = {bundle.query: bundle for bundle in first}
        waiting = list(found)
        while waiting:
            name = waiting.pop(0)
            for reader in self.readers(name):
                known = found.get(reader.query, reader)
                found[reader.query] = fed_again(known, found[name])
                waiting.append(reader.query)
        return list(found.values())

    def stop(self) -> None:
        """Stop a run; those that it fed compute what it did themselves."""
        if not self.runs:
            return
        name = self.random.choice(list(self.runs))
        first_stops = self.random.random() < 0.5
        heirs = [without(reader, name) for reader in self.readers(name)]
        del self.runs[name]
        if first_stops:
            self.network.uninstall(name)
            self.act()
        self.deploy(*self.replaced(heirs))
        self.act()
        if not first_stops:
            self.network.uninstall(name)
        self.network.uninstall(f"alone {name}")

    def redeploy(self) -> None:
        """Deploy a run and all that rests on it once more."""
        if self.runs:
            chosen = self.random.choice(list(self.runs.values()))
            self.deploy(*self.replaced([replace(chosen, version=chosen.version + 1)]))

    def forget(self) -> None:
        """The base loses a run, and gets it again as it was; its readers stay installed."""
        if self.runs:
            chosen = self.random.choice(list(self.runs.values()))
            self.network.sites["base"].uninstall(chosen.query)
            self.act()
            self.network.install(chosen, at=("base",))

    def die(self) -> None:
        """A site dies and comes back; a gateway has nothing then."""
        site = self.random.choice((*GATEWAYS, "base"))
        self.network.kill(site, in_flight_survives=self.random.random() < 0.5)
        del self.databases[site]
        self.act()
        if site != "base" and self.random.random() < 0.5:
            self.check()
        self.network.disks[site] = Disk()
        self.network.restart(site)
        self.databases[site] = Database()

    def crash(self) -> None:
        """A site crashes and comes back as its disk says."""
        site = self.random.choice((*GATEWAYS, "base", "base"))
        if self.random.random() < 0.5:
            self.network.save(site)
            self.act()
        restored = self.network.crash(site, in_flight_survives=self.random.random() < 0.5)
        assert (restored.unsaved, restored.complaints, restored.cut) == ({}, [], "")

    def disconnect(self) -> None:
        """A gateway is held for dead, and lives."""
        self.network.disconnect(self.random.choice(GATEWAYS))

    def configure(self) -> None:
        """The base runs whole queries, or operators by any policy and in any slice."""
        chance = self.random
        settings = SiteSettings(
            scheduler=chance.choice(list(SchedulerKind)),
            slice_ms=chance.choice((None, 1.0, 3.0)),
            queue_rows=chance.choice((1, 10, 100_000)),
        )
        self.network.sites["base"].configure(chance.choice((settings, SiteSettings())))

    def read(self) -> None:
        gateway, now = self.random.choice(GATEWAYS), self.network.now
        scan = self.random.choice(SOURCES)
        row: Row = (
            self.random.choice(("a", "b", "c", None)),
            self.random.choice((0, 1, 2, None)),
            self.random.choice((0.1, 1e16, -1e16, -0.0, None)),
        )
        event = SourceEvent(row, now, delete=self.random.random() < 0.2)
        self.network.ingest(gateway, scan.source, [event])
        self.databases[gateway].append(scan.source, [event])

    def act(self) -> None:
        for _ in range(self.random.randrange(12)):
            self.network.act()

    def advance(self) -> None:
        self.network.advance(self.network.now + self.random.choice((SECOND, 3 * SECOND)))

    def check(self) -> None:
        """Compare every result with that of the twin, and with an evaluation from scratch."""
        self.network.settle()
        assert not self.network.failures
        for name, bundle in self.runs.items():
            expected = expected_result(bundle, self.databases, self.network.now)
            assert self.network.result(name) == expected, bundle
            assert self.network.result(f"alone {name}") == expected
            flow = self.network.sites["base"].flow(name)
            assert flow is not None
            assert not flow.busy


@given(data=st.data(), seed=st.integers(0, 2**32))
def test_any_graph_of_runs(data: st.DataObject, seed: int) -> None:
    world = World(data.draw, seed)
    rare = (world.stop, world.redeploy, world.forget, world.die, world.crash, world.disconnect)
    often = (world.start, world.configure, world.advance, *(world.read,) * 8, *(world.act,) * 4)
    for _ in range(4):
        world.start()
        for _ in range(10):
            world.random.choice((*rare, *often))()
        world.check()
