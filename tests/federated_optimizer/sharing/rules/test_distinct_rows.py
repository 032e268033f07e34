"""Distinct rows over distinct rows of more columns, and over groups; never the reverse."""

import pytest

from federated_optimizer.sharing.rules import distinct_rows
from tests.federated_optimizer.sharing.readings_shop import answered

ANSWERED = (
    ("SELECT DISTINCT a, s FROM r WHERE b = 1", "SELECT DISTINCT s, b, a FROM r"),
    ("SELECT DISTINCT a, b FROM r", "SELECT b, a, AVG(d) AS m FROM r GROUP BY b, a"),
    ("SELECT DISTINCT a + b AS k FROM r", "SELECT DISTINCT a, b FROM r"),
    ("SELECT DISTINCT d FROM r", "SELECT DISTINCT d, a FROM r"),
    ("SELECT DISTINCT a, b FROM r WHERE b = 2", "SELECT DISTINCT a, b FROM r"),
)
REFUSED = (
    ("SELECT DISTINCT CAST(d AS TEXT) AS k FROM r", "SELECT DISTINCT d, a FROM r"),
    ("SELECT a FROM r", "SELECT DISTINCT a FROM r"),
    ("SELECT DISTINCT a FROM r", "SELECT DISTINCT a, b FROM r WHERE b > 1"),
    ("SELECT DISTINCT a FROM r", "SELECT a, COUNT(*) AS n FROM r GROUP BY a HAVING COUNT(*) > 1"),
    ("SELECT a, COUNT(*) AS n FROM r GROUP BY a", "SELECT DISTINCT a, b FROM r"),
)


@pytest.mark.parametrize(("wanted", "offered"), ANSWERED)
def test_distinct_rows_come_from_distinct_rows(wanted: str, offered: str) -> None:
    assert answered(distinct_rows.answer, wanted, offered) is not None


@pytest.mark.parametrize(("wanted", "offered"), REFUSED)
def test_others_are_refused(wanted: str, offered: str) -> None:
    assert answered(distinct_rows.answer, wanted, offered) is None
