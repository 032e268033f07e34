"""Shares of rows that pass: counted ones where there are, else defaults with their range."""

from dataclasses import replace

import pytest

from federated_optimizer.coordinator.facts.planned_facts import PassingRows
from federated_optimizer.statistics.fact import (
    DAY,
    Fact,
    Origin,
    Quantity,
    Subject,
    SubjectKind,
)
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.passing_rows import passed
from federated_optimizer.statistics.planning_statistics import ColumnFacts, Passing, Statistics
from streamsql.algebra.operators import Filter, RemoteSource, walk_plan
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE Heat (room TEXT, celsius DOUBLE); CREATE TABLE t (room TEXT PRIMARY KEY);"
)


def filtered(where: str, relation: str = "heat") -> Filter:
    plan = bound_query(f"SELECT * FROM {relation} WHERE {where}", CATALOG).plan
    return next(node for node in walk_plan(plan) if isinstance(node, Filter))


def known(**shares: float) -> Statistics:
    texts = {"hot": "celsius > 30.0", "here": "room = 'a'", "both": "celsius > 30.0 AND room = 'a'"}
    found = {("heat", texts[n]): Passing(s, s / 2, min(2 * s, 1.0)) for n, s in shares.items()}
    return Statistics(passing=found)


def test_without_counts_defaults_are_named_with_their_range() -> None:
    found = passed(filtered("celsius > 30.0 AND room = 'a'"), Statistics())
    assert found.share == pytest.approx(1 / 30)
    assert set(found.assumed) == {
        "celsius > 30.0 holds for 0.33 of the rows (0.0001 to 1)",
        "room = 'a' holds for 0.1 of the rows (0.0001 to 1)",
    }
    assert found.low <= found.share <= found.high


def test_counts_of_the_whole_condition_are_taken_first() -> None:
    both = filtered("room = 'a' AND celsius > 30.0")
    found = passed(both, known(hot=0.5, here=0.2, both=0.19))
    assert (found.share, found.low, found.high, found.assumed) == (0.19, 0.095, 0.38, ())
    found = passed(both, known(hot=0.5, here=0.2))
    assert found.share == pytest.approx(0.1)
    assert not found.assumed
    found = passed(both, known(hot=0.5))
    assert found.share == pytest.approx(0.05)
    assert found.assumed == ("room = 'a' holds for 0.1 of the rows (0.0001 to 1)",)


def test_counts_of_a_source_say_nothing_about_another() -> None:
    found = passed(filtered("room = 'a'", "t"), known(here=0.2))
    assert found.share == pytest.approx(0.1)
    assert found.assumed


def test_a_count_fades_to_the_range_of_the_default() -> None:
    facts = Facts()
    subject = Subject(SubjectKind.PREDICATE, "heat", "celsius > 30.0")
    fact = Fact(subject, Quantity.SELECTIVITY, 0.2, 0.18, 0.22, 0, 1.0, Origin.COUNTED)
    facts.put(fact)
    fresh, old = PassingRows(facts, 0), PassingRows(facts, 20 * DAY)
    assert dict(fresh) == {("heat", "celsius > 30.0"): Passing(0.2, 0.18, 0.22)}
    assert len(fresh) == 1
    aged = old["heat", "celsius > 30.0"]
    assert aged.share == 0.2
    assert aged.low < 0.001
    assert aged.high > 0.99
    with pytest.raises(KeyError):
        fresh["heat", "celsius > 31.0"]


def test_columns_of_stored_tables_give_shares_too() -> None:
    facts = {("t", "room"): ColumnFacts(4.0, 4.0, nulls=0.2)}
    known = Statistics(columns=facts)
    assert passed(filtered("room = 'a'", "t"), known).share == pytest.approx(0.2)


@pytest.mark.parametrize(("where", "share"), [("IS NULL", 0.3), ("IS NOT NULL", 0.7)])
def test_null_is_as_frequent_as_it_was_counted(where: str, share: float) -> None:
    facts = {("heat", "room"): ColumnFacts(4.0, 4.0, nulls=0.3, unsure=0.1)}
    found = passed(filtered(f"room {where}"), Statistics(columns=facts))
    assert found.share == pytest.approx(share)
    assert found.low == pytest.approx(share - 0.1)
    assert found.high == pytest.approx(share + 0.1)
    assert not found.assumed
    assert passed(filtered(f"room {where}"), Statistics()).assumed


JOINED = "(SELECT h.room, h.celsius + 1.0 AS more, h.celsius, t.room AS other FROM {}) q"
INNER = JOINED.format("heat h JOIN t ON h.room = t.room")
COUNTED = Statistics(
    columns={("heat", "celsius"): ColumnFacts(50.0, 50.0), ("t", "room"): ColumnFacts(4.0, 4.0)},
    passing={("heat", "celsius > 30.0"): Passing(0.2, 0.1, 0.3)},
)


@pytest.mark.parametrize(
    ("where", "share"),
    [
        ("celsius = 2.5", 1 / 50),
        ("other = 'a'", 1 / 4),
        ("other = 'a' AND celsius = 2.5", 1 / 200),
        ("celsius > 30.0 AND other = 'a'", 0.2 / 4),
    ],
)
def test_above_a_join_shares_are_those_of_sources(where: str, share: float) -> None:
    found = passed(filtered(where, INNER), COUNTED)
    assert found.share == pytest.approx(share)
    assert not found.assumed
    leaf = RemoteSource("@q1/f0", filtered(where, INNER).input.schema)
    over_node = Filter(leaf, filtered(where, INNER).predicate)
    assert passed(over_node, COUNTED).assumed
    node = replace(COUNTED, nodes={leaf.fragment: filtered(where, INNER).input})
    assert passed(over_node, node) == found


@pytest.mark.parametrize(
    ("where", "relation", "why"),
    [
        ("celsius < more", INNER, "a computed value"),
        ("room = other", INNER, "of two sources"),
        ("other = 'a'", JOINED.format("heat h LEFT JOIN t ON h.room = t.room"), "NULL is added"),
        ("n = 2.5", "(SELECT room, MAX(celsius) AS n FROM heat GROUP BY room) q", "of groups"),
        (
            "celsius = 2.5",
            JOINED.format("(SELECT * FROM heat WHERE celsius < 9.0) h JOIN t ON h.room = t.room"),
            "some are left out already",
        ),
    ],
)
def test_what_sources_do_not_tell_is_assumed(where: str, relation: str, why: str) -> None:
    assert passed(filtered(where, relation), COUNTED).assumed, why
