"""Groups over finer groups: exactly the rows of evaluating from scratch, or no answer."""

import random
import re
from collections.abc import Iterator

import pytest

from benchmarks._sequences import sample_aggregates
from federated_optimizer.planning import normalize
from federated_optimizer.sharing.refusals import NotSharedError
from federated_optimizer.sharing.rules import coarser_groups
from streamsql.algebra.operators import Aggregate, Filter, Project, walk_plan
from streamsql.algebra.user_functions import INSTALLED
from tests import user_aggregates
from tests.federated_optimizer.sharing.readings_shop import (
    SOURCES,
    TOPOLOGY,
    answered,
    checked,
    normalized,
)
from tests.streamsql.from_text import bound_query, catalog_of

COUNTED = (
    "SELECT a, b, s, COUNT(*) AS n, COUNT(x) AS nx, MIN(x) AS lo, MAX(d) AS hi FROM r "
    "GROUP BY a, b, s"
)
FULL = "SELECT a, b, COUNT(*) AS n, SUM(x) AS sx, AVG(d) AS m, MEDIAN(d) AS p FROM r GROUP BY a, b"
WORDS = (
    "SELECT a, b, SUM(x / 4294967296) AS h, SUM(x % 4294967296) AS l, COUNT(x) AS n "
    "FROM r GROUP BY a, b"
)
BY_MINUTE = "SELECT DATE_TRUNC('minute', at) AS m, COUNT(*) AS n FROM r GROUP BY 1"
BY_DAY = "SELECT DATE_TRUNC('day', at) AS m, COUNT(*) AS n FROM r GROUP BY 1"
TENS = (
    "SELECT window_start, window_end, a, COUNT(*) AS n FROM TUMBLE(r, at, INTERVAL '10' MINUTE) "
    "GROUP BY 1, 2, 3"
)
KEYED = "SELECT a, b, x, COUNT(*) AS n FROM r GROUP BY a, b, x"
BY_USERS = (
    "SELECT a, b, peak(d) AS p, divisor(x) AS g, nearby(x, d) AS n, short(s) AS k, hm(d) AS m, "
    "plain_peak(d) AS u FROM r GROUP BY a, b"
)
ANSWERED = (
    ("SELECT a, x, ARG_MIN(x, b) AS m FROM r GROUP BY a, x", KEYED),
    ("SELECT a, b, x, ARG_MAX(a, b) AS m, MAX(x) AS k FROM r GROUP BY a, b, x", KEYED),
    ("SELECT a, COUNT(*) AS c FROM r GROUP BY a", COUNTED),
    ("SELECT COUNT(*) AS c, COUNT(x) AS k FROM r", COUNTED),
    ("SELECT s, a, MIN(x) AS lo, MAX(d) AS hi FROM r GROUP BY s, a", COUNTED),
    ("SELECT a, COUNT(*) AS c FROM r WHERE b > 1 AND s = 'x' GROUP BY a", COUNTED),
    ("SELECT a, COUNT(*) AS c FROM r GROUP BY a HAVING COUNT(*) > 2", COUNTED),
    ("SELECT a + 1 AS k, COUNT(*) AS c FROM r GROUP BY a + 1", COUNTED),
    ("SELECT a, COUNT(DISTINCT b) AS c, MAX(s) AS z FROM r GROUP BY a", COUNTED),
    (
        "SELECT a, COUNT(b) AS c, SUM(CASE WHEN s = 'x' THEN 1 ELSE 0 END) AS z FROM r GROUP BY a",
        COUNTED,
    ),
    ("SELECT SUBSTRING(s, 1, 1) AS k, COUNT(*) AS c FROM r GROUP BY 1", COUNTED),
    ("SELECT a, SUM(x) AS t, AVG(x) AS m FROM r GROUP BY a", WORDS),
    ("SELECT SUM(x) AS t, AVG(x) AS m FROM r", WORDS),
    ("SELECT b, a, SUM(x) AS t FROM r GROUP BY b, a", WORDS),
    ("SELECT a, SUM(x) AS sx, AVG(d) AS m FROM r WHERE b = 2 GROUP BY a", FULL),
    ("SELECT a, b, AVG(d) + 1 AS m FROM r WHERE a > 1 GROUP BY a, b HAVING SUM(x) > 0", FULL),
    ("SELECT MEDIAN(d) AS p, COUNT(*) AS n FROM r WHERE a = 1 AND b = 1", FULL),
    ("SELECT MEDIAN(d) AS p, COUNT(*) AS n FROM r WHERE a = 77 AND b = 1", FULL),
    ("SELECT DATE_TRUNC('hour', at) AS m, COUNT(*) AS n FROM r GROUP BY 1", BY_MINUTE),
    ("SELECT DATE_TRUNC('month', at) AS m, COUNT(*) AS n FROM r GROUP BY 1", BY_DAY),
    ("SELECT EXTRACT(DOW FROM at) AS m, COUNT(*) AS n FROM r GROUP BY 1", BY_DAY),
    ("SELECT DATE_BIN(INTERVAL '30' MINUTE, at) AS m, COUNT(*) AS n FROM r GROUP BY 1", BY_MINUTE),
    ("SELECT a, peak(d) AS p, divisor(x) AS g FROM r GROUP BY a", BY_USERS),
    ("SELECT peak(d) AS p, nearby(x, d) AS n, short(s) AS k FROM r", BY_USERS),
    ("SELECT a, nearby(x, d) AS n, short(s) AS k FROM r WHERE b > 1 GROUP BY a", BY_USERS),
    ("SELECT peak(d) AS p FROM r WHERE a = 1 AND b = 1", BY_USERS),
    ("SELECT peak(d) AS p, divisor(x) AS g FROM r WHERE a = 77 AND b = 1", BY_USERS),
    ("SELECT b, hm(d) AS m, plain_peak(d) AS p FROM r WHERE a = 1 GROUP BY b", BY_USERS),
    ("SELECT DISTINCT a, s FROM r", COUNTED),
    ("SELECT DISTINCT a, s FROM r WHERE b = 1", "SELECT DISTINCT s, b, a FROM r"),
    ("SELECT DISTINCT a, b FROM r", "SELECT b, a, AVG(d) AS m FROM r GROUP BY b, a"),
    ("SELECT DISTINCT a + b AS k FROM r", "SELECT DISTINCT a, b FROM r"),
    ("SELECT DISTINCT d FROM r", "SELECT DISTINCT d, a FROM r"),
    ("SELECT DISTINCT a, b FROM r WHERE b = 2", "SELECT DISTINCT a, b FROM r"),
    ("SELECT DISTINCT a FROM r WHERE b IS NOT NULL", "SELECT DISTINCT b, a FROM r"),
    (
        "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b HAVING COUNT(*) > 2",
        "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b HAVING COUNT(*) > 1",
    ),
    (
        "SELECT d, COUNT(*) AS n FROM r WHERE d + 1 > 0 GROUP BY d",
        "SELECT d, f, COUNT(*) AS n FROM r GROUP BY d, f",
    ),
    (
        "SELECT r.s, COUNT(*) AS n FROM r, q WHERE q.a = 2 AND r.a = 2 GROUP BY r.s",
        "SELECT r.s, q.a, COUNT(*) AS n FROM q, r WHERE r.a = q.a GROUP BY r.s, q.a",
    ),
    (
        "SELECT r.s, COUNT(*) AS n FROM r, q WHERE q.a = r.a AND r.b > 0 GROUP BY r.s",
        "SELECT r.s, q.a, r.b, COUNT(*) AS n FROM q, r WHERE r.a = q.a GROUP BY r.s, q.a, r.b",
    ),
    ("SELECT DISTINCT CAST(d AS TEXT) AS k FROM r", "SELECT DISTINCT d, a FROM r"),
    (
        "SELECT CAST(d AS TEXT) AS k, COUNT(*) AS n FROM r GROUP BY 1",
        "SELECT d, COUNT(*) AS n FROM r GROUP BY d",
    ),
)
REFUSED = (
    ("SELECT a FROM r", "SELECT DISTINCT a FROM r", "not both groups"),
    ("SELECT DISTINCT a FROM r", "SELECT DISTINCT a, b FROM r WHERE b > 1", "not all of the rows"),
    (
        "SELECT DISTINCT a FROM r",
        "SELECT a, COUNT(*) AS n FROM r GROUP BY a HAVING COUNT(*) > 1",
        "HAVING",
    ),
    (
        "SELECT a, COUNT(*) AS n FROM r GROUP BY a",
        "SELECT DISTINCT a, b FROM r",
        "the parts of COUNT(*)",
    ),
    ("SELECT a, SUM(x) AS s FROM r GROUP BY a", FULL, "the node has not the parts of SUM"),
    ("SELECT a, AVG(d) AS s FROM r GROUP BY a", FULL, "the parts of AVG(d)"),
    ("SELECT a, MEDIAN(d) AS s FROM r GROUP BY a", FULL, "no parts of a fixed size"),
    ("SELECT a, COUNT(DISTINCT x) AS s FROM r GROUP BY a", FULL, "the values themselves"),
    ("SELECT a, hm(d) AS m FROM r GROUP BY a", BY_USERS, "has no MERGED BY"),
    ("SELECT a, plain_peak(d) AS m FROM r GROUP BY a", BY_USERS, "has no MERGED BY"),
    ("SELECT a, peak(x) AS m FROM r GROUP BY a", BY_USERS, "the parts of deploy.samples"),
    ("SELECT a, peak(DISTINCT d) AS m FROM r GROUP BY a", BY_USERS, "the values themselves"),
    ("SELECT a, nearby(b, a) AS n FROM r GROUP BY a", COUNTED, "the parts of tests.user_agg"),
    (
        "SELECT a, COUNT(*) AS n FROM r WHERE x > 1 GROUP BY a",
        COUNTED,
        "reads more than the groups",
    ),
    ("SELECT f, COUNT(*) AS n FROM r GROUP BY f", COUNTED, "do not have f"),
    ("SELECT a, COUNT(*) AS n FROM q GROUP BY a", COUNTED, "other rows"),
    (
        "SELECT a, COUNT(*) AS n FROM r GROUP BY a",
        COUNTED.replace("GROUP", "WHERE b > 1 GROUP"),
        "not all of the rows",
    ),
    (
        "SELECT 1 AS k, COUNT(*) AS n FROM r GROUP BY 1 + a - a",
        "SELECT COUNT(*) AS n FROM r",
        "even of nothing",
    ),
    (
        "SELECT a, COUNT(*) AS n FROM r GROUP BY a",
        "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b HAVING COUNT(*) > 1",
        "HAVING",
    ),
    (
        "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b HAVING COUNT(*) > 1",
        "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b HAVING COUNT(*) > 2",
        "HAVING",
    ),
    (
        "SELECT DATE_TRUNC('week', at) AS m, COUNT(*) AS n FROM r GROUP BY 1",
        "SELECT DATE_TRUNC('month', at) AS m, COUNT(*) AS n FROM r GROUP BY 1",
        "do not have ",
    ),
    (
        "SELECT EXTRACT(HOUR FROM at) AS m, COUNT(*) AS n FROM r GROUP BY 1",
        BY_MINUTE,
        "do not have ",
    ),
    (
        "SELECT DATE_BIN(INTERVAL '90' SECOND, at) AS m, COUNT(*) AS n FROM r GROUP BY 1",
        BY_MINUTE,
        "do not have ",
    ),
    (
        "SELECT a, COUNT(*) FROM r GROUP BY a",
        "SELECT a, b FROM r GROUP BY a, b",
        "the parts of COUNT(*)",
    ),
    ("SELECT a, COUNT(*) FROM r GROUP BY a", "SELECT a, x FROM r", "not both groups"),
    ("SELECT SUM(x) AS s FROM r", "SELECT SUM(d) AS s FROM r", "the parts of SUM(x)"),
    (
        "SELECT a, COUNT(*) AS n FROM r GROUP BY a",
        "SELECT b, s, COUNT(*) AS n FROM r GROUP BY a, b, s",
        "do not have a",
    ),
)


@pytest.fixture(autouse=True, scope="module")
def _aggregates() -> Iterator[None]:
    with user_aggregates.installed():
        yield


@pytest.mark.parametrize(("wanted", "offered"), ANSWERED)
def test_groups_come_from_finer_groups(wanted: str, offered: str) -> None:
    assert answered(coarser_groups.answer, wanted, offered) is not None


@pytest.mark.parametrize(("wanted", "offered", "words"), REFUSED)
def test_others_are_refused_in_words(wanted: str, offered: str, words: str) -> None:
    assert answered(coarser_groups.answer, wanted, offered) is None
    node = normalized(offered)
    with pytest.raises(NotSharedError, match=re.escape(words)):
        coarser_groups.answered(normalized(wanted), node, node)


def test_a_group_that_is_there_is_filtered_and_not_grouped_again() -> None:
    found = answered(
        coarser_groups.answer, "SELECT a, AVG(d) AS m FROM r WHERE b = 2 GROUP BY a", FULL
    )
    assert found is not None
    assert isinstance(found, Project)
    assert isinstance(found.input, Filter)
    assert not any(isinstance(node, Aggregate) for node in walk_plan(found))


@pytest.fixture
def _installed() -> Iterator[None]:
    before = INSTALLED.modules
    INSTALLED.allow([sample_aggregates.__name__])
    yield
    INSTALLED.allow(before)


@pytest.mark.usefixtures("_installed")
def test_a_users_aggregate_of_no_rows_is_no_row_of_a_node() -> None:
    catalog = catalog_of(
        f"{SOURCES} CREATE AGGREGATE counted(v INTEGER) RETURNS INTEGER "
        f"AS '{sample_aggregates.__name__}:Counted';"
    )
    node, one, all_rows = (
        normalize(bound_query(text, catalog).plan, TOPOLOGY)
        for text in (
            "SELECT a, counted(x) AS n FROM r GROUP BY a",
            "SELECT a, counted(x) AS n FROM r WHERE a = 1 GROUP BY a",
            "SELECT counted(x) AS n FROM r WHERE a = 1",
        )
    )
    assert checked(coarser_groups.answer, one, node) is not None
    with pytest.raises(NotSharedError, match="of no rows need not be NULL"):
        coarser_groups.answered(all_rows, node, node)


KEYS = ("a", "b", "s", "a + b", "d", "f", "DATE_TRUNC('hour', at)", "LEFT(s, 2)", "LEFT(s, 1)", "7")
CALLS = (
    "COUNT(*)",
    "COUNT(x)",
    "COUNT(a)",
    "SUM(x)",
    "SUM(d)",
    "AVG(x)",
    "MIN(d)",
    "MAX(s)",
    "MIN(a)",
    "SUM(x / 4294967296)",
    "SUM(x % 4294967296)",
    "SUM(CASE WHEN x > 0 THEN 1 ELSE 0 END)",
    "BOOL_AND(f)",
    "ARG_MAX(s, x)",
    "ARG_MIN(a, b)",
    "ARG_MAX(b, a)",
    "ARG_MIN(s, d)",
    "MAX(x)",
    "COUNT(DISTINCT b)",
    "COUNT(DISTINCT x)",
    "MEDIAN(x)",
    "MODE(b)",
    "STRING_AGG(DISTINCT s, ',')",
    "VAR_POP(x)",
    "peak(d)",
    "divisor(x)",
    "nearby(x, a)",
    "short(s)",
    "hm(d)",
)
CONDITIONS = (
    "",
    "a = 1",
    "a > 1",
    "b IS NOT NULL",
    "s = 'x'",
    "x > 0",
    "a >= 1",
    "d = 0.0",
    "a = 2 AND b = 2",
    "LEFT(s, 1) = 'a'",
)
HAVING = ("", "", "", "COUNT(*) > 1", "COUNT(*) > 2", "MIN(a) IS NULL")


def query(choose: random.Random, keys: int, calls: int, *, is_bare: bool) -> str:
    """Return a query with groups; a bare one mostly has neither WHERE nor HAVING."""
    chosen = choose.sample(KEYS, keys)
    computed = choose.sample(CALLS, max(calls, not keys))
    where, having = choose.choice(CONDITIONS), choose.choice(HAVING)
    if is_bare and choose.random() < 0.8:
        where = having = ""
    names = [f"{e} AS c{n}" for n, e in enumerate([*chosen, *computed])]
    text = f"SELECT {', '.join(names)} FROM r"
    if where:
        text += f" WHERE {where}"
    if keys:
        text += f" GROUP BY {', '.join(str(n + 1) for n in range(keys))}"
    return text + (f" HAVING {having}" if having else "")


@pytest.mark.parametrize("seed", [7, 8])
def test_no_answer_among_random_pairs_is_wrong(seed: int) -> None:
    choose = random.Random(seed)
    ours = [
        query(choose, choose.choice([0, 1, 1, 2]), choose.randint(0, 2), is_bare=False)
        for _ in range(90)
    ]
    theirs = [
        query(choose, choose.choice([1, 2, 3, 4]), choose.randint(5, 14), is_bare=True)
        for _ in range(50)
    ]
    wanted, offered = [*map(normalized, ours)], [*map(normalized, theirs)]
    found = 0
    for mine, text in zip(wanted, ours, strict=True):
        for plan, over in zip(offered, theirs, strict=True):
            found += checked(coarser_groups.answer, mine, plan, f"{text} over {over}") is not None
    assert found > 100
