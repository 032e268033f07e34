"""Plans in which a recursion derives only what is asked for: which there are, and their prices."""

from dataclasses import replace

import pytest

from federated_optimizer import plan as place_plan
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import alternatives
from federated_optimizer.search.choosing import Alternatives, Listed
from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    RecursionFacts,
    SourceFacts,
    Statistics,
)
from streamsql.algebra.metrics import Metric, Term
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst)) "
    "WITH (ttl = '90 s');"
    "CREATE SOURCE asked (node TEXT, who TEXT, KEY (node)) WITH (ttl = '10 min');",
    library=True,
)
GATEWAYS = Topology({f"gw-{i}": frozenset({"link", "asked"}) for i in range(4)})
JOINED = "SELECT r.src, r.dst FROM reachable r JOIN asked a ON r.src = a.node"
ONLY = "recursion reachable only from the src asked for"


def knowing(asked: float, changes: float = 0.01) -> Statistics:
    """Return what is known of 100 nodes with four links each, of which some are asked for."""
    return Statistics(
        sources={"link": SourceFacts(400.0, 2.0), "asked": SourceFacts(asked, changes)},
        columns={
            ("link", "src"): ColumnFacts(100.0, 25.0),
            ("link", "dst"): ColumnFacts(100.0, 100.0),
            ("asked", "node"): ColumnFacts(100.0, 25.0),
        },
    )


def chosen(found: Alternatives) -> Listed:
    return next(each for each in found.listed if each.number == found.chosen)


def centre(found: Alternatives) -> tuple[Listed, Listed]:
    """Return the plan at the base with a bounded recursion, and that with the whole one."""
    plans = [each for each in found.listed if "by centre" in each.words]
    bounded = [each for each in plans if "asked for" in each.words]
    return bounded[0], next(each for each in plans if each not in bounded)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (JOINED, f"{ONLY} (InnerJoin [src = node])"),
        ("SELECT * FROM reachable WHERE src = 'a'", ONLY),
        (
            "SELECT * FROM reachable WHERE src IN (SELECT node FROM asked)",
            f"{ONLY} (SemiJoin [src = node])",
        ),
        (
            "SELECT a.who, s.path FROM asked a LEFT JOIN shortest_path s ON s.dst = a.node",
            "recursion walk only from the dst asked for (LeftJoin [node = dst])",
        ),
        (
            "SELECT a.node FROM asked a "
            "WHERE NOT EXISTS (SELECT 1 FROM cheapest_path c WHERE c.dst = a.node)",
            "recursion walk only from the dst asked for (AntiJoin [node = key_1])",
        ),
    ],
)
def test_queries_that_ask_for_some_rows_have_a_plan_that_derives_only_these(
    text: str, words: str
) -> None:
    found = alternatives(bound_query(text, CATALOG), GATEWAYS, knowing(5.0))
    assert words in chosen(found).words
    assert {bool("asked for" in each.words) for each in found.listed} == {True, False}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT c.dst, c.cost FROM cheapest_path c JOIN asked a ON c.src = a.node",
            "recursion walk only from the src asked for: a derivation does not keep it; walk grown "
            "at its other end: cost would be added up in another order",
        ),
        (
            f"{JOINED} UNION ALL SELECT src, dst FROM reachable",
            f"{ONLY}: the query reads it more than once",
        ),
        (
            "SELECT a.src, b.dst FROM reachable a JOIN within_radius b ON a.dst = b.src",
            "recursion reachable only from the dst asked for: a recursion asks",
        ),
        (
            "WITH RECURSIVE (LIMIT 3 ERROR) r (src, dst) AS (SELECT src, dst FROM link UNION "
            "SELECT r.src, l.dst FROM r JOIN link l ON l.src = r.dst) "
            "SELECT r.dst FROM r JOIN asked a ON r.src = a.node",
            "recursion r only from the src asked for: the query stops for all rows that need",
        ),
    ],
)
def test_others_have_none_for_a_reason_in_words(text: str, reason: str) -> None:
    found = alternatives(bound_query(text, CATALOG), GATEWAYS, knowing(5.0))
    assert any(each.startswith(reason) for each in found.refused), found.refused
    assert not any(reason.split(":", maxsplit=1)[0] in each.words for each in found.listed)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.who, r.dst FROM reachable r LEFT JOIN asked a ON r.src = a.node",
        "SELECT a.who, r.dst FROM reachable r FULL JOIN asked a ON r.src = a.node",
    ],
)
def test_rows_without_a_partner_that_are_shown_are_derived(text: str) -> None:
    found = alternatives(bound_query(text, CATALOG), GATEWAYS, knowing(5.0))
    assert not any("asked for" in each.words for each in found.listed)


def test_the_same_rows_travel_to_the_base_and_fewer_are_derived() -> None:
    found = alternatives(bound_query(JOINED, CATALOG), GATEWAYS, knowing(5.0))
    bounded, whole = centre(found)
    assert bounded.cost.bytes == pytest.approx(whole.cost.bytes)
    assert bounded.cost.derived < whole.cost.derived / 2
    assert bounded.cost.state < whole.cost.state / 3
    assert found.chosen == bounded.number
    assert found.why == f"plan {whole.number} costs as much, and its recursions derive more"
    (made,) = place_plan(
        replace(bound_query(JOINED, CATALOG), asked=whole.number), GATEWAYS, query="q"
    ).recursions
    assert made.way == "centre"


def test_what_is_asked_decides() -> None:
    """Where all sources are asked for nothing is saved, and semi joins cost."""
    bound = bound_query(JOINED, CATALOG)
    for few in (5.0, 20.0, 60.0):
        assert "asked for" in chosen(alternatives(bound, GATEWAYS, knowing(few))).words
    found = alternatives(bound, GATEWAYS, knowing(100.0))
    bounded, whole = centre(found)
    assert chosen(found) == whole
    assert bounded.cost.derived > whole.cost.derived
    state = Metric(((Term.STATE, 1.0),))
    assert "asked for" in chosen(alternatives(bound, GATEWAYS, knowing(20.0), metric=state)).words


def test_a_constant_bounds_what_witnesses_ship() -> None:
    text = "SELECT * FROM reachable WHERE src = 'a' WITH (way = 'witness')"
    found = alternatives(bound_query(text, CATALOG), GATEWAYS, knowing(5.0))
    bounded, whole = sorted(found.listed, key=lambda each: each.cost.bytes)
    assert ONLY in bounded.words
    assert whole.cost.bytes > 3 * bounded.cost.bytes


def test_links_are_sent_once_for_base_and_step() -> None:
    for text in (JOINED, "SELECT path FROM shortest_path WHERE src = 'a'"):
        bundle = place_plan(bound_query(text, CATALOG), GATEWAYS, query="q")
        plans = [str(fragment.plan) for fragment in bundle.fragments if fragment.sites != ("base",)]
        assert sum("source='link'" in each for each in plans) == 1


def test_what_the_whole_recursion_counted_is_known_of_a_part_of_it() -> None:
    """Both send the same links, at a rate that only a recursion that ran can tell."""
    bound = bound_query(JOINED, CATALOG)
    (ran,) = place_plan(
        bound_query("SELECT * FROM reachable", CATALOG), GATEWAYS, query="q"
    ).recursions
    counted = RecursionFacts(base_rows=400.0, view_rows=9_000.0, changes=0.3, view_changes=40.0)
    facts = replace(knowing(5.0), recursions={ran.key: counted})
    found = alternatives(bound, GATEWAYS, facts)
    bounded, whole = centre(found)
    assert bounded.cost.bytes == pytest.approx(whole.cost.bytes)
    assert whole.cost.bytes != pytest.approx(
        centre(alternatives(bound, GATEWAYS, knowing(5.0)))[1].cost.bytes
    )
    assert found.chosen == bounded.number
