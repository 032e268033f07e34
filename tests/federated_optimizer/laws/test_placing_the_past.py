"""Questions of the past stay at the static engine, recursions too, and mean what they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer import Topology, plan
from federated_optimizer.planning import normalize
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from streamsql.algebra.operators import Fixpoint, Scan, walk_plan
from streamsql.binder import BoundQuery, bind_refresh, define
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.history.past_plans import fixed, with_kept_rows
from streamsql.reference import Database, evaluate
from streamsql.syntax import CreateView, parse_statement
from streamsql.wire.fragments import Engine, FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

SECOND = 1_000_000
CATALOG = catalog_of("""
CREATE SOURCE s (k TEXT, v INTEGER, ts TIMESTAMP) WITH (ttl = '4 s');
CREATE SOURCE keyed (k TEXT, v INTEGER, ts TIMESTAMP, KEY (k));
CREATE LINK SOURCE wire (src TEXT, dst TEXT, cost INTEGER);
CREATE TABLE d (k TEXT, n INTEGER) WITH (source = 'csv', path = 'd.csv');
""")
TOPOLOGY = Topology(dict.fromkeys(("g1", "g2"), frozenset({"s", "keyed", "wire"})))
AT = "FOR SYSTEM_TIME AS OF NOW"
REACH = (
    "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM wire {0} UNION "
    "SELECT r.src, w.dst FROM r JOIN wire {1} AS w ON w.src = r.dst) SELECT * FROM r"
)
QUESTIONS = {
    "rows": "SELECT k, v + 1 AS w FROM s FOR SYSTEM_TIME ALL WHERE v > 0",
    "groups": "SELECT k, SUM(v) AS n FROM s FOR SYSTEM_TIME FROM NOW - INTERVAL '3 s' TO NOW "
    "GROUP BY k",
    "join": f"SELECT a.k, b.v FROM s {AT} AS a JOIN keyed {AT} AS b ON a.k = b.k WHERE b.v < 2",
    "window": f"SELECT k, COUNT(*) AS n FROM s {AT} [RANGE 2 SECONDS] GROUP BY k",
    "table": f"SELECT a.k, d.n FROM keyed {AT} AS a LEFT JOIN d ON a.k = d.k",
    "twice": f"SELECT a.k FROM keyed {AT} a "
    "JOIN keyed FOR SYSTEM_TIME AS OF NOW - INTERVAL '1 s' b ON a.k = b.k AND a.v <> b.v",
    "recursion": REACH.format(AT, AT),
    "best": "WITH RECURSIVE r(src, dst, c) AS (SELECT src, dst, cost FROM wire " + AT + " UNION "
    "SELECT r.src, w.dst, r.c + w.cost FROM r JOIN wire " + AT + " AS w ON w.src = r.dst) "
    "SELECT src, dst, MIN(c) AS c FROM r GROUP BY src, dst",
}


def bundle_of(text: str) -> FragmentBundle:
    return plan(bound_query(text, CATALOG), TOPOLOGY, query="q")


@pytest.mark.parametrize("text", QUESTIONS.values(), ids=QUESTIONS)
def test_the_static_engine_answers_all_of_it(text: str) -> None:
    first, *rest = bundle_of(text).fragments
    assert [f.engine for f in rest] == [Engine.STATIC]
    assert not [node for node in walk_plan(first.plan) if isinstance(node, Scan)]
    assert len(list(walk_plan(first.plan))) == 1


@pytest.mark.parametrize("name", QUESTIONS)
def test_who_answers_is_told_without_the_size_of_the_present(name: str) -> None:
    facts = {source: SourceFacts(rows=77) for source in ("s", "keyed", "wire", "d")}
    known = Statistics(sources=facts, local_rows=4_000)
    bundle = plan(bound_query(QUESTIONS[name], CATALOG), TOPOLOGY, query="q", statistics=known)
    (notes,) = [f.notes for f in bundle.fragments if f.engine == Engine.STATIC]
    if name in ("recursion", "best"):
        assert notes == ("evaluated by Spark: nobody knows the rounds of a recursion before",)
    else:
        assert notes == (
            "evaluated in the static engine's process up to about 4,000 rows read and paired, "
            "above by Spark; a row of the past counts as 5",
        )


def test_a_recursion_that_reads_the_present_too_stays_at_the_base() -> None:
    base = next(f for f in bundle_of(REACH.format(AT, "")).fragments if f.engine == Engine.BASE)
    assert [node for node in walk_plan(base.plan) if isinstance(node, Fixpoint)]


links = st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(1, 3))
readings = st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 8))


@given(st.lists(links, max_size=6), st.lists(readings, max_size=8), st.integers(0, 8))
def test_what_is_placed_means_what_was_asked(
    wires: list[tuple[str, str, int]], seen: list[tuple[str, int, int]], second: int
) -> None:
    database = Database()
    for number, link in enumerate(wires):
        database.append("wire", [SourceEvent(link, number * SECOND)], "g1")
    for k, v, at in seen:
        for name in ("s", "keyed"):
            event = SourceEvent((k, v, at * SECOND), at * SECOND)
            database.append(name, [event], "g1" if k == "a" else "g2")
    database.append("d", [SourceEvent(("a", 1), 0), SourceEvent(("c", 2), 0)])
    for text in QUESTIONS.values():
        bound: BoundQuery = bound_query(text, CATALOG)
        asked = fixed(bound.plan, second * SECOND)
        ready = fixed(normalize(bound.plan, TOPOLOGY), second * SECOND)
        wanted = evaluate(asked, database, 0)
        assert evaluate(ready, database, 0) == wanted
        assert evaluate(with_kept_rows(ready), database, 0) == wanted


def test_a_view_that_is_refreshed_may_recurse_over_the_past() -> None:
    statement = parse_statement(
        "CREATE MATERIALIZED VIEW reach REFRESH AT ('03:00') AS " + REACH.format(AT, AT)
    )
    assert isinstance(statement, CreateView)
    view = define(statement, CATALOG)
    assert isinstance(view, SourceDefinition)
    assert any(isinstance(node, Fixpoint) for node in walk_plan(bind_refresh(view, CATALOG)))
