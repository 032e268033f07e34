"""UNION ALL in a recursion: a row is there once for every chain of derivations that gives it.

The oracle adds chains up itself, from base rows, in plain Python; DuckDB says the same of what it
can write (`tests/conformance/recursion_copies.slt`).
"""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploy.session import LocalSession
from streamsql.data.types import Row
from streamsql.errors import (
    QueryError,
    RecursionLimitError,
    RecursionRoundsError,
    UnsupportedError,
)

SOURCE = "CREATE SOURCE part (whole TEXT, piece TEXT, n INTEGER)"
CHAINS = """r (root, at, n) AS (
  SELECT whole, piece, n FROM part
  UNION ALL
  SELECT r.root, p.piece, r.n * p.n FROM r JOIN part p ON p.whole = r.at)"""
HOPS = """WITH RECURSIVE r (root, at, hops) AS (
  SELECT whole, piece, 1 FROM part
  UNION ALL
  SELECT r.root, p.piece, r.hops + 1 FROM r JOIN part p ON p.whole = r.at WHERE r.hops < 3)
  SELECT root, at, hops FROM r"""

Parts = list[tuple[str, str, int]]


def chains(parts: Parts, rounds: int) -> Counter[Row]:
    """Add up the products along all chains of at most so many parts."""
    layer = Counter(parts)
    total: Counter[Row] = Counter()
    for _ in range(rounds):
        total.update({row: copies for row, copies in layer.items()})  # noqa: C416 - another type
        following: Counter[tuple[str, str, int]] = Counter()
        for (root, at, n), copies in layer.items():
            for whole, piece, m in parts:
                if whole == at:
                    following[root, piece, n * m] += copies
        layer = following
    return total


parts_of = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(1, 2)), max_size=5
)


def changed(session: LocalSession, before: Parts, after: Parts) -> None:
    gone, come = Counter(before) - Counter(after), Counter(after) - Counter(before)
    for whole, piece, n in gone:  # a bag: all copies go, those that stay come again
        session.run(f"DELETE FROM part WHERE whole = '{whole}' AND piece = '{piece}' AND n = {n}")
        left = after.count((whole, piece, n))
        come[whole, piece, n] += left
    for (whole, piece, n), copies in come.items():
        for _ in range(copies):
            session.run(f"INSERT INTO part VALUES ('{whole}', '{piece}', {n})")


@given(st.lists(parts_of, min_size=1, max_size=3), st.integers(1, 4), st.sampled_from((1, 3)))
@settings(max_examples=12, deadline=None)
def test_every_chain_counts_on_cycles_and_under_deletion(
    history: list[Parts], rounds: int, sites: int
) -> None:
    session = LocalSession(sites=sites)
    session.run(SOURCE)
    before: Parts = []
    for parts in history:
        changed(session, before, parts)
        before = parts
        (rows,) = session.run(f"WITH RECURSIVE (LIMIT {rounds} RETURN) {CHAINS} SELECT * FROM r")
        wanted = chains(parts, rounds)
        assert Counter(rows.rows) == wanted
        (summed,) = session.run(
            f"WITH RECURSIVE (LIMIT {rounds} RETURN) {CHAINS} "
            "SELECT at, COUNT(*) AS chains, SUM(n) AS pieces FROM r GROUP BY at"
        )
        count: Counter[str] = Counter()
        pieces: Counter[str] = Counter()
        for (_, at, n), copies in wanted.items():
            count[str(at)] += copies
            pieces[str(at)] += copies * int(str(n))
        assert set(summed.rows) == {(at, count[at], pieces[at]) for at in count}


@given(parts_of)
@settings(max_examples=10, deadline=None)
def test_a_counter_bounds_it_too(parts: Parts) -> None:
    session = LocalSession()
    session.run(SOURCE)
    changed(session, [], parts)
    (rows,) = session.run(HOPS)
    wanted: Counter[Row] = Counter()
    layer: Counter[Row] = Counter((whole, piece) for whole, piece, _ in parts)
    for hops in (1, 2, 3):
        wanted.update({(*ends, hops): copies for ends, copies in layer.items()})
        following: Counter[Row] = Counter()
        for (root, at), copies in layer.items():
            for whole, piece, _ in parts:
                if whole == at:
                    following[root, piece] += copies
        layer = following
    assert Counter(rows.rows) == wanted


def doubled(levels: int) -> str:
    """Return parts of which every level has the next one twice: 2^levels chains."""
    rows = (f"('l{k}', 'l{k + 1}', {n})" for k in range(levels) for n in (1, 2))
    return f"INSERT INTO part VALUES {', '.join(rows)}"


@pytest.mark.parametrize("sites", [1, 3])
def test_copies_are_a_number_where_they_are_only_counted(sites: int) -> None:
    session = LocalSession(sites=sites)
    session.run(f"{SOURCE}; {doubled(40)}")
    walks = """WITH RECURSIVE (LIMIT 40 RETURN) r (root, at, path) AS (
        SELECT whole, piece, piece FROM part WHERE whole = 'l0'
        UNION ALL
        SELECT r.root, p.piece, r.path || p.piece || p.n FROM r JOIN part p ON p.whole = r.at)"""
    (result,) = session.run(f"{walks} SELECT COUNT(*) AS n FROM r WHERE at = 'l40'")
    assert result.rows == ((2**40,),)
    session.run("DELETE FROM part WHERE whole = 'l7' AND n = 1")
    (result,) = session.run(f"{walks} SELECT COUNT(*) AS n FROM r WHERE at = 'l40'")
    assert result.rows == ((2**39,),)
    with pytest.raises(RecursionLimitError, match="more than 1000000 rows"):
        session.run(f"{walks} SELECT path FROM r")


def test_a_chain_that_stands_still_ends_at_the_limit() -> None:
    """1e17 + 1.0 is 1e17: the counter never reaches its bound, and the row is always the same."""
    session = LocalSession()
    with pytest.raises(RecursionLimitError, match="more than 1000 rows"):
        session.run("""WITH RECURSIVE (LIMIT 1000) r (x) AS (
            SELECT 1e17 UNION ALL SELECT x + 1.0 FROM r WHERE x < 1e18)
          SELECT COUNT(*) AS n FROM r""")


def test_sum_over_chains_is_exact() -> None:
    session = LocalSession()
    session.run(f"{SOURCE}; {doubled(12)}")
    (result,) = session.run(
        f"WITH RECURSIVE (LIMIT 12 ERROR) {CHAINS} "
        "SELECT SUM(n) AS pieces FROM r WHERE root = 'l0' AND at = 'l12'"
    )
    assert result.rows == ((3**12,),)  # (1 + 2) per level
    with pytest.raises(RecursionRoundsError, match="more than 11 rounds"):
        session.run(f"WITH RECURSIVE (LIMIT 11 ERROR) {CHAINS} SELECT COUNT(*) AS n FROM r")


REFUSED = {
    f"WITH RECURSIVE {CHAINS} SELECT * FROM r": r"computes n as r.n \* p.n, and nothing bounds it",
    """WITH RECURSIVE r (a) AS (SELECT whole FROM part UNION ALL
       SELECT p.piece FROM r JOIN part p ON p.whole = r.a) SELECT * FROM r""": (
        "would add the same rows for ever"
    ),
    """WITH RECURSIVE (LIMIT 3 RETURN) r (a) AS (SELECT whole FROM part UNION ALL
       SELECT piece FROM r JOIN part ON whole = a UNION SELECT a FROM r) SELECT * FROM r""": (
        "mixes UNION and UNION ALL"
    ),
    """WITH RECURSIVE (LIMIT 3 RETURN) r (a, b) AS (SELECT whole, piece FROM part UNION ALL
       SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a) SELECT * FROM r""": "is read twice",
    """WITH RECURSIVE (LIMIT 3 RETURN) r (a) AS (SELECT whole FROM part UNION ALL
       SELECT DISTINCT p.piece FROM r JOIN part p ON p.whole = r.a) SELECT * FROM r""": "DISTINCT",
    f"WITH RECURSIVE (LIMIT 3 RETURN) {CHAINS} SELECT * FROM r WITH (strategy = 'dred')": (
        "UNION ALL in a recursion counts copies at one site: the"
    ),
    f"WITH RECURSIVE (LIMIT 3 RETURN) {CHAINS} SELECT * FROM r WITH (way = 'flood')": (
        "UNION ALL in a recursion counts copies at one site: the"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_copies_cannot_be_counted_of_is_refused(text: str) -> None:
    session = LocalSession()
    session.run(SOURCE)
    with pytest.raises(QueryError, match=REFUSED[text]):
        session.run(text)


def test_which_base_rows_a_copy_rests_on_is_refused() -> None:
    session = LocalSession()
    session.run(f"{SOURCE}; {doubled(2)}")
    text = f"WITH RECURSIVE (LIMIT 2 RETURN) {CHAINS} SELECT root, at FROM r"
    with pytest.raises(UnsupportedError, match="counts copies"):
        session.run(f"EXPLAIN WHY ({text}) ROW ('l0', 'l2')")
