"""Runs of an experiment: sites that take changes in one of two set-ups while their time lasts."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks._recursive.virtual_network import Costs, VirtualNetwork
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.simulation.topologies import TransitStub, transit_stub
from streamsql.algebra.operators import Fixpoint
from streamsql.data.types import Row
from streamsql.errors import RecursionLimitError
from streamsql.wire.bundles.partitioning import site_of

SITES = 12

Runs = dict[str, dict[float, list["Run"]]]
"""Scheme -> x -> one run a seed."""


class Setup(StrEnum):
    """How rows arrive and where nodes live."""

    ONE_BY_ONE = "one by one, nodes by hash"
    """As in the thesis: every change comes to rest alone; a hash places a node."""
    ONE_BATCH = "one batch, nodes by stub"
    """Neighbours share a site, and all rows arrive at once: the least that has to travel."""


@dataclass(frozen=True, slots=True)
class Run:
    """Costs of one seed; of a run that did not finish, its costs until then."""

    seed: int
    costs: Costs


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run.

    Attributes:
        seeds: One run each.
        limit: Seconds of processor time after which a run counts as not finished.
        give_up: Runs after which a point that none of them finished is left.
        quick: Fewer points.
        step: Told of every run, for a progress bar.
    """

    seeds: tuple[int, ...]
    limit: float
    give_up: int
    quick: bool
    step: Callable[[str], None]

    def points(self, quick: tuple[float, ...], full: tuple[float, ...]) -> tuple[float, ...]:
        """Return the points of the horizontal axis."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Change:
    """A row of a leaf that comes (+1) or goes (-1) at a site."""

    site: str
    leaf: int
    row: Row
    sign: int


class Trial:
    """One run: sites that take changes for as long as their processor time lasts."""

    def __init__(self, node: Fixpoint, sites: int, how: RecursionOptions, limit: float) -> None:
        self.sites = tuple(f"g{number}" for number in range(sites))
        self.network = VirtualNetwork(node, self.sites, how)
        for site in self.sites:  # DRed's sites agree first on who takes part
            self.network.apply(site, 0, {})
        self.network.run(limit)
        self.network.reset_costs()
        self._left = limit
        self._finished = True
        self._stopped: Costs | None = None

    def change(self, changes: Iterable[Change], setup: Setup) -> None:
        """Make changes, each brought to rest alone or all at once."""
        todo = list(changes)
        for group in ([c] for c in todo) if setup is Setup.ONE_BY_ONE else [todo]:
            if not self._finished:
                return
            deltas: dict[tuple[str, int], dict[Row, int]] = {}
            for change in group:
                deltas.setdefault((change.site, change.leaf), {})[change.row] = change.sign
            for (site, leaf), delta in deltas.items():
                self.network.apply(site, leaf, delta)
            self._finished = self._rests()

    def _rests(self) -> bool:
        began = time.process_time()
        try:
            return self.network.run(self._left)
        except RecursionLimitError:  # infinitely many paths: what figure 18 is about
            return False
        finally:
            self._left -= time.process_time() - began

    def costs(self) -> Costs:
        """Return the costs so far."""
        if self._finished:
            return self.network.costs(finished=True)
        if self._stopped is None:
            self._stopped = self.network.costs(finished=False)
        return self._stopped


def _placed(net: TransitStub, sites: int, setup: Setup) -> Callable[[Row, tuple[str, ...]], str]:
    """Return the owner of a key: the product's hash, or the site of the node's stub."""
    if setup is Setup.ONE_BY_ONE:
        return site_of
    place = {name: net.host_of(name, sites) for name in net.nodes}
    return lambda key, _members: f"g{place[str(key[0])]}"


class Links:
    """A shuffled transit-stub network over some sites."""

    def __init__(
        self, seed: int, setup: Setup, *, links: int = 400, sparse: bool = False, sites: int = SITES
    ) -> None:
        per_node = 2 if sparse else 4
        net = transit_stub(max(1, round(links / (100 * per_node))), per_node, seed=seed)
        self.rows: list[Row] = [(link.source, link.target, link.latency) for link in net.links]
        random.Random(seed).shuffle(self.rows)
        self._owner = _placed(net, sites, setup)
        self._sites = sites

    def trial(self, plan: Plan, node: Fixpoint, how: RecursionOptions) -> Trial:
        """Return the sites, without links."""
        return Trial(node, self._sites, replace(how, owner=self._owner), plan.limit)

    def changes(self, trial: Trial, rows: Iterable[Row], sign: int) -> Iterator[Change]:
        """Yield changes of links where their sources live."""
        for row in rows:
            yield Change(self._owner((row[0],), trial.sites), 0, row, sign)


class Series:
    """Runs of one scheme, point by point; points that nobody finishes are left."""

    def __init__(self, plan: Plan, found: Runs, name: str, points: tuple[float, ...]) -> None:
        self._plan, self._name = plan, name
        self._runs = found.setdefault(name, {})
        self._points = points

    def points(self) -> Iterator[float]:
        """Yield the points that are worth another run."""
        for point in self._points:
            runs = self._runs.get(point, [])
            if len(runs) >= self._plan.give_up and not any(run.costs.finished for run in runs):
                return
            yield point

    def note(self, point: float, seed: int, trial: Trial) -> None:
        """Keep what a run has cost up to a point."""
        self._runs.setdefault(point, []).append(Run(seed, trial.costs()))
        self._plan.step(f"{self._name}, {point:g}")
