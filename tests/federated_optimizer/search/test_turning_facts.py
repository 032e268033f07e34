"""Turning facts: beyond the value the other plan is cheaper, a little before it is not."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives, compared
from federated_optimizer.search.choosing import NOTHING_RUNS
from federated_optimizer.search.turning_facts import TURNING_SECONDS, Turn, Varied
from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    Passing,
    SourceFacts,
    Statistics,
)
from host.clocks import time_left
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE temp (rid TEXT, celsius DOUBLE, level INTEGER);
    CREATE SOURCE room (rid TEXT, open BOOLEAN, n INTEGER, PRIMARY KEY (rid));"""
)
NAMES = frozenset({"temp", "room"})
TOPOLOGY = Topology(dict.fromkeys(("gw-1", "gw-2", "gw-3"), NAMES))
QUERIES = [
    "SELECT MAX(celsius) AS m FROM temp [RANGE 1 MINUTE]",
    "SELECT level, SUM(level) AS s FROM temp [RANGE 1 MINUTE] GROUP BY level",
    "SELECT DISTINCT level FROM temp [RANGE 1 MINUTE] WHERE celsius > 30.0",
    "SELECT * FROM temp [RANGE 1 MINUTE] ORDER BY celsius LIMIT 3",
    "SELECT rid, MAX(celsius) AS m FROM temp [RANGE 1 MINUTE] GROUP BY rid",
    "SELECT open, COUNT(*) AS c FROM room WHERE n > 3 GROUP BY open",
    "SELECT r.rid, celsius FROM temp [RANGE 1 MINUTE] t JOIN room r ON t.rid = r.rid WHERE n > 3",
]
KNOWN = Statistics(
    sources={"temp": SourceFacts(None, 20.0), "room": SourceFacts(600, 2.0)},
)

ROOMS = ColumnFacts(distinct=100.0, local=100.0)
COUNTED = replace(KNOWN, columns={("temp", "rid"): ROOMS})


def repr_of(statistics: Statistics) -> str:
    if not statistics.sources:
        return "nothing known"
    return "with columns" if statistics.columns else "measured"


def always() -> bool:
    return True


def turns(text: str, statistics: Statistics, more: Callable[[], bool] = always) -> tuple[Turn, ...]:
    return compared(bound_query(text, CATALOG), TOPOLOGY, statistics, NOTHING_RUNS, more)[1]


def with_fact(statistics: Statistics, turn: Turn, value: float) -> Statistics:
    """Return the statistics as somebody would have measured them."""
    name = turn.subject.lower()
    known = statistics.sources.get(name, SourceFacts())
    if turn.varied == Varied.DISTINCT:
        return replace(statistics, columns={("temp", "rid"): ColumnFacts(value, value)})
    if turn.varied == Varied.SHARE:
        passing = {(name, turn.predicate): Passing(value, value, value)}
        return replace(statistics, passing=passing)
    changed = replace(known, rows=value)
    if turn.varied == Varied.CHANGES:
        changed = replace(known, changes=value)
    return replace(statistics, sources={**statistics.sources, name: changed})


def costs(text: str, statistics: Statistics) -> dict[int, float]:
    found = alternatives(bound_query(text, CATALOG), TOPOLOGY, statistics)
    return {each.number: each.cost.bytes for each in found.listed}


@pytest.mark.parametrize("statistics", [KNOWN, COUNTED, Statistics()], ids=repr_of)
@pytest.mark.parametrize("text", QUERIES)
def test_the_choice_turns_at_the_value(text: str, statistics: Statistics) -> None:
    chosen = alternatives(bound_query(text, CATALOG), TOPOLOGY, statistics).chosen
    for turn in turns(text, statistics):
        assert turn.plan != chosen
        step = 1.1 if turn.value > turn.now else 1 / 1.1
        beyond = costs(text, with_fact(statistics, turn, turn.value * 1.0001))
        before = costs(text, with_fact(statistics, turn, turn.value / step))
        assert beyond[turn.plan] <= beyond[chosen], turn
        assert before[turn.plan] >= before[chosen], turn
        if turn.taken:
            at = with_fact(statistics, turn, turn.value * (1.05 if step > 1 else 1 / 1.05))
            assert alternatives(bound_query(text, CATALOG), TOPOLOGY, at).chosen == turn.plan


def test_some_choices_turn_by_each_kind_of_fact() -> None:
    found = {turn.varied for text in QUERIES for turn in turns(text, KNOWN)}
    assert found >= {Varied.CHANGES, Varied.SHARE}, found


def test_the_number_of_values_turns_choices_too() -> None:
    """Groups cost what there are of them."""
    found = [turn for text in QUERIES for turn in turns(text, COUNTED)]
    told = [turn for turn in found if turn.varied == Varied.DISTINCT]
    assert told, found
    assert {turn.subject for turn in told} == {"temp.rid"}
    assert not any(turn.assumed for turn in told)


def test_what_is_assumed_is_said() -> None:
    found = [turn for text in QUERIES for turn in turns(text, Statistics())]
    assert found
    assert all(turn.assumed for turn in found)
    rates = [t for text in QUERIES for t in turns(text, KNOWN) if t.varied == Varied.CHANGES]
    assert not any(turn.assumed for turn in rates)


def test_no_memo_is_priced_when_there_is_no_time() -> None:
    assert turns(QUERIES[0], KNOWN, lambda: False) == ()
    asked = count()
    turns(QUERIES[-1], KNOWN, lambda: next(asked) < 5)
    assert next(asked) < 40


def test_the_time_of_this_thread_runs_out() -> None:
    more = time_left(0.01)
    assert more()
    while more():
        pass
    assert not time_left(0.0)()
    assert TURNING_SECONDS <= 0.2


@pytest.mark.parametrize("gateways", [1, 12])
@pytest.mark.parametrize("rows", [None, 400.0, 1000.0])
def test_nothing_turns_below_two_rows(gateways: int, rows: float | None) -> None:
    topology = Topology({f"gw-{number}": NAMES for number in range(gateways)})
    known = Statistics(sources={} if rows is None else {"room": SourceFacts(rows, 10.0)})
    bound = bound_query("SELECT MAX(n) AS most FROM room", CATALOG)
    _, found = compared(bound, topology, known, NOTHING_RUNS, always)
    assert all(t.value >= 2.0 for t in found if t.varied == Varied.ROWS), found
