"""Random recursions: closures over links that change, and the best of their paths."""

from typing import TYPE_CHECKING

from tests.random_queries.leaves import leaf
from tests.random_queries.schemas import Columns

if TYPE_CHECKING:
    from tests.random_queries.queries import Queries


def recursion(maker: "Queries", depth: int) -> tuple[str, Columns]:
    """Return a query over a recursion."""
    shop, random = maker.shop, maker.shop.random
    source, columns = leaf(shop)
    inner = shop.alias()
    kind = random.choice(("INTEGER", "TEXT"))
    found = [name for name, k in columns if k == kind]
    if not found:
        return maker.query(depth - 1)
    one, other = random.choice(found), random.choice(found)
    # Two ends that differ even where there is one column of the type.
    end = f"{inner}.{other}" if one != other else _moved(kind, f"{inner}.{other}")
    numbers = [f"{inner}.{name}" for name, k in columns if k == "INTEGER"]
    cost = f"COALESCE(ABS({random.choice(numbers)}), 1)" if numbers else "1"
    links, closure = shop.alias(), shop.alias()
    base = f"{links}(a, b, c) AS (SELECT {inner}.{one}, {end}, {cost} FROM {source} AS {inner})"
    form = random.choice((_linear, _linear, _counted, _squared, _mutual, _cheapest))
    if shop.for_postgres:
        form = random.choice((_linear, _counted, _cheapest))
    if form in (_squared, _mutual) and depth < 2:
        shop.beyond.add("recursions that DuckDB has not, below the outermost query")
    step, columns = form(links, closure, kind, random.randint(2, 4))
    before = dict(shop.views)
    shop.views[closure] = columns
    text, result = maker.over_view(closure, columns)
    shop.views = before
    return f"WITH RECURSIVE {base}, {step} {text}", result


def _linear(links: str, name: str, kind: str, _bound: int) -> tuple[str, Columns]:
    step = (
        f"{name}(a, b) AS (SELECT a, b FROM {links} UNION SELECT {name}.a, {links}.b "
        f"FROM {name} JOIN {links} ON {name}.b = {links}.a)"
    )
    return step, [("a", kind), ("b", kind)]


def _counted(links: str, name: str, kind: str, bound: int) -> tuple[str, Columns]:
    step = (
        f"{name}(a, b, n) AS (SELECT a, b, 1 FROM {links} UNION SELECT {name}.a, {links}.b, "
        f"{name}.n + 1 FROM {name} JOIN {links} ON {name}.b = {links}.a WHERE {name}.n < {bound})"
    )
    return step, [("a", kind), ("b", kind), ("n", "INTEGER")]


def _squared(links: str, name: str, kind: str, _bound: int) -> tuple[str, Columns]:
    """Return a recursion that reads itself twice."""
    step = (
        f"{name}(a, b) AS (SELECT a, b FROM {links} UNION SELECT x.a, y.b "
        f"FROM {name} AS x JOIN {name} AS y ON x.b = y.a)"
    )
    return step, [("a", kind), ("b", kind)]


def _mutual(links: str, name: str, kind: str, _bound: int) -> tuple[str, Columns]:
    """Return what is reached over an odd number of links, by what is over an even one."""
    step = (
        f"{name}(a, b) AS (SELECT a, b FROM {links} UNION SELECT e.a, l.b "
        f"FROM {name}_even AS e JOIN {links} AS l ON e.b = l.a), "
        f"{name}_even(a, b) AS (SELECT o.a, l.b FROM {name} AS o JOIN {links} AS l ON o.b = l.a)"
    )
    return step, [("a", kind), ("b", kind)]


def _cheapest(links: str, name: str, kind: str, bound: int) -> tuple[str, Columns]:
    """Return the least costs; the bound is for DuckDB, which lists all paths."""
    step = (
        f"{name}_all(a, b, c) AS (SELECT a, b, c FROM {links} UNION SELECT p.a, l.b, p.c + l.c "
        f"FROM {name}_all AS p JOIN {links} AS l ON p.b = l.a WHERE p.c < {bound}), "
        f"{name}(a, b, c) AS (SELECT a, b, MIN(c) FROM {name}_all GROUP BY a, b)"
    )
    return step, [("a", kind), ("b", kind), ("c", "INTEGER")]


def _moved(kind: str, column: str) -> str:
    return f"({column} + 1) % 3" if kind == "INTEGER" else f"SUBSTRING({column} || 'a', 2, 2)"
