"""Figures 10 to 18 of Liu's thesis (chapter 3), run again on this engine."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks._recursive.overheads import PATHS, recursion_of
from benchmarks._recursive.trials import SITES, Change, Links, Plan, Runs, Series, Setup, Trial
from benchmarks._recursive.virtual_network import VirtualNetwork
from benchmarks._recursive.workloads import SensorTrace, w2
from stream_engine.provenance.bdd import BddEncoding
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_programs import reachable, region
from streamsql.algebra.choices import Annotations, Shipping, Strategy, Way
from streamsql.algebra.operators import AggregateSelection, Best, Fixpoint
from streamsql.data.types import Row

WIDE = 1_000_000
"""No bound on the width of annotations: the paper had none."""

DRED = RecursionOptions(strategy=Strategy.DRED)
ABSORPTION = RecursionOptions(strategy=Strategy.ABSORPTION, annotations=Annotations.BDD, width=WIDE)
EAGER = replace(ABSORPTION, shipping=Shipping.EAGER)
RELATIVE = RecursionOptions(
    strategy=Strategy.RELATIVE, annotations=Annotations.RELATIVE, width=WIDE
)
RELATIVE_EAGER = replace(RELATIVE, shipping=Shipping.EAGER)
WITNESS = RecursionOptions(strategy=Strategy.ABSORPTION, way=Way.WITNESS)

INSERTING = {
    "DRed": DRED,
    "relative eager": RELATIVE_EAGER,
    "relative lazy": RELATIVE,
    "absorption eager": EAGER,
    "absorption lazy": ABSORPTION,
    "witness (ours)": WITNESS,
}
DELETING = {name: o for name, o in INSERTING.items() if name != "relative eager"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the thesis.

    Attributes:
        number: Its number in the thesis.
        title: What it shows.
        x_label: The horizontal axis.
        run: Makes the runs of one set-up.
        setups: In which it is run.
    """

    number: int
    title: str
    x_label: str
    run: Callable[[Plan, Setup], Runs]
    setups: tuple[Setup, ...] = (Setup.ONE_BY_ONE,)


def inserting(plan: Plan, setup: Setup) -> Runs:
    """Insert a fraction of the links (figure 12)."""
    found: Runs = {}
    for name, how in INSERTING.items():
        series = Series(plan, found, name, plan.points((0.25, 0.5), (0.25, 0.5, 0.75, 1.0)))
        for seed in plan.seeds:
            net = Links(seed, setup)

            def rows(trial: Trial, fraction: float, net: Links = net) -> list[Change]:
                count = int(fraction * len(net.rows))
                return list(net.changes(trial, net.rows[:count], 1))

            def start(net: Links = net, how: RecursionOptions = how) -> Trial:
                return net.trial(plan, reachable(), how)

            _fill(series, seed, setup, start, rows)
    return found


def _fill(
    series: Series,
    seed: int,
    setup: Setup,
    start: Callable[[], Trial],
    rows: Callable[[Trial, float], list[Change]],
) -> None:
    """Run the points of a seed: one by one they lie on one run; in a batch each is one."""
    trial, done = start(), 0
    for point in series.points():
        if setup is Setup.ONE_BATCH:
            trial, done = start(), 0
        wanted = rows(trial, point)
        trial.change(wanted[done:], setup)
        done = len(wanted)
        series.note(point, seed, trial)


def deleting(plan: Plan, setup: Setup) -> Runs:
    """Load all links, then delete some one at a time (figure 13)."""
    found: Runs = {}
    for name, how in DELETING.items():
        series = Series(plan, found, name, plan.points((5, 10), (10, 20, 40)))
        for seed in plan.seeds:
            net = Links(seed, setup, links=200 if plan.quick else 400, sparse=plan.quick)
            trial = net.trial(plan, reachable(), how)
            trial.change(net.changes(trial, net.rows, 1), Setup.ONE_BATCH)
            trial.network.reset_costs()  # what counts begins with the first deletion
            done = 0
            for count in series.points():
                gone = net.rows[done : int(count)]
                trial.change(net.changes(trial, gone, -1), Setup.ONE_BY_ONE)
                done = int(count)
                series.note(count, seed, trial)
    return found


def regions(plan: Plan, setup: Setup) -> Runs:
    """Trigger a fraction of half of the sensors of a grid (figure 14)."""
    found: Runs = {}
    for name, how in INSERTING.items():
        series = Series(plan, found, name, plan.points((0.5, 1.0), (0.25, 0.5, 0.75, 1.0)))
        for seed in plan.seeds:
            trace = w2(10, seed=seed)

            def rows(trial: Trial, fraction: float, trace: SensorTrace = trace) -> list[Change]:
                on = trace.triggered[: max(5, int(fraction * len(trace.triggered)))]
                return list(_sensor_changes(trial, trace, on))

            def start(how: RecursionOptions = how) -> Trial:
                return Trial(region(20.0), SITES, how, plan.limit)

            _fill(series, seed, setup, start, rows)
    return found


def _sensor_changes(trial: Trial, trace: SensorTrace, on: Iterable[int]) -> Iterator[Change]:
    """Yield what makes regions: all sensors, the seeds, then those that are triggered."""
    leaves = {leaf.source: port for port, leaf in enumerate(_scans(trial.network))}

    def change(leaf: str, sensor: int, row: Row) -> Change:
        return Change(trial.sites[sensor % SITES], leaves[leaf], row, 1)

    for number, (x, y) in enumerate(trace.places):
        yield change("sensor", number, (number, float(x), float(y)))
    for number, sensor in enumerate(trace.seeds):
        yield change("seed", sensor, (number, sensor))
    for number in on:
        yield change("triggered", number, (number,))


def density(plan: Plan, setup: Setup) -> Runs:
    """Grow the network, dense and sparse, eager and lazy (figure 15)."""
    found: Runs = {}
    for how_name, how in (("eager", EAGER), ("lazy", ABSORPTION), ("witness (ours)", WITNESS)):
        for sparse in (False, True):
            name = f"{how_name} {'sparse' if sparse else 'dense'}"
            series = Series(plan, found, name, plan.points((200,), (200, 400, 800)))
            for seed in plan.seeds:
                for count in series.points():
                    net = Links(seed, setup, links=int(count), sparse=sparse)
                    trial = net.trial(plan, reachable(), how)
                    trial.change(net.changes(trial, net.rows[: int(count)], 1), setup)
                    series.note(count, seed, trial)
    return found


def query_sites(plan: Plan, setup: Setup) -> Runs:
    """Spread the same data over more sites (figure 16)."""
    ways = {"DRed": DRED, "absorption lazy": ABSORPTION, "witness (ours)": WITNESS}
    found: Runs = {}
    for name, how in ways.items():
        series = Series(plan, found, name, plan.points((4, 8), (4, 12, 16, 24)))
        for seed in plan.seeds:
            for count in series.points():
                links = 200 if plan.quick else 400
                net = Links(seed, setup, links=links, sparse=plan.quick, sites=int(count))
                trial = net.trial(plan, reachable(), how)
                trial.change(net.changes(trial, net.rows, 1), setup)
                trial.change(net.changes(trial, net.rows[:5], -1), setup)
                series.note(count, seed, trial)
    return found


def variable_order(plan: Plan, setup: Setup) -> Runs:
    """Let links arrive in random order, under different variable orders (figure 17)."""
    found: Runs = {}
    for shipping in (Shipping.LAZY, Shipping.EAGER):
        for order in ("arrival", "dfs", "rebuild"):
            how = replace(ABSORPTION, shipping=shipping, order=order)
            points = plan.points((100, 200), (80, 160, 240))
            series = Series(plan, found, f"{shipping}, {order}", points)
            for seed in plan.seeds:
                net = Links(seed, setup)
                trial = net.trial(plan, reachable(), how)
                done = 0
                for count in series.points():
                    trial.change(net.changes(trial, net.rows[done : int(count)], 1), setup)
                    done = int(count)
                    series.note(count, seed, trial)
    return found


def selection(plan: Plan, setup: Setup) -> Runs:
    """Push no aggregate, one, or both into the recursion over paths (figure 18)."""
    found: Runs = {}
    wanted = {
        "no selection": (),
        "single: hops": (Best(2),),
        "single: cost": (Best(3),),
        "multi: hops and cost": (Best(2), Best(3)),
    }
    for name, bests in wanted.items():
        chosen = AggregateSelection((0, 1), bests) if bests else None
        node = _with_selection(recursion_of(PATHS), chosen)
        for per_node in plan.points((2,), (2, 4)):
            series = Series(plan, found, name, (per_node,))
            for seed in plan.seeds:
                for point in series.points():
                    net = Links(seed, setup, links=int(100 * per_node), sparse=per_node == 2)
                    trial = net.trial(plan, node, WITNESS)
                    trial.change(net.changes(trial, net.rows, 1), setup)
                    series.note(point, seed, trial)
    return found


def _with_selection(node: Fixpoint, chosen: AggregateSelection | None) -> Fixpoint:
    return Fixpoint(node.name, node.columns, node.base, node.step, 200_000, chosen)


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


FIGURES = (
    Figure(
        12,
        "Inserting links: reachable over 12 sites",
        "fraction of 400 links inserted",
        inserting,
        tuple(Setup),
    ),
    Figure(13, "Deleting links one at a time: reachable over 12 sites", "links deleted", deleting),
    Figure(
        14,
        "Triggering sensors: regions over 12 sites",
        "fraction of sensors triggered",
        regions,
        tuple(Setup),
    ),
    Figure(
        15,
        "More links, dense and sparse: reachable over 12 sites",
        "links",
        density,
        tuple(Setup),
    ),
    Figure(16, "More sites: reachable over 400 links, then five deletions", "sites", query_sites),
    Figure(
        17,
        "Variable order under random arrival: reachable over 12 sites",
        "links inserted",
        variable_order,
    ),
    Figure(
        18,
        "Aggregate selection: paths with hops and costs over 12 sites",
        "links a node (2 sparse, 4 dense)",
        selection,
    ),
)
