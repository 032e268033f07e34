"""Costs of all plans of a query, measured by installing each in a simulated federation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import sub

from benchmarks._optimizer.duckdb_rows import by_duckdb, same_rows
from benchmarks._optimizer.known_facts import known_facts
from benchmarks._optimizer.questions import Question
from benchmarks._optimizer.timed_network import TimedNetwork
from benchmarks._optimizer.worlds import BASE, START, STATIC, Readings, World
from federated_optimizer import Topology, colocation_of, normalize, plan
from federated_optimizer.costs.cost import Cost
from federated_optimizer.memo.memo import Memo
from federated_optimizer.search.choosing import PUSHED, Search
from federated_optimizer.statistics.default_facts import SNAPSHOT_SECONDS, TOPIC_BYTES
from stream_engine.simulation.network import CONSOLE
from streamsql.algebra.metrics import Metric, Term
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.binder import BoundQuery, bind_query
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS
from streamsql.reference import Database, evaluate
from streamsql.syntax import Query, parse_statement
from streamsql.wire.fragments import FragmentBundle

MOST_PLANS = 100
"""Of one query that are run: those that push and ship everything, and the cheapest."""

METRICS = {
    Term.BYTES: "bytes",
    Term.MESSAGES: "messages",
    Term.ENERGY: "energy",
    Term.LATENCY: "milliseconds",
}
"""Figures that are measured of a plan and estimated by the optimizer, by the metric."""

MOST_ACTIONS = 2_000_000


@dataclass(frozen=True, slots=True)
class Used:
    """Traffic of a plan between sites, a second.

    Attributes:
        bytes: With the headers of messages.
        messages: Of which there were so many.
        energy: Bytes times the way that each went.
        milliseconds: From a reading to the last row that it changed, the longest time; 0 if none
            changed a row.
    """

    bytes: float
    messages: float
    energy: float
    milliseconds: float

    def of(self, term: Term) -> float:
        """Return what counts for a metric."""
        return float(getattr(self, METRICS[term]))


@dataclass(frozen=True, slots=True)
class Measured:
    """A plan that ran.

    Attributes:
        estimated: By the optimizer.
        used: By the run.
        rows: Its answer at the end.
    """

    number: int
    words: str
    estimated: Cost
    used: Used
    rows: Delta


@dataclass(frozen=True, slots=True)
class Outcome:
    """A query of which plans ran.

    Attributes:
        world: In which.
        chosen: The number of the plan that is taken, by what is to be least; see `METRICS`.
        shipping: The number of the plan that ships everything.
        count: Plans that there are.
        right: Whether all gave the rows of the reference evaluator, and of DuckDB where the text
            means the same there.
    """

    name: str
    world: str
    chosen: Mapping[Term, int]
    shipping: int
    count: int
    plans: tuple[Measured, ...]
    right: bool

    def used(self, number: int) -> Used:
        """Return what a plan sent."""
        return next(each.used for each in self.plans if each.number == number)

    def regret(self, number: int, term: Term = Term.BYTES) -> float:
        """Return the cost of a plan over that of the best one; a unit is nothing."""
        best = min(each.used.of(term) for each in self.plans)
        return (self.used(number).of(term) + 1.0) / (best + 1.0)

    @property
    def above(self) -> float:
        """The bytes of the choice over those of the better of pushing and shipping everything."""
        best = min(self.used(number).bytes for number in (PUSHED, self.shipping))
        return (self.used(self.chosen[Term.BYTES]).bytes + 1.0) / (best + 1.0)


def outcome(question: Question, seed: int) -> Outcome:
    """Run the plans of a query, and compare their rows in full."""
    world = question.world
    readings = world.readings(seed)
    topology = Topology(
        dict.fromkeys(world.gateways, world.heard), colocation=colocation_of(world.catalog)
    )
    bound = bound_in(question.text, world)
    ready = normalize(bound.plan, topology)
    statistics = known_facts(world, ready, readings)
    search = Search(ready, topology, statistics)
    listed = search.alternatives()
    words = {each.number: each.words for each in listed.listed}
    plans = []
    chosen = {
        term: Search(ready, topology, statistics, Metric(((term, 1.0),))).taken().number
        for term in METRICS
    }
    for number in _numbers((*chosen.values(), *words), search.memo):
        bundle = plan(replace(bound, asked=number), topology, query="q", statistics=statistics)
        used, rows = run_plan(world, bundle, readings)
        estimated = search.plan(number).cost
        plans.append(Measured(number, words.get(number, ""), estimated, used, rows))
    wanted = expected_rows(world, bound, readings)
    right = all(each.rows == wanted for each in plans)
    if question.plain:
        right = right and same_rows(wanted, by_duckdb(question.text, world, readings))
    memo = search.memo
    return Outcome(
        question.name, world.name, chosen, memo.shipping, memo.count(), tuple(plans), right
    )


def _numbers(first: Iterable[int], memo: Memo) -> list[int]:
    """Return the plans that are run: those at both ends, some first, and all if they are few."""
    every = range(1, memo.count() + 1) if memo.count() <= MOST_PLANS else ()
    return list(dict.fromkeys((PUSHED, memo.shipping, *first, *every)))[:MOST_PLANS]


def bound_in(text: str, world: World) -> BoundQuery:
    """Return a query over the sources and tables of a world."""
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise TypeError(f"{text!r} is no query")
    return bind_query(statement, world.catalog)


def run_plan(world: World, bundle: FragmentBundle, readings: Readings) -> tuple[Used, Delta]:
    """Return what a plan sends in the counted seconds; tables are sent anew now and then."""
    net = TimedNetwork((*world.gateways, BASE, STATIC), world.distance)
    read = {
        node.source.lower()
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan)
    }
    for definition in (*world.catalog.sources, *world.catalog.tables):
        for site in (STATIC,) if definition.is_table else world.gateways:
            net.declare(site, definition.scan())
    net.advance(START)
    for name in read & set(world.tables):
        rows = [SourceEvent(row, START) for row in world.tables[name]]
        net.ingest(STATIC, world.source(name).name, rows)
    net.install(bundle)
    net.settle(limit=MOST_ACTIONS)
    # At the start rows may be sent twice: at once, and when the receiver asks for them.
    once = _sent(net, world)
    net.send_anew("q", STATIC)
    net.settle(limit=MOST_ACTIONS)
    tables = tuple(map(sub, _sent(net, world), once))
    begin = START + int(world.warm * MICROSECONDS)
    before = None
    took: list[float] = []
    heard = [reading for reading in readings if reading[2].lower() in read]
    for time, group in groupby(heard, key=lambda reading: reading[0]):
        if time >= begin and before is None:
            before, took = _sent(net, world), []
        net.begin()
        net.advance(time)
        for _, gateway, source, event in group:
            net.ingest(gateway, world.source(source).name, [event])
        net.settle(limit=MOST_ACTIONS)
        if net.answered is not None:
            took.append(net.answered)
    net.advance(readings[-1][0])
    net.settle(limit=MOST_ACTIONS)
    if net.failures:
        raise RuntimeError(str(net.failures[0]))
    if before is None:
        raise ValueError(f"{world.name} has no readings in the seconds that are counted")
    size, messages, energy = (
        (after - least) / world.seconds + whole / SNAPSHOT_SECONDS.value
        for after, least, whole in zip(_sent(net, world), before, tables, strict=True)
    )
    return Used(size, messages, energy, max(took, default=0.0)), net.result("q")


def _sent(net: TimedNetwork, world: World) -> tuple[float, float, float]:
    """Return bytes, messages, and bytes times ways so far."""
    total = messages = energy = 0.0
    for (sender, receiver), count in net.traffic.messages.items():
        if receiver not in (CONSOLE, sender):
            size = net.traffic.bytes[sender, receiver] + count * TOPIC_BYTES.value
            total, messages = total + size, messages + count
            energy += size * world.distance(sender, receiver)
    return total, messages, energy


def expected_rows(world: World, bound: BoundQuery, readings: Readings) -> Delta:
    """Return the rows of the reference evaluator."""
    database = Database()
    for name, rows in world.tables.items():
        database.append(world.source(name).name, [SourceEvent(row, START) for row in rows])
    for _, _, source, event in readings:
        database.append(world.source(source).name, [event])
    return evaluate(bound.plan, database, readings[-1][0])
