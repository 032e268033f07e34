"""Ranked maintenance: after every change the view is the least fixpoint, and deltas are net."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.recursion.absorption.replicated import ReplicatedFixpoint
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.program import program_of
from stream_engine.recursion.ranked.best_engine import ranked_engine
from stream_engine.recursion.ranked.ranked_entries import DEAD, Entry
from stream_engine.recursion.strategies import recursive_operator
from stream_engine.testing.ranked_checks import (
    cheapest_and_shortest,
    extreme_label,
    odd_and_even,
    same_generation,
    widest_path,
)
from stream_engine.testing.recursion_programs import (
    cheapest_path,
    doubling,
    reachable,
    region,
    two_ways,
)
from streamsql.algebra.choices import Strategy
from streamsql.algebra.operators import Fixpoint, Plan
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row, Value
from streamsql.errors import RecursionLimitError
from streamsql.reference import Database, evaluate

Batches = list[list[tuple[str, Row]]]

NODES = st.sampled_from("abcde")
ELASTIC = st.sampled_from([0.0, RecursionOptions().elastic, 1.0])
CYCLE = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1)]


def links(costs: st.SearchStrategy[Value]) -> st.SearchStrategy[Batches]:
    event = st.tuples(st.just("link"), st.tuples(NODES, NODES, costs))
    return st.lists(st.lists(event, min_size=1, max_size=6), max_size=12)


SMALL_COSTS = links(st.integers(0, 3))
FLOAT_COSTS = links(st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 1e16]))
MAYBE_COSTS = links(st.sampled_from([None, 0, 1, 2, 2**63 - 1]))
REGION_EVENT = st.one_of(
    st.tuples(
        st.just("sensor"), st.tuples(st.integers(0, 4), st.integers(0, 3).map(float), st.just(0.0))
    ),
    st.tuples(st.just("triggered"), st.tuples(st.integers(0, 4))),
    st.tuples(st.just("seed"), st.tuples(st.integers(0, 1), st.integers(0, 4))),
)
REGION_BATCHES = st.lists(st.lists(REGION_EVENT, max_size=5), max_size=10)


class Relations:
    """Base relations whose rows are inserted when absent and deleted when present."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[Row, None]] = {}

    def toggle(self, name: str, row: Row) -> None:
        rows = self._rows.setdefault(name, {})
        if row in rows:
            del rows[row]
        else:
            rows[row] = None

    def database(self) -> Database:
        database = Database()
        for name, rows in self._rows.items():
            database.append(name, [SourceEvent(row, ts=0) for row in rows])
        return database


def ranked(node: Fixpoint, elastic: float = 1.0) -> ReplicatedFixpoint:
    return ReplicatedFixpoint(
        program_of(node),
        ranked_engine,
        site="one",
        sites=("one",),
        epoch=1,
        options=RecursionOptions(elastic=elastic),
    )


def users_of(entry: Entry) -> set[Entry]:
    users = entry.users
    if users is None:
        return set()
    return users if isinstance(users, set) else {users}


def leaf_delta(leaf: Plan, before: Database, after: Database) -> Delta:
    return difference(evaluate(leaf, after, 0), evaluate(leaf, before, 0))


def check(node: Fixpoint, batches: Batches, elastic: float) -> None:
    operator = ranked(node, elastic)
    relations = Relations()
    total: Delta = {}
    for batch in batches:
        before = relations.database()
        for name, row in batch:
            relations.toggle(name, row)
        after = relations.database()
        for port, leaf in enumerate(operator.leaves):
            operator.apply(port, leaf_delta(leaf, before, after))
        expected = difference(evaluate(node, after, 0), total)
        delta = operator.settle()
        assert delta == expected
        accumulate(total, delta)
        assert sorted(operator.state_rows(), key=repr) == sorted(total, key=repr)


@pytest.mark.parametrize(
    "node",
    [
        reachable(),
        two_ways(),
        cheapest_path(),
        cheapest_path(via=True),
        widest_path(),
        same_generation(),
        odd_and_even(),
        doubling(),
    ],
    ids=lambda node: f"{node.name}{len(node.schema)}",
)
@given(batches=SMALL_COSTS, elastic=ELASTIC)
def test_views_over_links(node: Fixpoint, batches: Batches, elastic: float) -> None:
    check(node, batches, elastic)


@given(batches=links(st.integers(1, 3)), elastic=ELASTIC)
def test_best_by_either_of_two_aggregates(batches: Batches, elastic: float) -> None:
    check(cheapest_and_shortest(), batches, elastic)


@pytest.mark.parametrize("minimum", [True, False])
@given(batches=links(st.sampled_from("pqr")), elastic=ELASTIC)
def test_best_text(minimum: bool, batches: Batches, elastic: float) -> None:
    """Text cannot wait in order of preference: rows come and are superseded in one change."""
    check(extreme_label(minimum=minimum), batches, elastic)


@pytest.mark.parametrize("costs", [FLOAT_COSTS, MAYBE_COSTS], ids=["floats", "null and overflow"])
@pytest.mark.parametrize("node", [cheapest_path(), widest_path()], ids=lambda node: node.name)
@settings(max_examples=max(settings().max_examples // 2, 1))
@given(data=st.data(), elastic=ELASTIC)
def test_selection_of_any_numbers(
    node: Fixpoint, costs: st.SearchStrategy[Batches], data: st.DataObject, elastic: float
) -> None:
    check(node, data.draw(costs), elastic)


@given(batches=REGION_BATCHES, elastic=ELASTIC)
def test_region_by_distance(batches: Batches, elastic: float) -> None:
    check(region(1.5), batches, elastic)


@pytest.mark.parametrize("elastic", [0.0, 1.0])
@pytest.mark.parametrize("node", [reachable(), cheapest_path()], ids=lambda node: node.name)
def test_a_cycle_does_not_hold_itself_up(node: Fixpoint, elastic: float) -> None:
    operator = ranked(node, elastic)
    entry, free = ("x", "a", 0), [(a, b, 0) for a, b, _ in CYCLE]
    operator.apply(0, dict.fromkeys([entry, *free], 1))
    operator.settle()
    before = set(operator.state_rows())
    operator.apply(0, {entry: -1})
    gone = {row for row in before if row[0] == "x"}
    assert operator.settle() == dict.fromkeys(gone, -1)
    operator.apply(0, dict.fromkeys(free, -1))
    operator.settle()
    assert set(operator.state_rows()) == set()


def test_a_row_that_goes_and_comes_back_in_one_change_is_in_no_delta() -> None:
    operator = ranked(reachable())
    operator.apply(0, dict.fromkeys([("a", "b", 1), ("b", "c", 1)], 1))
    operator.settle()
    operator.apply(0, {("a", "b", 1): -1, ("a", "d", 1): 1, ("d", "b", 1): 1})
    assert operator.settle() == {("a", "d"): 1, ("d", "b"): 1, ("d", "c"): 1}


def test_a_superseded_row_is_replaced_and_comes_back_when_the_better_one_dies() -> None:
    operator = ranked(cheapest_path())
    operator.apply(0, dict.fromkeys([("a", "b", 5), ("b", "c", 1)], 1))
    operator.settle()
    operator.apply(0, {("a", "b", 2): 1})
    better = operator.settle()
    assert better == {
        ("a", "b", 5): -1,
        ("a", "c", 6): -1,
        ("a", "b", 2): 1,
        ("a", "c", 3): 1,
    }
    operator.apply(0, {("a", "b", 2): -1})
    assert operator.settle() == {row: -weight for row, weight in better.items()}


@pytest.mark.parametrize("elastic", [0.0, 1.0])
def test_a_negative_cycle_ends_in_an_error_that_says_so(elastic: float) -> None:
    operator = ranked(cheapest_path(), elastic)
    operator.apply(0, dict.fromkeys(CYCLE, 1))
    operator.settle()
    operator.apply(0, {("a", "b", 1): -1, ("a", "b", -5): 1})
    with pytest.raises(RecursionLimitError, match="path still changes after") as caught:
        operator.settle()
    assert caught.value.hint == "check for a cycle of negative cost"


def test_a_cycle_that_adds_hops_at_no_cost_ends_in_an_error() -> None:
    """Every turn is another best path: there are infinitely many."""
    operator = ranked(cheapest_and_shortest())
    operator.apply(0, {("a", "b", 0): 1, ("b", "a", 0): 1})
    with pytest.raises(RecursionLimitError, match="both still changes after"):
        operator.settle()


def test_negative_costs_without_a_negative_cycle_are_taken() -> None:
    operator = ranked(cheapest_path())
    costs = [("a", "b", 4), ("a", "c", 2), ("c", "b", -3), ("b", "d", 1), ("d", "a", 9)]
    operator.apply(0, dict.fromkeys(costs, 1))
    delta = operator.settle()
    assert delta[("a", "d", 0)] == 1
    assert delta == dict.fromkeys(operator.state_rows(), 1)


def test_a_view_beyond_its_limit_stops_and_says_so() -> None:
    operator = ranked(reachable(limit=8))
    operator.apply(0, dict.fromkeys(CYCLE, 1))
    with pytest.raises(RecursionLimitError, match="reachable has more than 8 rows"):
        operator.settle()


def test_work_is_bounded_per_change() -> None:
    node = doubling()
    operator = ReplicatedFixpoint(
        program_of(node),
        ranked_engine,
        site="one",
        sites=("one",),
        epoch=1,
        options=RecursionOptions(max_derivations=20),
    )
    operator.apply(0, dict.fromkeys([(str(n), str(n + 1), 1) for n in range(9)], 1))
    with pytest.raises(RecursionLimitError, match="more than 20 derivations"):
        operator.settle()


def test_a_large_loss_is_computed_again_and_counted() -> None:
    chain = [(f"n{number:02}", f"n{number + 1:02}", 1) for number in range(20)]
    middle = chain[10]
    for node in (reachable(), cheapest_path()):
        operator = ranked(node, elastic=0.2)
        operator.apply(0, dict.fromkeys(chain, 1))
        operator.settle()
        operator.apply(0, {chain[-1]: -1})
        assert len(operator.settle()) == 20
        assert operator.counters.recomputed == 0
        operator.apply(0, {middle: -1})
        gone = operator.settle()
        assert operator.counters.recomputed == 1
        assert len(gone) == 11 * 9
        operator.apply(0, {middle: 1})
        assert operator.settle() == dict.fromkeys(gone, 1)


def test_a_death_costs_what_it_touches() -> None:
    """A link that only a few rows rest on is taken away from a large view."""
    links = [(f"n{number}", f"n{(number + 1) % 60}", 1) for number in range(60)]
    operator = ranked(reachable())
    operator.apply(0, dict.fromkeys([*links, ("x", "n0", 1), ("x", "n1", 1)], 1))
    operator.settle()
    before = operator.counters.derivations
    operator.apply(0, {("x", "n1", 1): -1})
    assert operator.settle() == {}
    assert operator.counters.derivations - before <= 60
    operator.apply(0, {("x", "n0", 1): -1})
    assert operator.settle() == dict.fromkeys([("x", f"n{number}") for number in range(60)], -1)


@pytest.mark.parametrize("node", [reachable(), cheapest_path()], ids=lambda node: node.name)
def test_nothing_is_left_when_everything_has_gone(node: Fixpoint) -> None:
    program = program_of(node)
    engine = ranked_engine(program, RecursionOptions(elastic=1.0))
    width = len(program.uses[0].columns)
    rows = [row[:width] for row in [*CYCLE, ("a", "d", 0), ("d", "b", 7), ("b", "a", 0)]]
    for _ in range(3):
        for row in rows:
            engine.change([[row]], [[]])
        for row in rows:
            engine.change([[]], [[row]])
    assert engine.size() == 0
    proofs = engine._proofs  # type: ignore[attr-defined]
    assert proofs.live == proofs.superseded == 0
    for table in proofs.tables.values():
        assert not len(table)
        assert not any(index for _, index in table._indexes.values())
    assert not getattr(engine, "_groups", {})


@pytest.mark.parametrize(
    "node",
    [reachable(), cheapest_path(), extreme_label(minimum=True), doubling()],
    ids=lambda node: node.name,
)
def test_every_row_rests_on_older_ones_and_these_know_it(node: Fixpoint) -> None:
    chooser = random.Random(7)
    program = program_of(node)
    width = len(program.uses[0].columns)
    engine = ranked_engine(program, RecursionOptions(elastic=1.0))
    proofs = engine._proofs  # type: ignore[attr-defined]
    links: set[Row] = set()
    kept = 0
    for _ in range(300):
        value: Value = chooser.choice("pqr") if node.name == "least" else chooser.randint(0, 2)
        row: Row = (chooser.choice("abcde"), chooser.choice("abcde"), value)[:width]
        if row in links:
            engine.change([[]], [[row]])
        else:
            engine.change([[row]], [[]])
        links ^= {row}
        superseded = superseded_below(list(proofs.view))
        assert len(superseded) == proofs.superseded
        kept = max(kept, len(superseded))
    assert (kept > 0) == (node.name == "least")


def superseded_below(entries: list[Entry]) -> set[Entry]:
    """Check proofs; return the superseded rows that they use."""
    checked: set[Entry] = set()
    while entries:
        entry = entries.pop()
        if entry not in checked:
            checked.add(entry)
            for part in entry.proof:
                assert abs(part.rank) < abs(entry.rank) < DEAD
                assert entry in users_of(part)
            assert all(entry in user.proof for user in users_of(entry))
            entries.extend(entry.proof)
    return {entry for entry in checked if entry.rank < 0}


@pytest.mark.parametrize("strategy", ["auto", "ranked"])
def test_it_is_chosen_by_name_and_where_no_kernel_fits(strategy: str) -> None:
    operator = recursive_operator(
        same_generation(),
        site="one",
        sites=("one",),
        epoch=1,
        options=RecursionOptions(strategy=Strategy(strategy)),
    )
    assert operator.description == "ranked"
