"""What deletions cost between sites: absorption < relative provenance < delete and rederive.

On half of the sparse network of the literature (two of four transit nodes with their stubs): nearly
a tree. One of the links deleted has a way round: where no row has another derivation, absorption
and relative provenance both send nothing but the dead token, and cost the same.
"""

from collections.abc import Sequence

from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.simulation.topologies import transit_stub
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import reachable
from streamsql.algebra.choices import Strategy
from streamsql.data.types import Row

SITES = ("g0", "g1", "g2", "g3")
NETWORK = transit_stub(1, 2, seed=6)
NODES = set(NETWORK.nodes[:52])
LINKS = sorted(
    (link.source, link.target)
    for link in NETWORK.links
    if link.source in NODES and link.target in NODES
)


class Run:
    """One strategy on the network.

    Attributes:
        loading: Bytes between the sites to insert all links.
        deleting: Bytes to delete some, one by one.
    """

    def __init__(self, strategy: str, deletions: Sequence[tuple[str, str]]) -> None:
        self.ensemble = Ensemble(
            reachable(), SITES, RecursionOptions(strategy=Strategy(strategy)), seed=1
        )
        self.ensemble.run()
        for link in LINKS:
            self._change(link, 1)
        for site in SITES:
            self.ensemble.step(site)
        self.ensemble.run()
        self.loading = self.ensemble.bytes_sent
        self.loaded = self.ensemble.rows()
        for link_ends in deletions:
            self.ensemble.step(self._change(link_ends, -1))
            self.ensemble.run()
        self.deleting = self.ensemble.bytes_sent - self.loading

    def _change(self, link: tuple[str, str], sign: int) -> str:
        site = SITES[NETWORK.host_of(link[0], len(SITES))]
        self.ensemble.apply(site, 0, {(*link, 1): sign})
        return site


def with_a_way_round() -> tuple[str, str]:
    """Return a link whose ends stay connected without it."""
    for source, target in LINKS:
        seen, todo = {source}, [source]
        while todo:
            node = todo.pop()
            for a, b in LINKS:
                if a == node and b not in seen and (a, b) != (source, target):
                    seen.add(b)
                    todo.append(b)
        if target in seen:
            return source, target
    raise AssertionError("a tree")


def test_bytes_of_deletions() -> None:
    deletions = [with_a_way_round(), LINKS[0]]
    runs = {name: Run(name, deletions) for name in ("absorption", "relative", "dred")}
    views: list[set[Row]] = [run.ensemble.rows() for run in runs.values()]
    assert views[0] == views[1] == views[2]
    assert 0 < len(views[0]) < len(runs["dred"].loaded)
    deleting = {name: run.deleting for name, run in runs.items()}
    assert deleting["absorption"] < deleting["relative"] < deleting["dred"]
    assert runs["absorption"].loading < runs["relative"].loading
    assert runs["dred"].loading < runs["relative"].loading
    assert deleting["absorption"] < deleting["dred"] / 16
