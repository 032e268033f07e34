"""Plans as graphs: every operator is a node, every input an edge, fragments are clusters."""

import re

from federated_optimizer import Topology, plan
from federated_optimizer.cutting.bundle_explain import bundle_dot
from streamsql.algebra.operators import walk_plan
from streamsql.algebra.plan_graph import plan_dot, quoted
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.library import library_views
from streamsql.syntax import CreateSource, Query, parse_script

SCRIPT = """
CREATE SOURCE r (k TEXT, v INTEGER, ts TIMESTAMP);
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE);
SELECT k, COUNT(*) AS n FROM r [RANGE 10 MINUTES] WHERE k = 'a"b' GROUP BY k;
SELECT src, dst FROM reachable WHERE src <> dst;
"""


def test_graphs_have_all_operators_and_what_travels() -> None:
    catalog = Catalog(library_views())
    queries = 0
    for statement in parse_script(SCRIPT):
        if isinstance(statement, CreateSource):
            catalog.define(define(statement, catalog))
            continue
        assert isinstance(statement, Query)
        bound = bind_query(statement, catalog)
        text = plan_dot(bound.plan)
        operators = list(walk_plan(bound.plan))
        assert len(re.findall(r"^  n\d+ \[label=", text, re.MULTILINE)) == len(operators)
        assert len(re.findall(r"^  n\d+ -> n\d+", text, re.MULTILINE)) == len(operators) - 1
        names = frozenset({"r", "link"})
        topology = Topology({"gw-1": names, "gw-2": names}, bases=("base",), static="static")
        bundle = plan(bound, topology, query="q1")
        graph = bundle_dot(bundle)
        assert graph.count("subgraph") == len(bundle.fragments)
        assert graph.count("style=bold") == len(bundle.fragments)
        assert graph.count("{") == graph.count("}")
        assert "-> result" in graph
        queries += 1
    assert queries == 2


def test_texts_are_quoted_and_cut() -> None:
    assert quoted('a"b\\c\nd') == '"a\\"b\\\\c\\nd"'
    assert len(quoted("x" * 1_000)) == 402
