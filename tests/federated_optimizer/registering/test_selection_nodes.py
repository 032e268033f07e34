"""Selections of one source become nodes with the columns of two queries where that sends less."""

from dataclasses import replace

from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    SourceFacts,
    Statistics,
)
from streamsql.algebra.operators import WindowBounds, walk_plan
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.federated_optimizer.registering.test_rows_there import CATALOG, Sites
from tests.streamsql.from_text import bound_query

OTHERS = Read("heard")
"""A relation that only the older query of a test reads."""
WHO = "SELECT who FROM steps WHERE n > 1"
STRONGER = "SELECT who FROM steps WHERE n > 2"
BOTH = "SELECT who, n FROM steps WHERE n > 1"
THIRD = "SELECT n, ts FROM steps WHERE n > 1"


def nodes(sites: Sites) -> dict[str, FragmentBundle]:
    return {name: run.bundle for name, run in sites.network.runs.items() if run.is_node}


def own_of_gateways(bundle: FragmentBundle) -> list[str]:
    return [fragment.id for fragment in bundle.own if fragment.engine == Engine.GATEWAY]


def test_a_further_column_makes_a_node_that_both_queries_may_read() -> None:
    sites = Sites()
    sites.add(WHO)
    reader = sites.add(BOTH)
    ((name, node),) = nodes(sites).items()
    assert node.schema.names == ("who", "n")
    assert [feed.run for feed in reader.feeds] == [name]
    assert not own_of_gateways(reader)
    # By its number it is older than who reads it.
    assert int(name[1:]) < int(reader.query[1:])


def test_a_stronger_bound_on_a_column_that_is_not_shown_is_a_filter_over_a_node() -> None:
    narrow = {
        ("steps", "who"): ColumnFacts(1_000.0, 1_000.0),
        ("steps", "n"): ColumnFacts(9.0, 9.0),
    }
    sites = Sites(Statistics(sources={"steps": SourceFacts(5_000.0, 50.0)}, columns=narrow))
    sites.add(WHO)
    reader = sites.add(STRONGER)
    ((name, node),) = nodes(sites).items()
    assert node.schema.names == ("who", "n")
    assert [feed.run for feed in reader.feeds] == [name]


def test_a_node_is_given_the_columns_that_a_third_query_wants() -> None:
    sites = Sites()
    for text in (WHO, BOTH, THIRD):
        sites.add(text)
    ((name, node),) = nodes(sites).items()
    assert node.schema.names == ("who", "n", "ts")
    assert node.version == 2
    assert sites.sent() == ["q1", name]


def test_columns_of_several_selections_are_together_in_one_node() -> None:
    """Two older queries have the rows sent with other columns, and may move both."""
    sites = Sites()
    sites.network.sharing = replace(sites.sharing, moves=False)
    for text in (THIRD, WHO):
        sites.add(text)
    sites.network.sharing = sites.sharing
    sites.add("SELECT ts, who, n FROM steps WHERE n > 1")
    ((_name, node),) = nodes(sites).items()
    assert set(node.schema.names) == {"n", "ts", "who"}


def test_a_shorter_window_makes_a_node_that_shows_the_event_time() -> None:
    sites = Sites()
    sites.add("SELECT who FROM steps [RANGE 1 HOUR]")
    reader = sites.add("SELECT who FROM steps [RANGE 10 MINUTES]")
    ((name, node),) = nodes(sites).items()
    assert node.schema.names == ("who", "ts")
    assert name in {feed.run for feed in reader.feeds}
    assert any(isinstance(n, WindowBounds) for f in reader.own for n in walk_plan(f.plan))
    # Another length reads the same rows.
    third = sites.add("SELECT who FROM steps [RANGE 20 MINUTES]")
    assert list(nodes(sites)) == [name]
    assert name in {feed.run for feed in third.feeds}


def test_a_node_that_the_query_would_leave_again_is_not_made() -> None:
    """Until the older query has moved onto it, the new one causes all of it."""
    columns = {("steps", "who"): ColumnFacts(9.0, 9.0), ("steps", "n"): ColumnFacts(4.0, 4.0)}
    known = Statistics(sources={"steps": SourceFacts(1e4, 100.0)}, columns=columns)
    for condition, is_made in (("n = 1", False), ("n <> 1", True)):
        sites = Sites(known)
        sites.add("SELECT who, ts FROM steps")
        sites.add(f"SELECT who, ts FROM steps WHERE {condition}")
        assert bool(nodes(sites)) is is_made, condition


def test_a_node_tells_what_the_older_query_reads() -> None:
    assert OTHERS in told_by(WHO, BOTH)


def told_by(older: str, newer: str) -> frozenset[Read]:
    """Return the relations that the queries of others read whose columns a new node has."""
    sites = Sites()
    bound = bound_query(older, CATALOG)
    sites.network.register(replace(bound, reads=bound.reads | {OTHERS}))
    made = sites.network.register(bound_query(newer, CATALOG)).registration
    assert made is not None
    (node,) = made.nodes
    return node.tells


def test_a_window_of_a_query_that_acts_is_its_own() -> None:
    sites = Sites()
    sites.add("SELECT who FROM steps [RANGE 1 HOUR]")
    bound = bound_query("SELECT who FROM steps [RANGE 10 MINUTES]", CATALOG)
    sites.network.register(replace(bound, whole_changes=True))
    assert not nodes(sites)


def test_the_older_query_goes_over_when_it_is_planned_again() -> None:
    sites = Sites()
    sites.add(WHO)
    sites.add(BOTH)
    ((name, _node),) = nodes(sites).items()
    sites.network.deregister("q1")
    again = sites.add(WHO)
    assert {feed.run for feed in again.feeds} <= {name, "q4"}
    assert not own_of_gateways(again)


def test_none_is_made_where_the_older_query_stays_where_it_is() -> None:
    sites = Sites()
    sites.network.sharing = replace(sites.sharing, moves=False)
    sites.add(WHO)
    sites.add(BOTH)
    assert not nodes(sites)
    assert sites.sent() == ["q1", "q2"]


def test_none_is_made_where_others_read_the_result_of_the_older_query() -> None:
    sites = Sites()
    sites.add(WHO)
    sites.add("SELECT who FROM steps WHERE n > 1 AND who LIKE 'a%'")
    sites.add(BOTH)
    assert not nodes(sites)


def test_a_very_selective_query_has_its_rows_sent() -> None:
    """To have the column of all rows sent would cost more than the few rows that are wanted."""
    columns = {("steps", "who"): ColumnFacts(9.0, 9.0), ("steps", "n"): ColumnFacts(1e4, 1e4)}
    known = Statistics(sources={"steps": SourceFacts(1e4, 100.0)}, columns=columns)
    for text, is_made in (
        ("SELECT who FROM steps WHERE n = 7", False),
        ("SELECT who, n FROM steps", True),
    ):
        sites = Sites(known)
        sites.add("SELECT who FROM steps")
        sites.add(text)
        assert bool(nodes(sites)) is is_made, text


def test_what_may_not_be_read_makes_no_node() -> None:
    sites = Sites()
    sites.add(WHO)
    sites.network.sharing = replace(sites.sharing, allowed=lambda _offer: False)
    sites.add(BOTH)
    assert not nodes(sites)


def test_a_part_of_a_query_reads_the_node_of_its_selection() -> None:
    sites = Sites()
    sites.add(WHO)
    reader = sites.add(f"{BOTH} EXCEPT SELECT rid, floor FROM rooms")
    ((name, node),) = nodes(sites).items()
    assert node.schema.names == ("who", "n")
    assert name in {feed.run for feed in reader.feeds}
    assert len(own_of_gateways(reader)) == 1
