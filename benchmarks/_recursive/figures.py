"""Figures 10 to 18 of Liu's thesis (chapter 3), run again on this engine."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks._recursive.overheads import PATHS, recursion_of
from benchmarks._recursive.virtual_network import Costs, VirtualNetwork
from benchmarks._recursive.workloads import w2
from stream_engine.provenance.bdd import BddEncoding
from stream_engine.recursion.absorption import Shipping
from stream_engine.recursion.options import RecursionOptions
from stream_engine.recursion.testing import reachable, region
from stream_engine.simulation.topologies import TransitStub, transit_stub
from streamsql.algebra.operators import AggregateSelection, Best, Fixpoint
from streamsql.data.types import Row
from streamsql.errors import RecursionLimitError

SITES = 12
WIDE = 1_000_000
"""No bound on the width of annotations: the paper had none."""

DRED = RecursionOptions(strategy="dred")
ABSORPTION = RecursionOptions(strategy="absorption", annotations="bdd", width=WIDE)
EAGER = replace(ABSORPTION, shipping=Shipping.EAGER)
RELATIVE = RecursionOptions(strategy="relative", annotations="relative", width=WIDE)
RELATIVE_EAGER = replace(RELATIVE, shipping=Shipping.EAGER)
WITNESS = RecursionOptions(strategy="absorption", way="witness")

INSERTING = {
    "DRed": DRED,
    "relative eager": RELATIVE_EAGER,
    "relative lazy": RELATIVE,
    "absorption eager": EAGER,
    "absorption lazy": ABSORPTION,
    "witness (ours)": WITNESS,
}
DELETING = {name: o for name, o in INSERTING.items() if name != "relative eager"}

Runs = dict[str, dict[float, list[Costs]]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the paper.

    Attributes:
        number: Its number in the thesis.
        title: What it shows.
        x_label: The horizontal axis.
        run: From seeds and a time limit in seconds per run to costs.
        claim: What the paper says, in our words.
    """

    number: int
    title: str
    x_label: str
    run: Callable[["Plan"], Runs]
    claim: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run.

    Attributes:
        seeds: One run each.
        limit: Seconds of processor time after which a run counts as not finished.
        quick: Fewer points.
        step: Told of every run, for a progress bar.
    """

    seeds: tuple[int, ...]
    limit: float
    quick: bool
    step: Callable[[str], None]


class _Net:
    """A transit-stub network over virtual sites, each with the nodes of some stubs."""

    def __init__(self, net: TransitStub, sites: int, node: Fixpoint, how: RecursionOptions) -> None:
        names = tuple(f"g{number}" for number in range(sites))
        place = {name: names[net.host_of(name, sites)] for name in net.nodes}

        def owner(key: Row, _sites: tuple[str, ...]) -> str:
            return place[str(key[0])]

        self.network = VirtualNetwork(node, names, replace(how, owner=owner))
        self._place = place

    def change(self, rows: Iterable[Row], sign: int) -> None:
        """Insert or delete links where their sources live."""
        by_site: dict[str, dict[Row, int]] = {}
        for row in rows:
            by_site.setdefault(self._place[str(row[0])], {})[row] = sign
        for site, delta in by_site.items():
            self.network.apply(site, 0, delta)


def _links(net: TransitStub, seed: int) -> list[Row]:
    rows: list[Row] = [(link.source, link.target, link.latency) for link in net.links]
    random.Random(seed).shuffle(rows)
    return rows


def _net(seed: int, *, links: int = 400, sparse: bool = False) -> TransitStub:
    per_node = 2 if sparse else 4
    return transit_stub(max(1, round(links / (100 * per_node))), per_node, seed=seed)


def inserting(plan: Plan) -> Runs:
    """Insert a fraction of the links (figure 12)."""
    fractions = (0.25, 0.5) if plan.quick else (0.25, 0.5, 0.75, 1.0)
    found: Runs = {}
    for name, how in INSERTING.items():
        for fraction in fractions:
            for seed in plan.seeds:
                net = _net(seed)
                rows = _links(net, seed)
                made = _Net(net, SITES, reachable(), how)
                made.change(rows[: int(fraction * len(rows))], 1)
                finished = made.network.run(plan.limit)
                _note(plan, found, name, fraction, made.network.costs(finished=finished))
            if _never(found[name][fraction]):
                break
    return found


def deleting(plan: Plan) -> Runs:
    """Load all links, then delete some one at a time (figure 13)."""
    counts = (5, 10) if plan.quick else (10, 20, 40)
    found: Runs = {}
    for name, how in DELETING.items():
        for seed in plan.seeds:
            net = _net(seed, links=200 if plan.quick else 400, sparse=plan.quick)
            rows = _links(net, seed)
            made = _Net(net, SITES, reachable(), how)
            made.change(rows, 1)
            finished = made.network.run(2 * plan.limit)
            made.network.reset_costs()
            done = 0
            for count in counts:
                for row in rows[done:count]:
                    if finished:
                        made.change([row], -1)
                        finished = made.network.run(plan.limit)
                done = count
                _note(plan, found, name, count, made.network.costs(finished=finished))
    return found


def regions(plan: Plan) -> Runs:
    """Trigger a fraction of half of the sensors of a grid (figure 14)."""
    fractions = (0.5, 1.0) if plan.quick else (0.25, 0.5, 0.75, 1.0)
    found: Runs = {}
    for name, how in INSERTING.items():
        for fraction in fractions:
            for seed in plan.seeds:
                trace = w2(10, seed=seed)
                sites = tuple(f"g{number}" for number in range(SITES))
                network = VirtualNetwork(region(20.0), sites, how)
                on = trace.triggered[: max(5, int(fraction * len(trace.triggered)))]
                leaves = {leaf.source: port for port, leaf in enumerate(_scans(network))}
                for number, (x, y) in enumerate(trace.places):
                    site = sites[number % SITES]
                    network.apply(site, leaves["sensor"], {(number, float(x), float(y)): 1})
                for number in on:
                    network.apply(sites[number % SITES], leaves["triggered"], {(number,): 1})
                for number, seed_sensor in enumerate(trace.seeds):
                    site = sites[seed_sensor % SITES]
                    network.apply(site, leaves["seed"], {(number, seed_sensor): 1})
                finished = network.run(plan.limit)
                _note(plan, found, name, fraction, network.costs(finished=finished))
            if _never(found[name][fraction]):
                break
    return found


def density(plan: Plan) -> Runs:
    """Grow the network, dense and sparse, eager and lazy (figure 15)."""
    counts = (200,) if plan.quick else (200, 400, 800)
    found: Runs = {}
    for how_name, how in (("eager", EAGER), ("lazy", ABSORPTION), ("witness (ours)", WITNESS)):
        for sparse in (False, True):
            name = f"{how_name} {'sparse' if sparse else 'dense'}"
            for count in counts:
                for seed in plan.seeds:
                    net = _net(seed, links=count, sparse=sparse)
                    made = _Net(net, SITES, reachable(), how)
                    made.change(_links(net, seed)[:count], 1)
                    finished = made.network.run(plan.limit)
                    _note(plan, found, name, count, made.network.costs(finished=finished))
                if _never(found[name][count]):
                    break
    return found


def query_sites(plan: Plan) -> Runs:
    """Spread the same data over more sites (figure 16)."""
    counts = (4, 8) if plan.quick else (4, 12, 16, 24)
    ways = {"DRed": DRED, "absorption lazy": ABSORPTION, "witness (ours)": WITNESS}
    found: Runs = {}
    for name, how in ways.items():
        for count in counts:
            for seed in plan.seeds:
                net = _net(seed, links=200 if plan.quick else 400, sparse=plan.quick)
                rows = _links(net, seed)
                made = _Net(net, count, reachable(), how)
                made.change(rows, 1)
                finished = made.network.run(plan.limit)
                made.change(rows[:5], -1)
                finished = finished and made.network.run(plan.limit)
                _note(plan, found, name, count, made.network.costs(finished=finished))
    return found


def variable_order(plan: Plan) -> Runs:
    """Let links arrive one by one in random order, under different variable orders (figure 17)."""
    counts = (100, 200) if plan.quick else (80, 160, 240)
    found: Runs = {}
    for shipping in (Shipping.LAZY, Shipping.EAGER):
        for order in ("arrival", "dfs", "rebuild"):
            how = replace(ABSORPTION, shipping=shipping, order=order)
            name = f"{shipping}, {order}"
            for seed in plan.seeds:
                net = _net(seed)
                made = _Net(net, SITES, reachable(), how)
                rows = _links(net, seed)
                finished, done = True, 0
                for count in counts:
                    for row in rows[done:count]:
                        if finished:
                            made.change([row], 1)
                            finished = made.network.run(plan.limit)
                    done = count
                    _note(plan, found, name, count, made.network.costs(finished=finished))
    return found


def selection(plan: Plan) -> Runs:
    """Push no aggregate, one, or both into the recursion over paths (figure 18)."""
    found: Runs = {}
    wanted = {
        "no selection": (),
        "single: hops": (Best(2),),
        "single: cost": (Best(3),),
        "multi: hops and cost": (Best(2), Best(3)),
    }
    for sparse in (True,) if plan.quick else (True, False):
        for name, bests in wanted.items():
            chosen = AggregateSelection((0, 1), bests) if bests else None
            node = _with_selection(recursion_of(PATHS), chosen)
            for seed in plan.seeds:
                net = _net(seed, links=200 if sparse else 400, sparse=sparse)
                made = _Net(net, SITES, node, WITNESS)
                made.change(_links(net, seed), 1)
                finished = _run_or_grow_too_large(made.network, plan.limit)
                x = 2 if sparse else 4
                _note(plan, found, name, x, made.network.costs(finished=finished))
    return found


def _with_selection(node: Fixpoint, chosen: AggregateSelection | None) -> Fixpoint:
    return Fixpoint(node.name, node.columns, node.base, node.step, 200_000, chosen)


def _run_or_grow_too_large(network: VirtualNetwork, limit: float) -> bool:
    try:
        return network.run(limit)
    except RecursionLimitError:  # infinitely many paths: what the figure is about
        return False


def example_sizes() -> dict[str, int]:
    """Return the nodes of the example's diagram in depth-first and in another order (figure 10)."""
    found = {}
    for name, vector in (("depth-first", range(8)), ("breadth-first", (0, 4, 6, 1, 2, 5, 7, 3))):
        encoding = BddEncoding()
        encoding.arrange(tuple(vector))
        function: Any = encoding.false
        for support in ((0, 1), (0, 2, 3), (4, 5), (6, 7, 5)):
            product: Any = encoding.true
            for token in support:
                product = encoding.conjoin(product, encoding.of_token(token))
            function = encoding.disjoin(function, product)
        found[name] = encoding.size(function)
    return found


def _scans(network: VirtualNetwork) -> list[Any]:
    return [_scan(leaf) for leaf in network.operators[network.sites[0]].leaves]


def _scan(plan: Any) -> Any:
    return plan if not plan.inputs else _scan(plan.inputs[0])


def _note(plan: Plan, found: Runs, name: str, x: float, costs: Costs) -> None:
    found.setdefault(name, {}).setdefault(x, []).append(costs)
    plan.step(f"{name}, {x:g}")


def _never(runs: list[Costs]) -> bool:
    """Whether no run finished: larger inputs need not be tried."""
    return not any(run.finished for run in runs)


FIGURES = (
    Figure(
        12,
        "Inserting links: reachable over 12 sites",
        "fraction of 400 links inserted",
        inserting,
        "Without deletions DRed is best; relative provenance costs more than absorption, and its "
        "eager variant does not finish from 0.75 on; lazy absorption is the best with provenance.",
    ),
    Figure(
        13,
        "Deleting links one at a time: reachable over 12 sites",
        "links deleted",
        deleting,
        "DRed is an order of magnitude worse in traffic and time; lazy absorption is best.",
    ),
    Figure(
        14,
        "Triggering sensors: regions over 12 sites",
        "fraction of sensors triggered",
        regions,
        "The same order of schemes as for links, with less overhead on all four metrics.",
    ),
    Figure(
        15,
        "More links, dense and sparse: reachable over 12 sites",
        "links",
        density,
        "Eager does not finish dense networks of 800 links in five minutes; lazy takes seconds.",
    ),
    Figure(
        16,
        "More sites: reachable over 400 links, then five deletions",
        "sites",
        query_sites,
        "Work, traffic and state a site fall; time rises from 16 to 24 sites, as the second "
        "cluster hangs on a slow link.",
    ),
    Figure(
        17,
        "Variable order under random arrival: reachable over 12 sites",
        "links inserted one by one",
        variable_order,
        "Depth-first order saves up to half of the provenance, at about the same time.",
    ),
    Figure(
        18,
        "Aggregate selection: paths with hops and costs over 12 sites",
        "links a node (2 sparse, 4 dense)",
        selection,
        "Without selection nothing finishes on dense networks; selection saves at least ten times; "
        "both aggregates together cost half of one.",
    ),
)
