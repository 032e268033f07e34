"""Joins with stored tables as plans to choose from: the table travels, or is asked for keys."""

from dataclasses import replace

import pytest

from federated_optimizer import plan as place_plan
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives
from federated_optimizer.search.choosing import Alternatives
from federated_optimizer.statistics.default_facts import SPARK_FLOOR
from federated_optimizer.statistics.planning_statistics import ColumnFacts, SourceFacts, Statistics
from streamsql.algebra.operators import RemoteSource, walk_plan
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    """CREATE SOURCE seat (mid TEXT, rid TEXT, weight INTEGER, PRIMARY KEY (mid));
    CREATE TABLE lease (rid TEXT, tenant TEXT);
    CREATE TABLE machine (mid TEXT, host TEXT, PRIMARY KEY (mid));"""
)
TOPOLOGY = Topology(dict.fromkeys(("gw-1", "gw-2"), frozenset({"seat"})))
SPREAD = Topology(TOPOLOGY.gateways, bases=("b1", "b2"))
HOSTS = "SELECT s.mid, m.host FROM seat s JOIN machine m ON m.mid = s.mid"
TENANTS = "SELECT s.mid, l.tenant FROM seat s JOIN lease l ON l.rid = s.rid"


def facts(seats: float, changes: float, stored: float | None) -> Statistics:
    return Statistics(
        sources={
            "seat": SourceFacts(seats, changes),
            "lease": SourceFacts(stored),
            "machine": SourceFacts(stored),
        }
    )


def asks(bundle: FragmentBundle) -> bool:
    stored = [f for f in bundle.fragments if f.engine == Engine.STATIC]
    return any(isinstance(node, RemoteSource) for f in stored for node in walk_plan(f.plan))


def planned(
    text: str, topology: Topology, statistics: Statistics, asked: int = 0
) -> FragmentBundle:
    bound = replace(bound_query(text, CATALOG), asked=asked)
    return place_plan(bound, topology, query="q", statistics=statistics)


def listed(text: str, statistics: Statistics = Statistics()) -> Alternatives:  # noqa: B008
    return alternatives(bound_query(text, CATALOG), TOPOLOGY, statistics)


@pytest.mark.parametrize("topology", [TOPOLOGY, SPREAD], ids=["one base", "two bases"])
@pytest.mark.parametrize(
    ("text", "seats", "stored", "by_keys"),
    [
        (HOSTS, 40.0, 1e6, True),
        (TENANTS, 40.0, 1e6, True),
        (HOSTS, 40.0, 30.0, False),
        (TENANTS, 40.0, 5.0, False),
        (HOSTS, 400.0, 200.0, False),  # more keys than rows
        (HOSTS, 20_000.0, 20_000.0, False),
        (HOSTS, 40.0, None, False),  # nobody has counted the table
        (TENANTS, 40.0, None, False),
    ],
)
def test_a_large_table_is_asked_and_a_small_one_is_sent(
    topology: Topology,
    text: str,
    seats: float,
    stored: float | None,
    by_keys: bool,
) -> None:
    assert asks(planned(text, topology, facts(seats, 0.1, stored))) == by_keys


def test_keys_that_come_and_go_fast_are_dearer_than_the_table() -> None:
    often = Statistics(
        sources={
            "seat": SourceFacts(40.0, 20.0),
            "machine": SourceFacts(20_000.0),
            "lease": SourceFacts(20_000.0),
        }
    )
    rare = replace(often, sources={**often.sources, "seat": SourceFacts(40.0, 0.01)})
    text = f"{HOSTS} WHERE s.weight < 5"
    assert not asks(planned(text, TOPOLOGY, often))
    assert asks(planned(text, TOPOLOGY, rare))


def by_keys(text: str) -> float:
    known = facts(4_000.0, 10.0, 1e6)
    asked = (each for each in listed(text, known).listed if "asked for keys" in each.words)
    return min(each.cost.bytes for each in asked)


def test_keys_of_rows_that_a_condition_leaves_out_cost_nothing() -> None:
    # With all columns the condition is right below the keys.
    text = "SELECT s.mid, s.rid, s.weight, m.host FROM seat s JOIN machine m ON m.mid = s.mid"
    assert by_keys(f"{text} WHERE s.weight = 5") < 0.2 * by_keys(text)


@pytest.mark.parametrize("text", [HOSTS, TENANTS])
def test_both_can_be_asked_for(text: str) -> None:
    statistics = facts(40.0, 0.1, 1e6)
    found = listed(text, statistics)
    by_keys = {each.number for each in found.listed if "asked for keys" in each.words}
    assert by_keys
    assert by_keys != {each.number for each in found.listed}
    for each in found.listed:
        assert asks(planned(text, TOPOLOGY, statistics, each.number)) == (each.number in by_keys)


def test_a_question_takes_a_way_there_and_one_back() -> None:
    found = listed(HOSTS, facts(40.0, 0.1, 1e6))
    times = {"asked for keys" in each.words: each.cost.milliseconds for each in found.listed}
    way = times[False]
    # The row comes, its key goes, it is looked up, and what is found comes.
    assert times[True] == pytest.approx(3 * way + 1_000 * SPARK_FLOOR.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT s.mid FROM seat s FULL JOIN machine m ON m.mid = s.mid", "that no key asks for"),
        (
            "SELECT m.mid, s.rid FROM machine m LEFT JOIN seat s ON m.mid = s.mid",
            "that no key asks for",
        ),
        (
            "SELECT s.mid, host FROM seat s LEFT JOIN machine m ON m.mid = s.mid AND host > rid",
            "depends on more than its key",
        ),
        ("SELECT s.mid FROM seat s JOIN machine m ON m.mid > s.mid", "compares no columns by ="),
        ("SELECT s.mid FROM seat s JOIN sys_facts t ON t.subject = s.mid", "by the coordinator"),
        ("SELECT mid FROM seat EXCEPT SELECT mid FROM machine", "only joins by equal columns"),
    ],
)
def test_what_is_not_asked_for_keys_is_refused_in_words(text: str, told: str) -> None:
    found = listed(text)
    assert any(told in reason for reason in found.refused)
    assert not any("asked for keys" in each.words for each in found.listed)


@pytest.mark.parametrize(("size", "by_keys"), [(1.0, False), (1_000.0, True)])
def test_long_texts_stay_in_their_table(size: float, by_keys: bool) -> None:
    known = replace(facts(40.0, 0.3, 100.0), text_bytes={("lease", "tenant"): size})
    assert asks(planned(TENANTS, TOPOLOGY, known)) == by_keys


@pytest.mark.parametrize(("values", "by_keys"), [(3.0, False), (3_000.0, True)])
def test_keys_that_many_rows_have_bring_as_many(values: float, by_keys: bool) -> None:
    counted = {("lease", "rid"): ColumnFacts(values, values)}
    known = replace(facts(40.0, 0.6, 3_000.0), columns=counted)
    assert asks(planned(TENANTS, TOPOLOGY, known)) == by_keys
