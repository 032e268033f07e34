"""Runs that read results of others: who owns what, in which order, and who is nobody's."""

from typing import Any

from msgspec.structs import replace

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.sites.federation_membership import Membership
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Distinct, Filter, Plan, RemoteSource, Scan, SourceKind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle
from streamsql.wire.messages import QueryProblem

COLUMNS = Schema.of(("rid", DataType.TEXT), ("status", DataType.TEXT))
BASE = ("base",)
LEAF = Fragment("f1", Engine.GATEWAY, Scan("room", SourceKind.STREAM, COLUMNS, (0,)), ("gw",))


def base(name: str, plan: Plan, consumer: str = "") -> Fragment:
    return Fragment(name, Engine.BASE, plan, BASE, consumer, BASE if consumer else ())


def leaf(name: str, consumer: str) -> Fragment:
    return replace(LEAF, id=name, consumer=consumer, destinations=BASE)


def only(status: str, over: str) -> Plan:
    sides = (Column(1, "status", DataType.TEXT), Literal(status, DataType.TEXT))
    return Filter(RemoteSource(over, COLUMNS), Call("=", sides, DataType.BOOLEAN))


def bundle(run: str, *fragments: Fragment, version: int = 1) -> FragmentBundle:
    return FragmentBundle(run, version, fragments, COLUMNS)


def owner(run: str, version: int = 1) -> FragmentBundle:
    """Return the bundle that computes distinct rooms."""
    result = base("f0", Distinct(RemoteSource("f1", COLUMNS)))
    return bundle(run, result, leaf("f1", "f0"), version=version)


def reader(run: str, status: str = "open") -> FragmentBundle:
    """Return the bundle that selects some of them."""
    copy = base("f7", Distinct(RemoteSource("f8", COLUMNS)), "f0")
    return bundle(run, base("f0", only(status, "f7")), copy, leaf("f8", "f7"))


def second(run: str) -> FragmentBundle:
    """Return the bundle that reads the open ones of a reader."""
    inner = base("f2", Distinct(RemoteSource("f3", COLUMNS)), "f1")
    copy = base("f1", only("open", "f2"), "f0")
    top = base("f0", Distinct(RemoteSource("f1", COLUMNS)))
    return bundle(run, top, copy, inner, leaf("f3", "f2"))


class World:
    """Runs as a coordinator knows them."""

    def __init__(self) -> None:
        self.runs = SharedRuns("host")
        self.queries: dict[str, RunningQuery] = {}

    def start(self, found: FragmentBundle, **told: Any) -> RunningQuery:
        """Start a query with a bundle, which reads what others have."""
        run = found.query
        named = self.runs.named(Planned(found, ()), run) if not told.get("alone") else found
        result = QueryResult(named, clock=lambda: 1, max_behind=1)
        given: dict[str, Any] = {"origin": Origin.USER, **told}
        query = RunningQuery(
            *(run, run, "", given.pop("origin"), 1, named, result, Membership()),
            leader_of=self.runs.leader,
            **given,
        )
        self.queries[run] = query
        self.runs.enter(query)
        return query

    def fed(self) -> dict[str, tuple[Feed, ...]]:
        """Return the feeds that runs should have, but do not."""
        found = {}
        for run in self.runs.all():
            plans = self.runs.fed_otherwise(run)
            for planned in plans.values():
                named = self.runs.named(planned, run)
                found[run] = named.feeds
                query = self.queries[run]
                self.runs.leave(query)
                query.bundle = named
                self.runs.enter(query)
        return found


def test_a_result_is_read_and_nothing_below_it() -> None:
    world = World()
    world.start(owner("q1"))
    thin = world.start(reader("q2"))
    assert thin.bundle.feeds == (Feed("f7", "q1", 1, "f0"),)
    assert [fragment.id for fragment in thin.bundle.own] == ["f0"]
    assert thin.engine_sites == {"base", "gw"}, "all sites belong to the answer"


def test_a_reader_of_a_reader_reads_the_nearest_result() -> None:
    world = World()
    for found in (owner("q1"), reader("q2"), second("q3")):
        world.start(found)
    assert world.queries["q3"].bundle.feeds == (Feed("f1", "q2", 1, "f0"),)
    fed = [query.run for query in world.runs.fed_by("q1")]
    assert fed == ["q2"]
    assert [each.run for each in world.queries["q3"]._feeders() if each] == ["q2", "q1"]


def test_only_older_runs_are_read() -> None:
    world = World()
    world.start(reader("q2"))
    world.start(owner("q10"))
    # The older one has the leaf; nobody reads a part inside another run.
    assert world.queries["q10"].bundle.feeds == (Feed("f1", "q2", 1, "f8"),)
    assert world.queries["q2"].bundle.feeds == ()


def test_feeders_are_deployed_again_before_their_readers() -> None:
    world = World()
    for found in (owner("q1"), reader("q2"), second("q3")):
        world.start(found)
    first = world.queries["q1"]
    world.runs.leave(first)
    first.bundle = owner("q1", version=2)
    world.runs.enter(first)
    assert world.fed() == {"q2": (Feed("f7", "q1", 2, "f0"),), "q3": (Feed("f1", "q2", 2, "f0"),)}
    assert world.fed() == {}


def test_a_reader_computes_itself_what_has_failed() -> None:
    world = World()
    for found in (owner("q1"), reader("q2"), reader("q3", "shut")):
        world.start(found)
    failed = world.queries["q1"]
    failed.problems["base"] = QueryProblem("step_budget", "", "", 1, "base")
    # What the first reader computes inside is nobody's; its leaf is.
    assert world.fed() == {"q2": (), "q3": (Feed("f8", "q2", 2, "f8"),)}


def test_runs_on_trial_and_those_that_are_not_shared_are_not_read() -> None:
    world = World()
    trial = world.start(owner("q1"))
    world.runs.leave(trial)
    world.runs.try_out(trial)
    world.start(owner("q2"), alone="WITH (shared = 'no') says so")
    assert world.start(reader("q3")).bundle.feeds == ()
    world.runs.end_trial(trial)


def test_a_move_reads_nothing_of_the_run_that_it_leaves() -> None:
    world = World()
    world.start(owner("q1"))
    world.start(reader("q2"))
    moved = world.runs.fed_but_by(Planned(second("q9"), ()), "q9", "q2")
    assert moved.feeds == (Feed("f2", "q1", 1, "f0"),)


def test_a_silent_run_is_read_by_others_but_by_no_query() -> None:
    world = World()
    node = world.start(replace(owner("q1"), silent=True), origin=Origin.NODE)
    assert world.start(reader("q2")).bundle.feeds == (Feed("f7", "q1", 1, "f0"),)
    assert world.runs.alike(Planned(owner("q3"), ())) is None
    assert node.result.is_synchronised, "it has no result to wait for"


def test_explain_counts_those_that_read_a_result() -> None:
    world = World()
    first = world.start(owner("q1"))
    for found in (reader("q2"), reader("q3", "shut")):
        world.start(found)
    sharers = world.runs.part_sharers(Planned(first.bundle, ()), "q1")
    named = {name: [query.id for query in queries] for name, queries in sharers.items()}
    assert named == {"f0": ["q2", "q3"], "f1": ["q2", "q3"]}
    world.start(replace(owner("q4"), units=("", "K")))  # equal, but of another unit
    assert "q4" not in [
        q.id for q in world.runs.part_sharers(Planned(first.bundle, ()), "q1")["f0"]
    ]
