"""Random subqueries with HAVING, with and without GROUP BY, which may read the query around."""

from typing import TYPE_CHECKING

from tests.random_queries.expressions import KINDS, Expressions
from tests.random_queries.groups import call
from tests.random_queries.scopes import Item, columns_of

if TYPE_CHECKING:
    from tests.random_queries.queries import Queries

TRIES = 4


def having(maker: "Queries", mine: list[Item], around: list[Item], wanted: str, rest: str) -> str:
    """Return an aggregate subquery of one column of a type.

    Args:
        maker: Makes the query around.
        mine: What the subquery reads.
        around: What the query around reads.
        wanted: A type, behind `rows of ` where several rows may come.
        rest: FROM and WHERE.
    """
    shop, random = maker.shop, maker.shop.random
    kind = wanted.removeprefix("rows of ")
    several = kind != wanted
    inner = Expressions(shop, mine)
    value = next(
        (made for made, of in (call(shop, inner, exact=True) for _ in range(TRIES)) if of == kind),
        f"MAX({inner.of(kind, 1)})",
    )
    by = ""
    if several and random.random() < 0.5:
        found = [name for k in KINDS for name in columns_of(mine, k)]
        by = f" GROUP BY {random.choice(found)}"
    tested, of = call(shop, inner, exact=True)
    other = Expressions(shop, around).leaf(of)
    tests = (
        f"COUNT(*) {random.choice(('=', '>', '<', '<='))} {random.choice('0123')}",
        f"{tested} {random.choice(('=', '<>', '<', '>='))} {other}",
        f"{tested} IS {random.choice(('', 'NOT '))}NULL",
        f"COUNT(*) > 1 OR {tested} = {other}",
    )
    limit = " LIMIT 0" if random.random() < 0.03 else ""
    return f"(SELECT {value} AS s {rest}{by} HAVING {random.choice(tests)}{limit})"
