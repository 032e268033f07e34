"""Random queries over random changes: stream engine == reference evaluator == DuckDB from scratch.

A case is relations, views, one query and batches of changes; after every batch all must agree.
What failed once is kept in `kept.txt`. To look for more:

    python -m tests.random_queries.search 0 5000
"""

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.random_queries.kept import read, written
from tests.random_queries.oracles import Tally
from tests.random_queries.queries import Case, case
from tests.random_queries.runner import check
from tests.random_queries.schemas import Relation, batches

KEPT = read(Path(__file__).with_name("kept.txt"))
SEEDS = 60
LEAST_BY_DUCKDB = 0.5
MOST_REFUSED = 0.05
LATE_QUERIES = (
    "SELECT i1, t1, ts FROM LATE(r0)",
    "SELECT t1, COUNT(*) AS n, SUM(i1) AS total FROM r0 GROUP BY t1",
    "SELECT a.t1, b.ts FROM r0 a JOIN r1 b ON a.i1 = b.i1",
    "SELECT DISTINCT t1 FROM r0 [RANGE 2 SECONDS] UNION SELECT t1 FROM LATE(r1)",
    "SELECT i1, ts FROM r0 [PARTITION BY t1 ROWS 2]",
    "SELECT i1 FROM r0 EXCEPT ALL SELECT i1 FROM r1",
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(random=st.randoms(use_true_random=False))
def test_engines_agree_on_random_queries(random: Random) -> None:
    check(case(random), Tally())


def test_most_of_what_is_made_is_answered_by_all() -> None:
    tally = Tally()
    for seed in range(SEEDS):
        check(case(Random(seed)), tally, (1, 3) if seed % 4 == 0 else (1,))
    refused = tally.refused.total()
    assert tally.run + refused == SEEDS
    assert refused <= MOST_REFUSED * SEEDS, tally
    assert tally.compared >= LEAST_BY_DUCKDB * tally.run, tally
    assert tally.shown >= tally.run / 2, tally


def test_each_gateway_judges_by_itself_what_is_late() -> None:
    tally = Tally()
    for seed, query in enumerate(LATE_QUERIES * 6):
        random = Random(seed)
        found = [_marked(number) for number in range(2)]
        counted = frozenset({"r0"} if "ROWS" in query else ())
        changes = tuple(batches(random, found, counted))
        one = Case(tuple(found), (), query, (), ("watermarks",), changes)
        check(one, tally, (1, 3))
    assert tally.run == 6 * len(LATE_QUERIES)
    assert tally.by_gateway >= tally.run / 2, tally


def _marked(number: int) -> Relation:
    columns = (("i1", "INTEGER"), ("t1", "TEXT"), ("ts", "TIMESTAMP"))
    return Relation(f"r{number}", columns, table=False, lateness=1)


@pytest.mark.parametrize("why", KEPT)
def test_what_once_failed(why: str) -> None:
    tally = Tally()
    check(KEPT[why], tally, (1, 3))
    assert tally.run == 1, tally


def test_a_case_is_kept_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "kept.txt"
    cases = {f"seed {seed}": case(Random(seed)) for seed in range(40)}
    made: dict[str, Case] = {why: one for why, one in cases.items() if one.batches}
    file.write_text("\n".join(written(one, why) for why, one in made.items()), encoding="utf-8")
    assert read(file) == made
