"""The index of the network agrees with a graph that is built anew after each change."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from federated_optimizer.coordinator.computations import network_index
from federated_optimizer.coordinator.computations.network_index import NetworkIndex
from federated_optimizer.coordinator.computations.run_nodes import number_of, shapes_of
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from streamsql.algebra.operators import RemoteSource, Scan, SourceKind, UnionAll
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

COLUMNS = Schema.of(("rid", DataType.TEXT))
MOST = 6


@dataclass
class Query:
    """A query of a run, or what keeps one."""

    id: str
    bundle: FragmentBundle
    origin: Origin = Origin.USER
    created: int = 1

    @property
    def name(self) -> str:
        return f"the {self.id}"


@dataclass
class SomeRuns:
    """Runs with their readers."""

    readers: dict[str, list[Query]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def all(self) -> tuple[str, ...]:
        return tuple(run for run, readers in self.readers.items() if readers)

    def shown(self, run: str) -> Sequence[Query]:
        self.asked.append(run)
        return tuple(self.readers.get(run, ()))


def bundle_of(run: str, reads: Sequence[str] = (), *, leaf: bool = True) -> FragmentBundle:
    """Return a run over a source and nodes of other runs: results ("3") and fragments ("3/f1")."""
    fragments, feeds, branches = [], [], []

    def fragment(name: str, engine: Engine, site: str) -> Fragment:
        scan = Scan("seat", SourceKind.STREAM, COLUMNS)
        return Fragment(name, engine, scan, (site,), "f0", ("base",))

    if leaf:
        fragments.append(fragment("f1", Engine.GATEWAY, "gw-1"))
        branches.append(RemoteSource("f1", COLUMNS))
    for number, read in enumerate(reads, start=2):
        name, (other, _, part) = f"f{number}", read.partition("/")
        engine, source = (Engine.GATEWAY, part) if part else (Engine.BASE, "f0")
        fragments.append(fragment(name, engine, "base"))
        feeds.append(Feed(name, f"q{other}", 1, source))
        branches.append(RemoteSource(name, COLUMNS))
    result = Fragment("f0", Engine.BASE, UnionAll(tuple(branches)), ("base",))
    return FragmentBundle(run, 1, (result, *fragments), COLUMNS, feeds=tuple(feeds))


def graph_of(runs: SomeRuns) -> tuple["nx.DiGraph[str]", dict[str, str]]:
    """Return the nodes with arrows to what they read, and the result nodes of queries."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    results = {}
    for run in runs.all():
        for shape in shapes_of(runs.readers[run][0].bundle):
            graph.add_node(shape.name, here=True)
            graph.add_edges_from((shape.name, read) for read in shape.reads)
        for query in runs.readers[run]:
            if query.origin != Origin.NODE:
                results[query.id] = number_of(run)
    return graph, results


def check(index: NetworkIndex, runs: SomeRuns) -> None:
    graph, results = graph_of(runs)
    here = {name for name, data in graph.nodes(data=True) if data.get("here")}
    index.look()
    assert set(index.names()) == here
    present = graph.subgraph(here)
    for name in here:
        above = nx.ancestors(present, name) | {name}
        resting = {query for query, result in results.items() if result in above}
        assert index.resting(name) == len(resting), name
        assert {query.id for query in index.queries_on(name)} == resting
        assert set(index.readers(name)) == set(graph.predecessors(name))
    assert set(index.counts()) <= here
    assert index.query_count == len(results)


CHANGES = st.lists(
    st.tuples(
        st.integers(1, MOST),  # the run
        st.sampled_from(("plan", "query", "kept", "leave", "end")),
        st.sets(st.sampled_from([f"{n}{part}" for n in range(1, MOST) for part in ("", "/f1")])),
        st.booleans(),
        st.booleans(),  # whether somebody looks afterwards
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=150)
@given(CHANGES)
def test_whatever_happens_the_index_is_as_if_it_were_made_anew(
    changes: list[tuple[int, str, set[str], bool, bool]],
) -> None:
    runs = SomeRuns()
    index = NetworkIndex(runs)
    for number, (run_number, change, wanted, leaf, looks) in enumerate(changes):
        run = f"q{run_number}"
        reads = sorted(read for read in wanted if int(read.partition("/")[0]) < run_number)
        readers = runs.readers.setdefault(run, [])
        bundle = readers[0].bundle if readers else bundle_of(run, reads, leaf=leaf or not reads)
        if change == "plan":
            bundle = bundle_of(run, reads, leaf=leaf or not reads)
            runs.readers[run] = [Query(q.id, bundle, q.origin) for q in readers]
        elif change in {"query", "kept"}:
            readers.append(
                Query(f"a{number}", bundle, Origin.NODE if change == "kept" else Origin.USER)
            )
        elif change == "leave":
            del readers[:1]
        else:
            readers.clear()
        index.note(run)
        if looks:
            check(index, runs)
    check(index, runs)


def some_runs(count: int) -> tuple[SomeRuns, NetworkIndex]:
    """Return runs of which each reads the fragment of the first."""
    runs = SomeRuns()
    for number in range(1, count + 1):
        run = f"q{number}"
        reads = ("1/f1",) if number > 1 else ()
        runs.readers[run] = [Query(run, bundle_of(run, reads, leaf=number == 1))]
    return runs, NetworkIndex(runs)


def test_who_looks_again_pays_for_what_has_changed() -> None:
    runs, index = some_runs(500)
    index.look()
    assert len(runs.asked) == 500
    runs.asked.clear()
    assert index.take_changed() is None, "any node may have changed before somebody asked"
    assert runs.asked == []
    assert index.take_changed() == ()
    runs.readers["q7"].append(Query("q501", runs.readers["q7"][0].bundle))
    index.note("q7")
    assert set(index.take_changed() or ()) == {"7", "1/f1"}
    assert runs.asked == ["q7"]
    assert index.resting("1/f1") == 501
    assert index.resting("7") == 2


def test_a_run_that_goes_leaves_readers_that_name_its_nodes() -> None:
    runs, index = some_runs(3)
    index.look()
    index.take_changed()
    runs.readers["q1"].clear()
    index.note("q1")
    assert {"1", "1/f1", "2", "3"} >= set(index.take_changed() or ()) >= {"1", "1/f1"}
    assert index.shape("1/f1") is None
    assert index.resting("1/f1") == 0
    assert index.resting("2") == 1
    runs.readers["q1"] = [Query("q1", bundle_of("q1"))]
    index.note("q1")
    index.look()
    assert index.resting("1/f1") == 3


def test_where_nobody_looks_what_is_noted_stays_small() -> None:
    runs, index = some_runs(4)
    index.look()
    for number in range(5, network_index.MOST_NOTED + 100):
        index.note(f"q{number}")
    assert len(index._noted) < 100
    runs.readers["q2"].clear()
    check(index, runs)
    index.take_changed()
    for _ in range(3):
        index.note("q1")
        index.look()
    index._touch(str(number) for number in range(network_index.MOST_NOTED + 1))
    assert index.take_changed() is None


def test_words_are_made_once_for_a_plan() -> None:
    _runs, index = some_runs(2)
    index.look()
    first = index.words("2")
    assert "node 1/f1" in first[1]
    assert index.words("2") is first
