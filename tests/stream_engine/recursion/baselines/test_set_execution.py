"""Plain set execution: right while nothing goes, and a clear refusal as soon as something does."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.recursion.baselines.set_execution import SetOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.program import program_of
from stream_engine.simulation.fragmentations import everywhere
from stream_engine.simulation.network import Faults, Network
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import LINK, cheapest_path, doubling, reachable
from stream_engine.testing.recursion_schedules import (
    EXAMPLES,
    LINKS,
    BaseRow,
    Schedule,
    run_schedule,
)
from streamsql.algebra.choices import Strategy, Way
from streamsql.algebra.operators import Fixpoint, RecursionChoice
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import InternalError, RecursionLimitError, UnsupportedError, WireError
from streamsql.reference import Database, evaluate
from streamsql.wire.messages import AnnotatedRow

SITES = ("s0", "s1", "s2", "s3")
SET = RecursionOptions(strategy=Strategy.SET)


def check(
    node: Fixpoint, pool: Sequence[BaseRow], options: RecursionOptions, seed: int, sites: int
) -> None:
    schedule = Schedule(pool, changes=20, deletes=False)
    ensemble, expected = run_schedule(node, SITES[:sites], options, schedule, seed)
    assert ensemble.rows() == expected
    for site, operator in ensemble.operators.items():
        assert ensemble.views[site] == dict.fromkeys(operator.state_rows(), 1)


@given(seed=st.integers(0, 10**6), view=st.sampled_from(EXAMPLES), sites=st.integers(1, 4))
def test_any_interleaving(seed: int, view: tuple[Fixpoint, Sequence[BaseRow]], sites: int) -> None:
    check(*view, SET, seed, sites)


@pytest.mark.parametrize("way", ["centre", "flood"])
def test_base_rows_may_travel_instead(way: str) -> None:
    options = RecursionOptions(strategy=Strategy.SET, way=Way(way))
    check(doubling(), LINKS, options, 3, 3)
    check(cheapest_path(), LINKS, options, 4, 3)


def owner(key: Row, _sites: tuple[str, ...]) -> str:
    return str(key[0])


def test_messages_of_the_worked_example() -> None:
    """Four links to where they join, then 5 + 6 + 1 derived rows: 16 messages in all."""
    options = RecursionOptions(strategy=Strategy.SET, owner=owner)
    ensemble = Ensemble(reachable(), ("A", "B", "C"), options)
    for source, target in ("AB", "BC", "CA", "CB"):
        ensemble.apply(source, 0, {(source, target, 1): 1})
    assert ensemble.rounds() == [4, 5, 6, 1]
    assert len(ensemble.rows()) == 9


def test_a_site_ships_only_what_may_be_best() -> None:
    ensemble = Ensemble(cheapest_path(), ("s0", "s1"), SET, seed=1)
    ensemble.apply("s0", 0, {("a", f"n{cost}", cost): 1 for cost in range(1, 9)})
    ensemble.apply("s1", 0, {(f"n{cost}", "z", 1): 1 for cost in range(1, 9)})
    for site in ("s0", "s1"):
        ensemble.step(site)
    ensemble.run()
    assert ("a", "z", 2) in ensemble.rows()
    assert ("a", "z", 3) not in ensemble.rows()


@pytest.mark.parametrize("sites", [1, 3])
def test_deletions_are_refused(sites: int) -> None:
    ensemble = Ensemble(reachable(), SITES[:sites], SET)
    ensemble.apply("s0", 0, {("a", "b", 1): 1, ("a", "b", 2): 1})
    ensemble.step("s0")
    ensemble.apply("s0", 0, {("a", "b", 1): -1})
    ensemble.step("s0")  # the row that the recursion reads, ("a", "b"), is still there
    ensemble.apply("s0", 0, {("a", "b", 2): -1})
    with pytest.raises(UnsupportedError, match="recursion reachable") as refused:
        ensemble.step("s0")
    assert "'ranked'" in refused.value.hint
    ensemble.apply("s0", 0, {("c", "d", 1): 1})
    with pytest.raises(UnsupportedError, match="recursion reachable"):
        ensemble.operators["s0"].settle()


def test_what_comes_and_goes_at_once_was_never_there() -> None:
    ensemble = Ensemble(reachable(), SITES, SET)
    ensemble.apply("s0", 0, {("a", "b", 1): 1})
    ensemble.apply("s0", 0, {("a", "b", 1): -1})
    ensemble.step("s0")
    ensemble.run()
    assert ensemble.rows() == set()


def test_lost_sites_are_refused() -> None:
    operator = Ensemble(reachable(), SITES, SET).operators["s0"]
    operator.kill_site("s0", 0)
    operator.kill_site("s1", 6)  # s1 begins with life 7
    operator.receive("s1", "rows", [AnnotatedRow(("a", "b"), b"")], ())
    operator.kill_site("s1", 6)
    assert operator.settle()
    operator.kill_site("s1", 7)
    with pytest.raises(UnsupportedError, match="site s1, on whose rows it may depend, was lost"):
        operator.settle()
    assert list(operator.state_rows()) == []


def test_a_site_that_wrote_without_introduction_is_missed_too() -> None:
    operator = Ensemble(reachable(), SITES, SET).operators["s0"]
    operator.receive("s1", "rows", [AnnotatedRow(("a", "b"), b"")], ())
    operator.kill_site("s1", 1)
    with pytest.raises(UnsupportedError):
        operator.settle()


def test_a_replay_tells_all_that_was_told() -> None:
    """A site that has lost everything, sent to it alone, has the same rows again."""
    node = doubling()
    ensemble, _ = run_schedule(node, SITES[:3], SET, Schedule(LINKS, 20, deletes=False), 8)
    made = {s: o for s, o in ensemble.operators.items() if isinstance(o, SetOperator)}
    lost = made["s1"]
    again = SetOperator(program_of(node), site="s1", sites=SITES[:3], options=SET)
    for leaf, rows in enumerate(lost._arrived):
        again.apply(leaf, dict.fromkeys(rows, 1))
    for site in ("s0", "s2"):
        for message in made[site].replay("s1"):
            again.receive(site, message.port, message.annotated, ())
    again.settle()
    assert set(again.state_rows()) == set(lost.state_rows()) != set()
    assert {m.site for m in again.drain()} <= {"s0", "s2"}


@pytest.mark.parametrize(
    ("port", "row", "annotation", "kills"),
    [
        ("nowhere", ("a", "b"), b"", ()),
        ("leaf:9", ("a", "b"), b"", ()),
        ("leaf:x", ("a", "b"), b"", ()),
        ("rows", ("a",), b"", ()),
        ("leaf:0", ("a",), b"", ()),
        ("rows", ("a", "b"), b"\1", ()),
        ("rows", ("a", "b"), b"", (5,)),
    ],
)
def test_malformed_messages_are_refused(
    port: str, row: Row, annotation: bytes, kills: tuple[int, ...]
) -> None:
    operator = Ensemble(reachable(), SITES, SET).operators["s0"]
    with pytest.raises(WireError):
        operator.receive("s1", port, [AnnotatedRow(row, annotation)], kills)
    assert operator.settle() == {}


def settle_all(ensemble: Ensemble) -> None:
    for site in ensemble.operators:
        ensemble.step(site)
    ensemble.run()


def test_bounds() -> None:
    ring: dict[Row, int] = {(a, b, 1): 1 for a, b in zip("abcde", "bcdea", strict=True)}
    for sites in (1, 2):
        ensemble = Ensemble(reachable(limit=4), SITES[:sites], SET)
        ensemble.apply("s0", 0, ring)
        with pytest.raises(RecursionLimitError, match="more than 4 rows"):
            settle_all(ensemble)
    with pytest.raises(InternalError):
        SetOperator(program_of(reachable()), site="s9", sites=SITES, options=SET)


@given(seed=st.integers(0, 2**32))
def test_lost_and_repeated_messages(seed: int) -> None:
    plan = msgspec.structs.replace(reachable(), choice=RecursionChoice(strategy=Strategy.SET))
    network = Network(SITES[:3], seed=seed, faults=Faults(loss=0.15, repetition=0.15))
    for site in SITES[:3]:
        network.declare(site, LINK)
    network.install(everywhere(plan, SITES[:3]))
    database = Database()
    for number, (_, row) in enumerate(LINKS[seed % 7 :: 5]):
        events = [SourceEvent(row, 0)]
        database.append("link", events)
        network.ingest(SITES[number % 3], "link", events)
        for _ in range(number):
            network.act()
    network.settle()
    assert network.failures == []
    assert network.result("q") == evaluate(plan, database, 0)
