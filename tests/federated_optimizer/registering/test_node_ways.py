"""Groups, distinct and first rows are computed at the base over a node of rows that others want."""

from dataclasses import replace

from federated_optimizer.statistics.planning_statistics import ColumnFacts, SourceFacts, Statistics
from streamsql.algebra.operators import WindowBounds, Younger, walk_plan
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.federated_optimizer.registering.test_rows_there import CATALOG, Sites
from tests.federated_optimizer.registering.test_selection_nodes import (
    BOTH,
    WHO,
    nodes,
    own_of_gateways,
)
from tests.streamsql.from_text import bound_query

SUMS = "SELECT who, SUM(n) AS s FROM steps WHERE n > 1 GROUP BY who"
GREATEST = "SELECT who, MAX(n) AS s FROM steps WHERE n > 1 GROUP BY who"
LONG = "SELECT who, n, ts FROM steps [RANGE 2 HOURS]"


def counts(window: str) -> str:
    return f"SELECT who, COUNT(n) AS c FROM steps [RANGE {window}] GROUP BY who"


def kinds(bundle: FragmentBundle) -> set[type]:
    return {type(node) for fragment in bundle.own for node in walk_plan(fragment.plan)}


def test_groups_of_a_column_that_a_selection_lacks_make_a_node_of_both() -> None:
    sites = Sites()
    sites.add(WHO)
    reader = sites.add(SUMS)
    ((name, node),) = nodes(sites).items()
    assert node.schema.names == ("who", "n")
    assert {feed.run for feed in reader.feeds} == {name}
    assert not own_of_gateways(reader)
    for query in ("q1", reader.query):
        sites.network.deregister(query)
        sites.check()
    assert not sites.network.runs


def test_such_groups_have_a_node_given_columns() -> None:
    sites = Sites()
    for text in (WHO, BOTH):
        sites.add(text)
    sites.network.deregister("q1")
    sites.add("SELECT who, COUNT(ts) AS c FROM steps WHERE n > 1 GROUP BY who")
    ((name, node),) = nodes(sites).items()
    assert node.schema.names == ("who", "n", "ts")
    assert node.version == 2
    assert sites.sent() == [name]


def test_groups_over_a_shorter_window_are_of_rows_that_are_there() -> None:
    sites = Sites()
    sites.add(LONG)
    reader = sites.add(counts("1 HOUR"))
    assert not nodes(sites)
    assert {feed.run for feed in reader.feeds} == {"q1"}
    assert {Younger, WindowBounds} <= kinds(reader)
    sites.network.deregister("q1")
    sites.check()


def test_they_make_a_node_that_shows_the_time_and_their_columns() -> None:
    sites = Sites()
    sites.add("SELECT who, n FROM steps [RANGE 2 HOURS]")
    reader = sites.add(counts("1 HOUR"))
    ((name, node),) = nodes(sites).items()
    assert set(node.schema.names) == {"who", "n", "ts"}
    assert name in {feed.run for feed in reader.feeds}
    assert {Younger, WindowBounds} <= kinds(reader)
    # Another length, and another function, read the same rows.
    third = sites.add("SELECT who, SUM(n) AS c FROM steps [RANGE 50 MINUTES] GROUP BY who")
    assert list(nodes(sites)) == [name]
    assert name in {feed.run for feed in third.feeds}


def test_groups_over_a_shorter_window_go_on_so_when_they_are_planned_again() -> None:
    sites = Sites()
    sites.add("SELECT who, n FROM steps [RANGE 2 HOURS]")
    reader = sites.add(counts("1 HOUR"))
    (name,) = nodes(sites)
    again, *_ = sites.network._replanned_from(reader.query)
    assert again.version > reader.version
    assert name in {feed.run for feed in again.feeds}
    assert Younger in kinds(again)
    sites.check()


def test_what_is_cheaper_in_parts_is_sent_in_parts() -> None:
    """A greatest value changes with few of the readings; distinct values are few."""
    columns = {("steps", "who"): ColumnFacts(9.0, 9.0), ("steps", "n"): ColumnFacts(1e3, 1e3)}
    known = Statistics(sources={"steps": SourceFacts(1e4, 20.0)}, columns=columns)
    distinct = "SELECT DISTINCT n FROM steps WHERE n > 1"
    for text in (
        GREATEST,
        distinct,
        "SELECT who, n FROM steps WHERE n > 1 ORDER BY n, who LIMIT 1",
    ):
        sites = Sites(known)
        sites.add(WHO)
        reader = sites.add(text)
        assert not nodes(sites), text
        assert own_of_gateways(reader), text


def test_none_is_made_where_the_older_query_stays_where_it_is() -> None:
    sites = Sites()
    sites.network.sharing = replace(sites.sharing, moves=False)
    sites.add(WHO)
    sites.add(SUMS)
    assert not nodes(sites)
    assert sites.sent() == ["q1", "q2"]


def test_groups_over_a_window_of_a_query_that_acts_are_of_its_own_rows() -> None:
    sites = Sites()
    sites.add(LONG)
    bound = replace(bound_query(counts("1 HOUR"), CATALOG), whole_changes=True)
    change = sites.network.register(bound)
    assert Younger not in kinds(change.deploy[-1])
    assert {f.engine for f in change.deploy[-1].own} == {Engine.BASE, Engine.GATEWAY}
