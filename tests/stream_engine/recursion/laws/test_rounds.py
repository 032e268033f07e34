"""LIMIT n RETURN | ERROR: just the rows that n rounds from nothing derive, whatever keeps them.

The oracle counts rounds itself: it applies the definition to sets, n times, and knows no plan.
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from deploy.session import LocalSession
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_schedules import Schedule, run_schedule
from streamsql.algebra.choices import Strategy, Way
from streamsql.algebra.operators import Fixpoint, RecursionChoice, walk_plan
from streamsql.data.types import Row
from streamsql.errors import QueryError, RecursionRoundsError
from tests.streamsql.from_text import bound_query, catalog_of

Links = set[tuple[str, str]]
Rule = Callable[[set[Row], Links], set[Row]]

SOURCE = "CREATE LINK SOURCE link (src TEXT, dst TEXT, KEY (src, dst))"


def extended(pairs: set[Row], links: Links) -> set[Row]:
    return {(a, d) for a, b in pairs for c, d in links if b == c}


def doubled(pairs: set[Row], _links: Links) -> set[Row]:
    return {(a, d) for a, b in pairs for c, d in pairs if b == c}


def grown(walks: set[Row], links: Links) -> set[Row]:
    return {(f"{walk}>{d}", d) for walk, b in walks for c, d in links if b == c}


def of_links(links: Links) -> set[Row]:
    return set(links)


def of_ends(links: Links) -> set[Row]:
    return {(a, a) for a, _ in links}


QUERIES: dict[str, tuple[str, Callable[[Links], set[Row]], Rule]] = {
    "linear": (
        "r (a, b) AS (SELECT src, dst FROM link UNION "
        "SELECT r.a, l.dst FROM r JOIN link l ON l.src = r.b) SELECT * FROM r",
        of_links,
        extended,
    ),
    "twice": (
        "r (a, b) AS (SELECT src, dst FROM link UNION "
        "SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a) SELECT * FROM r",
        of_links,
        doubled,
    ),
    "growing without end": (
        "r (walk, b) AS (SELECT src, src FROM link UNION "
        "SELECT r.walk || '>' || l.dst, l.dst FROM r JOIN link l ON l.src = r.b) SELECT * FROM r",
        of_ends,
        grown,
    ),
}


def after(rounds: int, base: set[Row], rule: Rule, links: Links) -> set[Row]:
    """Apply the definition so often to nothing."""
    rows: set[Row] = set()
    for _ in range(rounds):
        rows = base | rule(rows, links)
    return rows


def fixpoint_of(text: str) -> Fixpoint:
    plan = bound_query(text, catalog_of(SOURCE)).plan
    (fixpoint,) = [node for node in walk_plan(plan) if isinstance(node, Fixpoint)]
    return fixpoint


links_of = st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=9)


@pytest.mark.parametrize("shape", QUERIES)
@given(st.lists(links_of, min_size=1, max_size=4), st.integers(1, 5), st.sampled_from((1, 3)))
@settings(max_examples=15, deadline=None)
def test_a_session_keeps_the_rows_of_so_many_rounds(
    shape: str, history: list[Links], rounds: int, sites: int
) -> None:
    text, base, rule = QUERIES[shape]
    rounds = min(rounds, 4) if shape == "growing without end" else rounds
    session = LocalSession(sites=sites)
    session.run(SOURCE)
    present: Links = set()
    for links in history:
        for verb, change in (("INSERT INTO", links - present), ("DELETE FROM", present - links)):
            for src, dst in sorted(change):
                if verb == "INSERT INTO":
                    session.run(f"INSERT INTO link VALUES ('{src}', '{dst}')")
                else:
                    session.run(f"DELETE FROM link WHERE src = '{src}' AND dst = '{dst}'")
        present = links
        (result,) = session.run(f"WITH RECURSIVE (LIMIT {rounds} RETURN) {text}")
        assert set(result.rows) == after(rounds, base(links), rule, links)
        assert len(result.rows) == len(set(result.rows))


STRATEGIES = ("auto", "ranked", "absorption", "relative", "dred", "recompute")
POOL = [("link", (a, b)) for a in "abcde" for b in "abcde" if a != b]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shape", ["linear", "twice"])
@pytest.mark.parametrize("sites", [("A",), ("A", "B", "C")])
def test_every_strategy_keeps_the_same_rows(
    strategy: str, shape: str, sites: tuple[str, ...]
) -> None:
    text, _, _ = QUERIES[shape]
    node = fixpoint_of(f"WITH RECURSIVE (LIMIT 3 RETURN) {text}")
    way = "flood" if strategy in ("ranked", "recompute") and len(sites) > 1 else "auto"
    node = replace(node, choice=RecursionChoice(strategy=Strategy(strategy), way=Way(way)))
    for seed in range(6):
        schedule = Schedule(POOL, changes=25)
        ensemble, wanted = run_schedule(node, sites, RecursionOptions(), schedule, seed)
        assert ensemble.rows() == wanted, (strategy, seed)


ALL_LINKS = {("a", "b"), ("b", "c"), ("c", "d")}
CHAIN = "INSERT INTO link VALUES ('a', 'b'), ('b', 'c'), ('c', 'd')"


@pytest.mark.parametrize("sites", [1, 3])
def test_error_stops_only_what_needs_more_rounds(sites: int) -> None:
    session = LocalSession(sites=sites)
    session.run(f"{SOURCE}; {CHAIN}")
    text, base, rule = QUERIES["linear"]
    (fits,) = session.run(f"WITH RECURSIVE (LIMIT 3 ERROR) {text}")
    assert set(fits.rows) == after(3, base(ALL_LINKS), rule, ALL_LINKS)
    with pytest.raises(RecursionRoundsError, match="r needs more than 2 rounds") as caught:
        session.run(f"WITH RECURSIVE (LIMIT 2 ERROR) {text}")
    assert caught.value.code == "recursion_rounds"
    assert "RETURN" in caught.value.hint
    session.run("INSERT INTO link VALUES ('a', 'd'), ('b', 'd')")  # a-d comes earlier now
    (again,) = session.run(f"WITH RECURSIVE (LIMIT 2 ERROR) {text}")
    assert set(again.rows) == set(fits.rows)


@pytest.mark.parametrize("strategy", ["auto", "absorption", "dred", "recompute"])
def test_error_is_judged_whatever_the_strategy(strategy: str) -> None:
    session = LocalSession()
    session.run(f"{SOURCE}; {CHAIN}")
    text, _, _ = QUERIES["linear"]
    session.run(f"WITH RECURSIVE (LIMIT 3 ERROR) {text} WITH (strategy = '{strategy}')")
    with pytest.raises(RecursionRoundsError):
        session.run(f"WITH RECURSIVE (LIMIT 2 ERROR) {text} WITH (strategy = '{strategy}')")


@pytest.mark.parametrize("way", ["centre", "flood", "witness", "annotations"])
def test_error_is_judged_whatever_travels(way: str) -> None:
    session = LocalSession(sites=3)
    session.run(f"{SOURCE}; {CHAIN}")
    text, base, rule = QUERIES["linear"]
    (fits,) = session.run(f"WITH RECURSIVE (LIMIT 3 ERROR) {text} WITH (way = '{way}')")
    assert set(fits.rows) == after(3, base(ALL_LINKS), rule, ALL_LINKS)
    with pytest.raises(RecursionRoundsError):
        session.run(f"WITH RECURSIVE (LIMIT 2 ERROR) {text} WITH (way = '{way}')")


def test_mutual_relations_share_their_rounds() -> None:
    session = LocalSession()
    session.run(f"{SOURCE}; {CHAIN}")
    (result,) = session.run("""
        WITH RECURSIVE (LIMIT 2 RETURN)
          odd (a, b) AS (
            SELECT src, dst FROM link UNION
            SELECT l.src, e.b FROM link l JOIN even e ON e.a = l.dst),
          even (a, b) AS (SELECT l.src, o.b FROM link l JOIN odd o ON o.a = l.dst)
        SELECT 'odd', a, b FROM odd UNION ALL SELECT 'even', a, b FROM even""")
    odd = {("odd", *link) for link in ALL_LINKS}
    assert set(result.rows) == odd | {("even", "a", "c"), ("even", "b", "d")}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("LIMIT 0 RETURN", "A bound on rounds ranges from 1 to"),
        ("LIMIT 100001 ERROR", "A bound on rounds ranges from 1 to"),
        ("LIMIT 3 ROUNDS", "expected RETURN or ERROR"),
        ("LIMIT 3 RETURN, LIMIT 4 ERROR", "limit appears twice"),
        ("LIMIT 3 STOP", r"expected \)"),
    ],
)
def test_bounds_that_are_none(limits: str, message: str) -> None:
    text, _, _ = QUERIES["linear"]
    with pytest.raises(QueryError, match=message):
        fixpoint_of(f"WITH RECURSIVE ({limits}) {text}")


def test_rows_and_rounds_are_bounded_together() -> None:
    text, _, _ = QUERIES["linear"]
    node = fixpoint_of(f"WITH RECURSIVE (LIMIT 500, LIMIT 4 ROUNDS RETURN) {text}")
    assert node.limit == 500
    assert node.rounds is not None
    assert node.rounds.rounds == 4
