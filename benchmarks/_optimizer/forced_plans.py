"""Costs of all plans of a query, measured by installing each in a simulated federation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks._optimizer.duckdb_rows import by_duckdb
from benchmarks._optimizer.questions import Question
from benchmarks._optimizer.worlds import START, Readings, World
from federated_optimizer import Topology, colocation_of, normalize, plan
from federated_optimizer.alternatives.method import Method
from federated_optimizer.coordinator.facts.heard_columns import HeardColumns
from federated_optimizer.coordinator.facts.planned_facts import KnownColumns
from federated_optimizer.memo.groups import Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.search.choosing import PUSHED, Search
from federated_optimizer.statistics.default_facts import TOPIC_BYTES
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    Passing,
    SourceFacts,
    Statistics,
)
from federated_optimizer.statistics.predicate_text import predicate_text
from stream_engine.simulation.network import CONSOLE, Network
from stream_engine.site.site_sources import SiteSources
from streamsql.algebra.expressions import conjuncts
from streamsql.algebra.operators import Filter, Plan, TopN, walk_plan
from streamsql.algebra.scalar import compile_expression
from streamsql.binder import BoundQuery, bind_query
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS
from streamsql.reference import Database, evaluate
from streamsql.syntax import Query, parse_statement
from streamsql.wire.fragments import FragmentBundle, filtered_scan

WARM_SECONDS = 70.0
"""Windows are full and devices have been heard before anything is counted."""

MOST_PLANS = 12
"""Of one query that are run: those that push and ship everything, and the cheapest."""

BASE, STATIC = "base", "static"


@dataclass(frozen=True, slots=True)
class Measured:
    """A plan that ran.

    Attributes:
        estimated: Bytes a second that the optimizer expected.
        bytes: A second between sites, with the headers of messages.
        messages: A second between sites.
        rows: Its answer at the end.
    """

    number: int
    words: str
    estimated: float
    bytes: float
    messages: float
    rows: Delta


@dataclass(frozen=True, slots=True)
class Outcome:
    """A query of which plans ran.

    Attributes:
        former: What was run before plans were chosen by cost: all that gateways can do alone, first
            rows in parts, and the rest at the base.
        count: Plans that there are.
        right: Whether all gave the rows of the reference evaluator, and of DuckDB where the text
            means the same there.
    """

    name: str
    chosen: int
    former: int
    count: int
    plans: tuple[Measured, ...]
    right: bool

    def regret(self, number: int) -> float:
        """Return the cost of a plan over that of the best one; a byte a second is nothing."""
        taken = next(each.bytes for each in self.plans if each.number == number)
        return (taken + 1.0) / (min(each.bytes for each in self.plans) + 1.0)


def outcome(question: Question, seconds: float, seed: int) -> Outcome:
    """Run the plans of a query, and compare their rows in full."""
    world = question.world
    readings = world.readings(WARM_SECONDS + seconds, seed)
    bound = bind_query(_query(question.text), world.catalog)
    names = frozenset(world.loads)
    topology = Topology(
        dict.fromkeys(world.gateways, names), colocation=colocation_of(world.catalog)
    )
    statistics = facts(world, normalize(bound.plan, topology), readings)
    search = Search(normalize(bound.plan, topology), topology, statistics)
    listed = search.alternatives()
    words = {each.number: each.words for each in listed.listed}
    former = search.memo.number(_former(search.memo, search.memo.whole))
    shown = dict.fromkeys((PUSHED, search.memo.shipping, former, listed.chosen, *words))
    plans = []
    for number in list(shown)[:MOST_PLANS]:
        bundle = plan(replace(bound, asked=number), topology, query="q", statistics=statistics)
        plans.append(
            Measured(
                number,
                words.get(number, ""),
                search.plan(number).cost.bytes,
                *_measured(world, bundle, readings, seconds),
            )
        )
    wanted = _expected(world, bound, readings)
    right = all(each.rows == wanted for each in plans)
    if question.plain:
        right = right and wanted == by_duckdb(question, readings)
    return Outcome(question.name, listed.chosen, former, search.memo.count(), tuple(plans), right)


def _former(memo: Memo, wanted: Wanted) -> int:
    """Return the place of the former rule's plan among those of a part."""
    first = 0
    for alternative in memo.alternatives[wanted]:
        in_parts = alternative.method == Method.PARTS
        if not in_parts or isinstance(memo.plan(wanted), TopN):
            break
        first += memo.size(alternative)
    rank = 0
    for child in alternative.children:
        rank = rank * memo.count(child) + _former(memo, child)
    return first + rank


def _query(text: str) -> Query:
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise TypeError(f"{text!r} is no query")
    return statement


def facts(world: World, ready: Plan, readings: Readings) -> Statistics:
    """Return what a running federation would have counted of the readings."""
    sources: dict[str, SourceFacts] = {}
    for name, load in world.loads.items():
        rate = load.devices / load.period
        ttl = world.source(name).ttl or 0
        rows = load.devices if world.source(name).key else rate * ttl / MICROSECONDS
        sources[name] = SourceFacts(float(rows), 2 * rate)
    for name, table in world.tables.items():
        sources[name] = SourceFacts(float(len(table)))
    return Statistics(
        sources=sources, passing=_passing(ready, readings), columns=_columns(world, readings)
    )


def _columns(world: World, readings: Readings) -> Mapping[tuple[str, str], ColumnFacts]:
    """Return what gateways count of columns when they look each ten seconds."""
    known, now = Facts(), readings[-1][0]
    heard = HeardColumns(known, world.source)
    for site in world.gateways:
        sources = SiteSources(site)
        for name in world.loads:
            sources.declare(world.source(name).scan(), START)
        for time, gateway, name, event in readings:
            if gateway == site:
                sources.ingest(name, [event], "")
                sources.advance(time)
                heard.hear(site, sources.columns.report(time))
    heard.look(now)
    return KnownColumns(known, now)


def _passing(ready: Plan, readings: Readings) -> Mapping[tuple[str, str], Passing]:
    found = {}
    for node in walk_plan(ready):
        scan = filtered_scan(node) if isinstance(node, Filter) else None
        if not isinstance(node, Filter) or scan is None:
            continue
        rows = [e.row for _, _, name, e in readings if name.lower() == scan.source.lower()]
        for predicate in (node.predicate, *conjuncts(node.predicate)):
            passes = compile_expression(predicate)
            if rows:
                share = max(sum(passes(row) is True for row in rows) / len(rows), 1e-4)
                key = (scan.source.lower(), predicate_text(predicate, scan.schema.names))
                found[key] = Passing(share, share, share)
    return found


def _measured(
    world: World, bundle: FragmentBundle, readings: Readings, seconds: float
) -> tuple[float, float, Delta]:
    net = Network((*world.gateways, BASE, STATIC))
    for definition in (*world.catalog.sources, *world.catalog.tables):
        for site in (STATIC,) if definition.is_table else world.gateways:
            net.declare(site, definition.scan())
    net.advance(START)
    for name, rows in world.tables.items():
        net.ingest(STATIC, world.source(name).name, [SourceEvent(row, START) for row in rows])
    net.install(bundle)
    net.settle()
    begin = START + int(WARM_SECONDS * MICROSECONDS)
    before = (0, 0)
    for time, gateway, source, event in readings:
        if time >= begin and before == (0, 0):
            before = _between_sites(net)
        net.advance(time)
        net.ingest(gateway, source, [event])
        net.settle()
    size, messages = (
        after - least for after, least in zip(_between_sites(net), before, strict=True)
    )
    if net.failures:
        raise RuntimeError(str(net.failures[0]))
    size += int(messages * TOPIC_BYTES.value)
    return size / seconds, messages / seconds, net.result("q")


def _between_sites(net: Network) -> tuple[int, int]:
    counts = (net.traffic.bytes, net.traffic.messages)
    size, messages = (
        sum(n for (sender, to), n in each.items() if to not in (CONSOLE, sender)) for each in counts
    )
    return size, messages


def _expected(world: World, bound: BoundQuery, readings: Readings) -> Delta:
    database = Database()
    for name, rows in world.tables.items():
        database.append(world.source(name).name, [SourceEvent(row, START) for row in rows])
    for _, _, source, event in readings:
        database.append(source, [event])
    return evaluate(bound.plan, database, readings[-1][0])
