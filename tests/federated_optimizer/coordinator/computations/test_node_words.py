"""Words and kinds of nodes."""

from collections.abc import Mapping

import pytest

from federated_optimizer.coordinator.computations.node_words import (
    LONGEST,
    kind_of_node,
    words_of,
)
from federated_optimizer.coordinator.contract.network_model import NodeKind
from streamsql.algebra.operators import Plan, RemoteSource
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.syntax import Query, parse_statement
from tests.streamsql.from_text import catalog_of

SOURCES = """
CREATE SOURCE heat (sensor TEXT, rid TEXT, celsius INTEGER);
CREATE SOURCE seat (mid TEXT, rid TEXT, weight INTEGER, KEY (mid));
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst));
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(SOURCES)


def plan_of(text: str, catalog: Catalog) -> Plan:
    query = parse_statement(text)
    assert isinstance(query, Query)
    return bind_query(query, catalog).plan


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("SELECT * FROM seat", NodeKind.ROWS, "seat"),
        ("SELECT mid FROM seat", NodeKind.ROWS, "SELECT mid FROM seat"),
        (
            "SELECT * FROM seat WHERE weight > 5",
            NodeKind.SELECTION,
            "seat WHERE weight > 5",
        ),
        (
            "SELECT weight + 1 AS more FROM seat WHERE weight > 5",
            NodeKind.SELECTION,
            "SELECT weight + 1 AS more FROM seat WHERE weight > 5",
        ),
        (
            "SELECT rid, COUNT(*) AS n FROM seat WHERE weight > 5 GROUP BY rid HAVING COUNT(*) > 2",
            NodeKind.AGGREGATE,
            "SELECT rid, COUNT(*) AS count_1 FROM seat WHERE weight > 5 GROUP BY rid HAVING "
            "count_1 > 2",
        ),
        ("SELECT DISTINCT rid FROM seat", NodeKind.DISTINCT, "SELECT DISTINCT rid FROM seat"),
        (
            "SELECT rid FROM seat UNION ALL SELECT rid FROM heat",
            NodeKind.SET_OPERATION,
            "(SELECT rid FROM seat UNION ALL SELECT rid FROM heat)",
        ),
        (
            "SELECT rid FROM seat EXCEPT SELECT src FROM link",
            NodeKind.SET_OPERATION,
            "(SELECT rid FROM seat EXCEPT SELECT src FROM link)",
        ),
        (
            "SELECT rid, MAX(celsius) AS top FROM heat [RANGE 5 MINUTES] GROUP BY rid",
            NodeKind.AGGREGATE,
            "SELECT rid, MAX(celsius) AS max_1 FROM heat [RANGE 5 min] GROUP BY rid",
        ),
        ("SELECT * FROM heat [RANGE 5 MINUTES]", NodeKind.WINDOW, "heat [RANGE 5 min]"),
    ],
)
def test_a_plan_in_words(catalog: Catalog, text: str, kind: NodeKind, words: str) -> None:
    plan = plan_of(text, catalog)
    assert (kind_of_node(plan, str), words_of(plan, str)) == (kind, words)


def test_a_join_names_both_sides_and_its_columns(catalog: Catalog) -> None:
    plan = plan_of(
        "SELECT s.mid, h.celsius FROM seat s JOIN heat h ON s.rid = h.rid WHERE s.weight > 5",
        catalog,
    )
    assert kind_of_node(plan, str) == NodeKind.JOIN
    words = words_of(plan, str)
    assert "seat JOIN heat USING (rid)" in words
    assert "weight > 5" in words
    outer = plan_of("SELECT s.mid FROM seat s LEFT JOIN heat h ON s.mid = h.sensor", catalog)
    assert "seat LEFT JOIN heat ON mid = sensor" in words_of(outer, str)


def test_a_recursion_and_the_rows_of_each_group(catalog: Catalog) -> None:
    reach = plan_of(
        "WITH RECURSIVE reach (src, dst) AS (SELECT src, dst FROM link UNION "
        "SELECT r.src, l.dst FROM reach r JOIN link l ON l.src = r.dst) SELECT * FROM reach",
        catalog,
    )
    assert kind_of_node(reach, str) == NodeKind.RECURSION
    words = words_of(reach, str)
    assert words.startswith("RECURSIVE reach AS (")
    assert "reach JOIN link ON dst = src" in words
    top = plan_of("SELECT * FROM heat ORDER BY celsius DESC LIMIT 3", catalog)
    assert kind_of_node(top, str) in {NodeKind.WINDOW, NodeKind.ROWS}


def test_what_is_a_node_is_named_and_what_is_none_is_told(catalog: Catalog) -> None:
    seats = plan_of("SELECT * FROM seat WHERE weight > 5", catalog)
    plan = RemoteSource("f1", seats.schema)
    found: Mapping[str, Plan | str] = {"f1": seats, "f2": "12/f3"}
    assert words_of(plan, found.__getitem__) == "seat WHERE weight > 5"
    assert kind_of_node(plan, found.__getitem__) == NodeKind.SELECTION
    other = RemoteSource("f2", seats.schema)
    assert words_of(other, found.__getitem__) == "node 12/f3"
    assert kind_of_node(other, found.__getitem__) == NodeKind.ROWS


def test_long_words_are_cut(catalog: Catalog) -> None:
    numbers = ", ".join(map(str, range(300)))
    words = words_of(plan_of(f"SELECT * FROM seat WHERE weight IN ({numbers})", catalog), str)
    assert len(words) == LONGEST
    assert words.endswith("…")
