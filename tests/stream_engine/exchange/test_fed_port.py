"""Queries that read results of others at their site: in one step, late, while these are busy."""

from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace

from stream_engine.exchange import local_feeds
from stream_engine.site.site_engine import SiteEngine
from stream_engine.site.step_budget import Unlimited
from stream_engine.site.step_result import StepResult
from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.testing.fed_bundles import BASE, Leaves, bundle_over, fed_again
from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    SourceKind,
)
from streamsql.data.delta import Delta, difference
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, WeightedRow
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

COLUMNS = Schema.of(("r", DataType.TEXT), ("n", DataType.INTEGER))
ROOM = Scan("room", SourceKind.STREAM, COLUMNS, (0,))
N = Column(1, "n", DataType.INTEGER)
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")


def above(plan: Plan, bound: int) -> Plan:
    return Filter(plan, Call(">", (N, Literal(bound, DataType.INTEGER)), DataType.BOOLEAN))


def over(
    query: str,
    plan: Callable[[Plan], Plan],
    owner: FragmentBundle | None = None,
    *,
    silent: bool = False,
) -> FragmentBundle:
    """Return a bundle with a plan over the result of another one, or over the rooms."""
    owners = {} if owner is None else {owner.query: owner}
    leaf = ROOM if owner is None else Scan(owner.query, SourceKind.TABLE, owner.schema, (0,))
    return bundle_over(query, plan(leaf), Leaves(owners, ("gw",)), silent=silent)


SOURCE = over("q1", lambda leaf: above(leaf, 0))
MIDDLE = over("q2", lambda leaf: Aggregate(leaf, (1,), (COUNT,)), SOURCE)
TOP = over("q3", lambda leaf: above(leaf, 1), MIDDLE)
CHAIN = (SOURCE, MIDDLE, TOP)


class Base:
    """A base site, and what its queries have sent."""

    def __init__(self, *bundles: FragmentBundle, settings: SiteSettings | None = None) -> None:
        self.site = SiteEngine("base", 1)
        self.site.configure(settings or SiteSettings())
        self.sent: dict[str, Delta] = {}
        self.batches: dict[str, int] = {}
        self.number = 0
        self.now = 0
        for bundle in bundles:
            self.site.install(bundle)

    def read(self, *rows: tuple[str, int], to: FragmentBundle = SOURCE, weight: int = 1) -> None:
        """A gateway has sent rows."""
        reset = not self.number
        deltas = tuple(WeightedRow(row, weight) for row in rows)
        batch = DeltaBatch(to.version, 1, self.number, "room", deltas, reset=reset)
        self.number += 1
        self.site.receive(to.query, "gw", batch)

    def step(self) -> StepResult:
        self.now += 1
        done = self.site.step(self.now)
        for outgoing in done.outgoing:
            if outgoing.batch.reset:
                self.sent[outgoing.query] = {}
            rows = self.sent.setdefault(outgoing.query, {})
            for row in outgoing.batch.deltas:
                rows[row.row] = rows.get(row.row, 0) + row.weight
            self.batches[outgoing.query] = self.batches.get(outgoing.query, 0) + 1
        return done

    def shown(self, query: str) -> Delta:
        return {row: weight for row, weight in self.sent.get(query, {}).items() if weight}

    def is_busy(self, query: str) -> bool:
        flow = self.site.flow(query)
        assert flow is not None
        return flow.busy


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("scheduler", [None, *SchedulerKind])
def test_a_change_goes_through_a_chain_in_one_step(
    order: tuple[int, ...], scheduler: SchedulerKind | None
) -> None:
    settings = SiteSettings(slice_ms=None if scheduler is None else 1_000.0)
    if scheduler is not None:
        settings = replace(settings, scheduler=scheduler)
    base = Base(*(CHAIN[place] for place in order), settings=settings)
    base.step()
    base.read(("a", 1), ("b", 1), ("c", 2))
    base.step()
    assert base.shown("q1") == {("a", 1): 1, ("b", 1): 1, ("c", 2): 1}
    assert base.shown("q2") == {(1, 2): 1, (2, 1): 1}
    assert base.shown("q3") == {(1, 2): 1}
    base.read(("a", 1), weight=-1)
    base.step()
    assert base.shown("q3") == {}
    assert not any(map(base.is_busy, ("q1", "q2", "q3")))


def test_a_reader_of_two_results_runs_once_a_step() -> None:
    other = over("q2", lambda leaf: above(leaf, 5), SOURCE)
    leaves = {owner.query: owner for owner in (SOURCE, other)}
    left, right = (Scan(name, SourceKind.TABLE, COLUMNS, (0,)) for name in leaves)
    joined = Join(left, right, JoinKind.LEFT, ((0, 0),))
    diamond = bundle_over("q3", joined, Leaves(leaves, ("gw",)))
    base = Base(diamond, other, SOURCE)
    base.step()
    before = base.batches["q3"]
    base.read(("a", 1), ("b", 9))
    base.step()
    assert base.shown("q3") == {("a", 1, None, None): 1, ("b", 9, "b", 9): 1}
    assert base.batches["q3"] == before + 1


def test_only_runs_with_changes_are_touched() -> None:
    quiet = over("q9", lambda leaf: Distinct(Project(leaf, (N,), ("n",))), TOP)
    base = Base(*CHAIN, quiet)
    base.read(("a", 1))
    base.step()
    _, before = base.site.changed_since(0)
    base.read(("b", 2))
    base.step()
    assert set(base.site.changed_since(before)[0]) == {"q1", "q2"}, "a group of one is dropped"


def test_a_late_reader_begins_with_the_whole_result() -> None:
    source = replace(SOURCE, silent=True)
    base = Base(source)
    base.read(("a", 1), ("b", 1), ("c", 0))
    base.step()
    base.site.install(MIDDLE)
    base.step()
    assert base.shown("q2") == {(1, 2): 1}


def test_a_silent_query_sends_nothing_and_reports() -> None:
    source = replace(SOURCE, silent=True)
    base = Base(source, MIDDLE)
    base.step()
    base.read(("a", 1))
    base.step()
    assert "q1" not in base.batches
    assert base.site.kept_result("q1") == {("a", 1): 1}
    assert base.shown("q2") == {(1, 1): 1}
    flow = base.site.flow("q1")
    assert flow is not None
    assert (flow.sent, flow.received, flow.busy) == ({}, {"gw": 1}, False)
    assert not base.site.resync("q1", "")
    base.site.resync_all()
    base.step()
    assert "q1" not in base.batches
    assert base.batches["q2"] > 1


def test_readers_wait_for_a_feeder_with_work_left() -> None:
    base = Base(MIDDLE, TOP)
    base.step()
    assert base.is_busy("q3"), "its feeder has no feeder"
    base.site.install(SOURCE)
    assert base.is_busy("q3")
    base.step()
    assert not base.is_busy("q3")
    assert {"q2", "q3"} <= set(base.site.changed_since(0)[0])
    base.site.configure(SiteSettings(slice_ms=1.0, queue_rows=1_000))
    base.read(("a", 1))
    seen = []
    for _ in range(20):
        _, before = base.site.changed_since(0)
        was = base.is_busy("q3")
        base.step()
        seen.append((base.is_busy("q1"), base.is_busy("q2"), base.is_busy("q3")))
        if was != seen[-1][2]:
            assert "q3" in base.site.changed_since(before)[0]
        if not any(seen[-1]):
            break
    assert seen[0][2], "an operator a step: its feeder has not begun"
    assert not any(seen[-1])
    assert base.shown("q2") == {(1, 1): 1}


def test_a_query_that_begins_in_slices_is_read_when_it_has_begun() -> None:
    base = Base(SOURCE, settings=SiteSettings(slice_ms=1.0))
    base.read(("a", 1), ("b", 1))
    base.site.install(MIDDLE)
    for _ in range(20):
        base.step()
        assert base.shown("q2") in ({}, {(1, 2): 1})
    assert base.shown("q2") == {(1, 2): 1}


def test_a_reader_keeps_its_rows_while_its_feeder_is_gone() -> None:
    base = Base(*CHAIN)
    base.read(("a", 1), ("b", 1))
    base.step()
    base.site.uninstall("q1")
    base.step()
    assert base.shown("q3") == {(1, 2): 1}
    assert [base.is_busy(name) for name in ("q2", "q3")] == [True, True]
    base.site.install(SOURCE)
    base.number = 0
    base.read(("a", 1), ("c", 1), ("d", 1))
    base.step()
    assert base.shown("q3") == {(1, 3): 1}
    assert not base.is_busy("q3")


def test_a_new_version_feeds_only_those_planned_for_it() -> None:
    base = Base(*CHAIN)
    base.read(("a", 1), ("b", 1))
    base.step()
    newer = replace(SOURCE, version=2)
    base.site.install(newer)
    base.number = 0
    base.read(("a", 1), to=newer)
    base.step()
    assert base.shown("q1") == {("a", 1): 1}
    assert base.shown("q3") == {(1, 2): 1}
    assert base.is_busy("q3")
    middle = fed_again(MIDDLE, newer)
    base.site.install(fed_again(TOP, middle))
    base.site.install(middle)
    base.step()
    assert base.shown("q3") == {}
    assert not base.is_busy("q3")


def test_a_feeder_that_fails_takes_no_reader_with_it() -> None:
    class Never(Unlimited):
        """Ends the source in its second step."""

        def begin(self, query: str) -> None:
            if query == "q1" and base.now > 1:
                raise ValueError("it cannot go on")

    base = Base()
    base.site = SiteEngine("base", 1, budget=Never())
    for bundle in CHAIN:
        base.site.install(bundle)
    base.read(("a", 1), ("b", 1))
    base.step()
    base.read(("c", 1))
    assert [name for name, _error in base.step().failures] == ["q1"]
    assert base.shown("q3") == {(1, 2): 1}
    assert base.is_busy("q3")


def stranger(owner: FragmentBundle) -> FragmentBundle:
    """Return a bundle of the same name that computes something else."""
    return replace(over("q1", lambda leaf: above(leaf, 3)), version=owner.version)


def elsewhere(owner: FragmentBundle) -> FragmentBundle:
    """Return a bundle whose gateway is another one."""
    parts = [
        replace(part, sites=("gw-2",)) if part.id == "room" else part for part in owner.fragments
    ]
    return replace(owner, fragments=tuple(parts))


def at_two_sites(owner: FragmentBundle) -> FragmentBundle:
    """Return a bundle with a result at two sites."""
    parts = [
        replace(part, sites=("base", "base-2"))
        if part.id == "f0"
        else replace(part, destinations=("base", "base-2"))
        for part in owner.fragments
    ]
    return replace(owner, fragments=tuple(parts))


def with_history(owner: FragmentBundle) -> FragmentBundle:
    """Return a bundle that also reads a log, of which sites keep no rows."""
    log = Fragment("f9", Engine.BASE, replace(ROOM, key=()), BASE)
    return replace(owner, fragments=(*owner.fragments, log))


@pytest.mark.parametrize("other", [stranger, elsewhere, at_two_sites, with_history])
def test_another_computation_feeds_nobody(
    other: Callable[[FragmentBundle], FragmentBundle],
) -> None:
    base = Base(other(SOURCE), MIDDLE)
    base.step()
    base.step()
    assert base.is_busy("q2")
    assert base.shown("q2") == {}


def test_a_reader_with_history_is_fed_nothing() -> None:
    """Its state is restored after a restart: what it had read would count twice."""
    base = Base(SOURCE, with_history(MIDDLE))
    base.step()
    assert base.is_busy("q2")


def test_readers_that_lack_the_same_rows_get_them_together(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []

    def counted(new: Delta, old: Delta) -> Delta:
        passes.append(len(new) + len(old))
        return difference(new, old)

    monkeypatch.setattr(local_feeds, "difference", counted)
    base = Base(SOURCE)
    base.read(*((f"r{n}", n) for n in range(1, 101)))
    base.step()
    readers = [over(f"q{n}", partial(above, bound=n), SOURCE) for n in range(2, 102)]
    for reader in readers:
        base.site.install(reader)
    base.step()
    assert passes == [100]
    assert [len(base.shown(f"q{n}")) for n in (2, 99, 101)] == [98, 1, 0]
    base.site.uninstall("q1")
    base.step()
    base.site.install(SOURCE)
    base.number = 0
    base.read(("r7", 7), ("new", 99))
    base.step()
    assert passes == [100, 100], "what they have kept is there once"
    assert base.shown("q98") == {("new", 99): 1}
    assert not any(base.is_busy(reader.query) for reader in readers)


def test_queries_that_would_read_each_other_wait() -> None:
    """A reader has a copy of all that it reads, so only a damaged bundle can be in a circle."""
    thin = over("q2", lambda leaf: above(leaf, 1), SOURCE)
    feed = replace(thin.feeds[0], run="q2", version=1)
    base = Base(replace(thin, feeds=(feed,)))
    base.step()
    assert base.is_busy("q2")


def test_reports_name_the_operators_of_readers() -> None:
    base = Base(*CHAIN)
    base.read(("a", 1), ("b", 1))
    base.step()
    found = {(o.query, o.entity): o.inputs for o in base.site.operators()}
    assert found["q2", "f0/0"] == "q1.f0"
    counts = {
        (entry.query, entry.fragment): [(o.rows_in, o.rows_out) for o in entry.operators]
        for entry in base.site.statistics()
    }
    assert counts["q3", "f0"][0] == (1, 1)
    assert counts.keys() == {("q1", "f0"), ("q2", "f0"), ("q3", "f0")}


@pytest.mark.parametrize("is_snapshot", [False, True])
def test_a_recorded_base_comes_back_with_its_chain(is_snapshot: bool) -> None:
    journal: list[bytes] = []
    first = RecordedSite("base", 1, journal.append)
    base = Base()
    base.site = first
    for bundle in (TOP, replace(SOURCE, silent=True), MIDDLE):
        first.install(bundle)
    base.read(("a", 1), ("b", 1))
    base.step()
    again = Base()
    again.site = RecordedSite("base", 2)
    again.now = base.now
    if is_snapshot:
        again.site.restore(first.snapshot(), [], base.now)
    else:
        again.site.restore(None, journal, base.now)
    again.read(("c", 1), ("d", 1))
    again.step()
    assert again.shown("q3") == {(1, 2): 1}
    assert not again.is_busy("q3")
    assert "q1" not in again.batches
