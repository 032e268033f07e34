"""Run a fragmented query once over given events: for tests and comparisons."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stream_engine.simulation.network import Faults, Network, Traffic
from streamsql.algebra.operators import Scan
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True)
class PartitionedRun:
    """The settled result of a run, its traffic, rows of state by site, and deliveries and steps."""

    result: Delta
    traffic: Traffic
    state_rows: dict[str, int]
    actions: int


def run_partitioned(
    bundle: FragmentBundle,
    sources: Mapping[str, Sequence[Scan]],
    moments: Iterable[tuple[int, Sequence[tuple[str, str, SourceEvent]]]],
    *,
    seed: int = 0,
    faults: Faults | None = None,
) -> PartitionedRun:
    """Install a bundle on a simulated network and feed it, settling after every moment.

    Args:
        bundle: Fragments at sites.
        sources: Scans by the site that has them.
        moments: Time, and (site, source, event) triples that happen then.
        seed: Of the interleaving.
        faults: What the network does wrong; nothing by default.

    Raises:
        FederationError: The query failed at a site.
        UnsettledError: The network did not come to rest.
    """
    sites = dict.fromkeys(site for fragment in bundle.fragments for site in fragment.sites)
    network = Network((*sites, *(s for s in sources if s not in sites)), seed=seed, faults=faults)
    for site, scans in sources.items():
        for scan in scans:
            network.declare(site, scan)
    network.install(bundle)
    actions = network.settle()
    for now, events in moments:
        network.advance(now)
        for site, source, event in events:
            network.ingest(site, source, [event])
        actions += network.settle()
    for _site, _query, error in network.failures:
        raise error
    result = network.result(bundle.query)
    return PartitionedRun(result, network.traffic, network.state_rows(), actions)
