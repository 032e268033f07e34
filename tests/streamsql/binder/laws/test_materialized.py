"""AS MATERIALIZED where it cannot be had: named, with what to write instead."""

import pytest

from streamsql.errors import QueryError
from tests.streamsql.from_text import bound_query, catalog_of

LINK = "CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER)"
ROUND = (
    "WITH RECURSIVE r (a, n) AS {kept} (SELECT src, 0 FROM link UNION SELECT l.dst, r.n + 1 "
    "FROM r JOIN link l ON l.src = r.a) "
)


def bind(text: str) -> None:
    bound_query(text, catalog_of(LINK))


def test_what_recurs_is_not_materialized_inside_of_its_recursion() -> None:
    text = (
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT x.a FROM (WITH t AS {kept} "
        "(SELECT l.dst AS a FROM r JOIN link l ON l.src = r.a) SELECT p.a FROM t p JOIN t q "
        "ON p.a = q.a) x) SELECT a FROM r"
    )
    bind(text.format(kept=""))
    with pytest.raises(
        QueryError, match="'t' is MATERIALIZED but reads its own recursion"
    ) as caught:
        bind(text.format(kept="MATERIALIZED"))
    assert caught.value.code == "unsupported_recursion"
    assert caught.value.span is not None
    assert "remove MATERIALIZED, or move the non-recursive part into a" in caught.value.hint


def test_minima_above_a_materialized_recursion_do_not_end_it_and_it_is_said_why() -> None:
    both = "SELECT x.a, x.n FROM (SELECT a, MIN(n) AS n FROM r GROUP BY a) x"
    bind(ROUND.format(kept="MATERIALIZED") + both)
    twice = f"{both} JOIN (SELECT a, MIN(n) AS n FROM r GROUP BY a) y ON x.a = y.a"
    bind(ROUND.format(kept="") + twice)
    with pytest.raises(QueryError, match="r is MATERIALIZED and read more than once") as caught:
        bind(ROUND.format(kept="MATERIALIZED") + twice)
    assert caught.value.code == "non_terminating"
