"""The first rows of a relation or of each group: ROW_NUMBER, DISTINCT ON, LIMIT."""

from typing import TYPE_CHECKING

from tests.random_queries.schemas import Columns
from tests.random_queries.scopes import Workshop, dual

if TYPE_CHECKING:
    from tests.random_queries.queries import Queries


def ranked(maker: "Queries", depth: int) -> tuple[str, Columns]:
    """Return the first rows of every group, by their number."""
    random = maker.shop.random
    source, columns = maker.source(depth)
    names = [name for name, _ in columns]
    inner, outer = maker.shop.alias(), maker.shop.alias()
    by = random.sample(names, random.randint(0, min(2, len(names))))
    parts = f"PARTITION BY {', '.join(by)} " if by else ""
    order = f"ORDER BY {order_of(maker.shop, names)}"
    number = f"ROW_NUMBER() OVER ({parts}{order}) AS nth"
    kept = ", ".join(f"{outer}.{name} AS o{n}" for n, name in enumerate(names))
    text = (
        f"SELECT {kept} FROM (SELECT {inner}.*, {number} FROM {source} AS {inner}) "
        f"AS {outer} WHERE {outer}.nth <= {random.choice((1, 2))}"
    )
    return text, [(f"o{n}", kind) for n, (_, kind) in enumerate(columns)]


def first_of_each(maker: "Queries", depth: int) -> tuple[str, Columns]:
    """Return DISTINCT ON."""
    random = maker.shop.random
    source, columns = maker.source(depth)
    alias = maker.shop.alias()
    names = [f"{alias}.{name}" for name, _ in columns]
    keys = random.sample(names, random.randint(1, min(2, len(names))))
    listed = ", ".join(f"{name} AS o{n}" for n, name in enumerate(names))
    order = ", ".join([*keys, order_of(maker.shop, names)])
    text = f"SELECT DISTINCT ON ({', '.join(keys)}) {listed} FROM {source} AS {alias}"
    return f"{text} ORDER BY {order}", [(f"o{n}", k) for n, (_, k) in enumerate(columns)]


def limit(shop: Workshop, columns: Columns) -> str:
    """Return ORDER BY and LIMIT for a query with these columns."""
    random = shop.random
    offset = f" OFFSET {random.randint(1, 2)}" if random.random() < 0.3 else ""
    order = order_of(shop, [name for name, _ in columns])
    return f" ORDER BY {order} LIMIT {random.randint(1, 4)}{offset}"


def order_of(shop: Workshop, names: list[str]) -> str:
    """Return sort keys; ties go by the whole row, which DuckDB has to be told."""
    random = shop.random
    keys = random.sample(names, random.randint(1, min(2, len(names))))
    ways = (" ASC", " DESC", " DESC NULLS LAST", " NULLS FIRST", "")
    written = ", ".join(key + random.choice(ways) for key in keys)
    ties = "".join(f", {name} ASC NULLS FIRST" for name in names)
    return written + dual("", ties, ties)
