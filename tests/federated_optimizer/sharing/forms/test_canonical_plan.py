"""Names of what plans compute: equal for equal rows, whatever is written in another order."""

import pytest

from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from tests.federated_optimizer.sharing.small_shop import TEXTS, normalized
from tests.streamsql.from_text import bound_query, catalog_of

WITH_TIMES = catalog_of(
    "CREATE SOURCE t (x INTEGER); CREATE SOURCE w (x INTEGER, at TIMESTAMP) WITH (ttl = '1 h');"
)

ALIKE = (
    (
        "SELECT a.s, b.s FROM t a, u b WHERE a.x = b.x AND a.y < b.y",
        "SELECT b.s, a.s FROM u a, t b WHERE b.x = a.x AND a.y > b.y",
    ),
    (
        "SELECT a.x FROM t a, t b, t c WHERE a.x = b.x AND b.y = c.y AND c.s = 'a'",
        "SELECT c.x FROM t a, t b, t c WHERE c.x = b.x AND b.y = a.y AND a.s = 'a'",
    ),
    (
        "SELECT y, x, COUNT(*) FROM t WHERE s = 'a' GROUP BY y, x",
        "SELECT x, y, SUM(x) FROM t WHERE 'a' = s GROUP BY x, y",
    ),
    (
        "SELECT x FROM t UNION ALL SELECT x FROM u",
        "SELECT x FROM u UNION ALL SELECT x FROM t",
    ),
)


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_the_order_of_writing_does_not_count(first: str, second: str) -> None:
    a, b = canonical_plan(normalized(first)), canonical_plan(normalized(second))
    assert a.form == b.form
    assert set(a.columns) & set(b.columns)


def test_different_rows_have_different_names() -> None:
    forms = [canonical_plan(normalized(text)).form for text in TEXTS]
    assert len(set(forms)) == len(TEXTS)


def test_a_sum_is_no_order() -> None:
    texts = ("a.x = b.x AND a.y < b.y", "a.x = b.x AND b.y < a.y", "a.x = b.y AND a.y < b.x")
    forms = {
        canonical_plan(normalized(f"SELECT a.s FROM t a, u b WHERE {text}")).form for text in texts
    }
    assert len(forms) == len(texts)


def test_columns_are_told_apart() -> None:
    one = canonical_plan(normalized("SELECT a.y FROM t a, t b WHERE a.x = b.x AND a.y < b.y"))
    other = canonical_plan(normalized("SELECT b.y FROM t a, t b WHERE a.x = b.x AND a.y < b.y"))
    assert one.form == other.form
    assert one.columns != other.columns


def test_zero_is_not_its_opposite() -> None:
    names = [
        canonical_plan(normalized(f"SELECT x, {zero} AS z FROM t")) for zero in ("0.0", "-0.0")
    ]
    assert names[0].form == names[1].form
    assert names[0].columns != names[1].columns


TWICE = (
    "SELECT n, COUNT(*) AS m FROM (SELECT x, COUNT(*) AS n FROM t GROUP BY x) g GROUP BY n",
    "SELECT ws, window_start FROM TUMBLE((SELECT at, window_start AS ws FROM "
    "TUMBLE(w, at, INTERVAL '1 minute')), at, INTERVAL '2 minutes')",
)


@pytest.mark.parametrize("text", TWICE)
def test_an_operator_over_its_like_has_columns_of_its_own(text: str) -> None:
    plan = bound_query(text, WITH_TIMES).plan
    assert len(set(canonical_plan(plan).columns)) == len(plan.schema)
