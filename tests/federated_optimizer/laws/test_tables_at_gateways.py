"""Joins with stored tables at gateways answer as DuckDB does, whatever comes, goes or dies."""

from dataclasses import replace

import pytest

from federated_optimizer import Topology
from federated_optimizer.alternatives.heuristics import NONE
from federated_optimizer.alternatives.joins.stored_at_gateways import OUTGROWN, STORED
from federated_optimizer.alternatives.method import TO_GATEWAYS, Method
from federated_optimizer.search.cut_prices import CutPrices
from federated_optimizer.search.joins.network_joins import TABLE_IN_PARTS
from federated_optimizer.search.turning_facts import Varied, turning_facts
from federated_optimizer.statistics.planning_statistics import (
    NOTHING_KNOWN,
    ColumnFacts,
    SourceFacts,
    Statistics,
)
from stream_engine.simulation.network import Faults
from streamsql.wire.fragments import Engine
from tests.federated_optimizer.simulated_tables import (
    ONE_BASE,
    QUERIES,
    STATIC,
    THREE_BASES,
    Federation,
    Plans,
)

LEFT, TABLE_FIRST, FULL = QUERIES[3], QUERIES[7], QUERIES[8]
CASES = [(text, ONE_BASE) for text in QUERIES] + [(text, THREE_BASES) for text in QUERIES[::4]]


@pytest.mark.parametrize(("text", "topology"), CASES)
def test_all_plans_answer_as_duckdb_while_rows_of_both_sides_come_and_go(
    text: str, topology: Topology
) -> None:
    plans = Plans(text, topology)
    for number in sorted({1, plans.count, *plans.stored().values()}):
        faults = Faults(loss=0.05, repetition=0.05) if number % 2 else None
        federation = Federation(topology, seed=number, faults=faults)
        federation.network.install(plans.bundle(number))
        for _ in range(3):
            federation.happen(8)
            assert federation.rest() == federation.expected(text), number


def test_every_kind_of_join_has_the_methods_that_are_right_for_it() -> None:
    found = {text: set(Plans(text, ONE_BASE).stored()) for text in QUERIES}
    rows = {Method.STORED_ROWS}
    assert found[QUERIES[0]] == found[QUERIES[1]] == set(STORED)
    assert found[LEFT] == found[QUERIES[5]] == rows  # NOT EXISTS
    assert found[QUERIES[4]] == set(STORED)  # EXISTS
    assert found[QUERIES[6]] == {Method.STORED_KEYS}  # rows of the table that have a partner
    assert not found[TABLE_FIRST]
    assert not found[FULL]
    for text in (LEFT, TABLE_FIRST, FULL):
        refused = Plans(text, ONE_BASE).search.memo.refused
        for method in set(STORED) - found[text]:
            assert any(str(method) in reason for reason in refused), (text, method)


@pytest.mark.parametrize("text", QUERIES)
def test_a_plan_says_what_it_is_cut_into_and_is_priced_so(text: str) -> None:
    plans = Plans(text, ONE_BASE)
    for number in range(1, plans.count + 1, max(plans.count // 40, 1)):
        choice = plans.search.plan(number)
        bundle = plans.bundle(number)
        engines = {f.id: f.engine for f in bundle.fragments}
        down = any(
            f.engine == Engine.STATIC and engines.get(f.consumer) == Engine.GATEWAY
            for f in bundle.fragments
        )
        used = set(choice.methods)
        assert down == (not set(STORED).isdisjoint(used)), number
        if Method.KEYS in used:
            continue  # of its answers
        cut = CutPrices.of(choice.taken, ONE_BASE, NOTHING_KNOWN)
        assert choice.cost.bytes == pytest.approx(cut.bytes, rel=0.02), (number, choice.methods)


LIFTED = (
    *QUERIES[-2:],
    "SELECT s.mid, p.rid FROM seat s, place p WHERE p.floor = 1 AND s.weight = 2",
    "SELECT s.mid, p.rid FROM seat s JOIN place p ON s.weight < p.floor",
)
"""Two tables, a join of gateways with a table, a product, and a join without an equality."""


@pytest.mark.parametrize("text", LIFTED)
def test_without_heuristics_gateways_join_tables_with_what_they_have_joined(text: str) -> None:
    few, plans = Plans(text, ONE_BASE), Plans(text, ONE_BASE, kept=NONE)
    assert plans.count > few.count
    found: dict[tuple[Method, ...], int] = {}
    for number in range(1, plans.count + 1, max(plans.count // 400, 1)):
        used = sorted(set(STORED).intersection(plans.search.plan(number).methods))
        joins = sum(method in TO_GATEWAYS for method in plans.search.plan(number).methods)
        if used:
            found[*used, *((used[0],) * joins)] = number
    assert found
    for number in found.values():
        federation = Federation(ONE_BASE, seed=number)
        federation.network.install(plans.bundle(number))
        for _ in range(2):
            federation.happen(8)
            assert federation.rest() == federation.expected(text), number


@pytest.mark.parametrize("method", STORED)
@pytest.mark.parametrize("text", [QUERIES[0], QUERIES[2], QUERIES[4], QUERIES[9]])
def test_sites_that_die_and_come_back_and_other_plans_change_no_answer(
    text: str, method: Method
) -> None:
    plans = Plans(text, ONE_BASE)
    numbers = plans.stored()
    federation = Federation(ONE_BASE, seed=len(text))
    federation.network.install(plans.bundle(numbers[method]))
    others = sorted({1, plans.count, *numbers.values()})
    for turn, lost in enumerate((*ONE_BASE.gateways, *ONE_BASE.bases, STATIC), start=1):
        federation.happen(8)
        federation.kill(lost)
        federation.happen(4)
        if lost not in ONE_BASE.bases:  # without whom nobody answers
            assert federation.rest() == federation.expected(text), f"without {lost}"
        federation.restart(lost)
        federation.happen(4)
        assert federation.rest() == federation.expected(text), f"with {lost} again"
        bundle = plans.bundle(others[turn % len(others)], version=2 * turn)
        for site in federation.random.sample(list(federation.network.sites), 4):
            federation.network.install(bundle, at=[site])
            federation.happen(1)
        federation.network.install(bundle)
        assert federation.rest() == federation.expected(text), f"turn {turn}"
        federation.network.install(plans.bundle(numbers[method], version=2 * turn + 1))


@pytest.mark.parametrize("method", STORED)
def test_a_gateway_that_comes_late_gets_the_table_and_its_changes(method: Method) -> None:
    text = QUERIES[0]
    plans = Plans(text, ONE_BASE)
    federation = Federation(ONE_BASE, seed=3)
    federation.kill("s0")
    federation.change(STATIC, "place", ("r1", "lab", 1))
    federation.network.install(plans.bundle(plans.stored()[method]))
    assert federation.rest() == {}
    federation.restart("s0")
    federation.change("s0", "seat", ("s0", "r1", 2))
    assert federation.rest() == federation.expected(text) == {("s0", "lab"): 1}
    federation.change(STATIC, "place", ("r1", "lab", 2))
    assert federation.rest() == federation.expected(text) == {}
    federation.change(STATIC, "place", ("r1", "hall", 1))
    assert federation.rest() == federation.expected(text) == {("s0", "hall"): 1}


def test_alarms_and_sinks_have_no_such_plan() -> None:
    plans = Plans(QUERIES[0], ONE_BASE, whole_changes=True)
    assert not plans.stored()
    (said,) = [each for each in plans.search.memo.refused if each.endswith(TABLE_IN_PARTS)]
    assert all(method in said for method in STORED)
    listed = Plans(QUERIES[0], ONE_BASE).search.alternatives().listed
    assert {each.whole_changes for each in listed} == {True, False}


def with_rows(count: float) -> Statistics:
    facts = {"seat": SourceFacts(600.0, 120.0), "place": SourceFacts(count)}
    return Statistics(sources=facts)


def test_a_table_that_gateways_cannot_keep_stays_away_from_them() -> None:
    text = "SELECT s.mid, p.label FROM seat s JOIN place p ON s.rid = p.rid"
    assert set(Plans(text, ONE_BASE, with_rows(9_000)).stored()) == set(STORED)
    large = Plans(text, ONE_BASE, with_rows(11_000))
    assert not large.stored()
    said = [each for each in large.search.memo.refused if "at most 10,000" in each]
    assert said
    assert all("place may have 11,000 rows" in each for each in said)
    # Of a filter that nobody has seen the estimate may be wrong by twice, either way.
    some = "SELECT s.mid, p.label FROM seat s JOIN place p ON s.rid = p.rid WHERE p.floor = 1"
    assert Plans(some, ONE_BASE, with_rows(40_000)).stored()
    assert not Plans(some, ONE_BASE, with_rows(60_000)).stored()


def test_a_query_whose_table_has_outgrown_its_gateways_sends_them_none() -> None:
    text = "SELECT s.mid, p.label FROM seat s JOIN place p ON s.rid = p.rid"
    outgrown = Plans(text, ONE_BASE, replace(with_rows(10), outgrown=True))
    assert not outgrown.stored()
    said = [each for each in outgrown.search.memo.refused if OUTGROWN in each]
    assert all(any(str(method) in each for each in said) for method in STORED)


def test_a_gateway_keeps_keys_of_rows_that_are_too_wide_for_it() -> None:
    text = "SELECT s.mid, p.label, p.floor FROM seat s JOIN place p ON s.rid = p.rid"
    rows = with_rows(9_000)
    wide = replace(rows, row_bytes={("place", "floor, label, rid"): 500.0})
    assert set(Plans(text, ONE_BASE, wide).stored()) == {Method.STORED_KEYS}


def test_few_rows_of_a_selective_table_are_worth_their_way_to_the_gateways() -> None:
    text = "SELECT s.mid, s.weight, t.tag FROM seat s JOIN tag t ON s.mid = t.mid"
    busy = {"seat": SourceFacts(600.0, 120.0), "tag": SourceFacts(2.0)}
    few = Plans(text, ONE_BASE, Statistics(sources=busy))
    chosen = few.search.taken()
    assert not TO_GATEWAYS.isdisjoint(chosen.methods)
    still = {"seat": SourceFacts(600.0, 0.001), "tag": SourceFacts(8_000.0)}
    many = Plans(text, ONE_BASE, Statistics(sources=still))
    assert TO_GATEWAYS.isdisjoint(many.search.taken().methods)


def test_a_table_that_grows_too_large_turns_the_choice() -> None:
    text = "SELECT s.mid, p.label FROM seat s JOIN place p ON s.rid = p.rid"
    columns = {("seat", "rid"): ColumnFacts(9_000.0, 4_500.0)}
    facts = {"seat": SourceFacts(9_000.0, 900.0), "place": SourceFacts(3_000.0)}
    search = Plans(text, ONE_BASE, Statistics(sources=facts, columns=columns)).search
    taken = search.taken()
    assert not set(STORED).isdisjoint(taken.methods)
    turns = turning_facts(search, taken, search.alternatives().listed, lambda: True)
    grown = [turn for turn in turns if turn.varied == Varied.ROWS and turn.subject == "place"]
    assert grown
    assert all(turn.value <= 10_500 for turn in grown)
