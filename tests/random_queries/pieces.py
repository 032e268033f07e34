"""Further pieces of random queries: constants, natural joins, recursions, windows that close."""

from typing import TYPE_CHECKING

from tests.random_queries.expressions import LITERALS
from tests.random_queries.leaves import leaf
from tests.random_queries.schemas import NAMES, Columns
from tests.random_queries.scopes import Item, Workshop

if TYPE_CHECKING:
    from tests.random_queries.queries import Queries

_KINDS = ("INTEGER", "DOUBLE", "TEXT", "TIMESTAMP")
_FUNCTION = "deploy.samples.readings"


def constants(shop: Workshop) -> tuple[str, Item]:
    """Return VALUES with names for its columns."""
    random = shop.random
    alias = shop.alias()
    kinds = random.sample(_KINDS, random.randint(1, 2))
    columns = [(f"{NAMES[kind]}1", kind) for kind in kinds]
    rows = [[random.choice(LITERALS[kind]) for kind in kinds] for _ in range(random.randint(1, 3))]
    listed = ", ".join(f"({', '.join(row)})" for row in rows)
    names = ", ".join(name for name, _ in columns)
    return f"(VALUES {listed}) AS {alias}({names})", Item(alias, tuple(columns))


def natural(
    shop: Workshop, text: str, left: Item, added: str, right: Item
) -> tuple[str, list[Item]]:
    """Return a natural join; the common columns have no qualifier."""
    kind = shop.random.choice(("", "LEFT ", "RIGHT ", "FULL "))
    common = tuple(column for column in left.columns if column in right.columns)

    def rest(item: Item) -> Item:
        return Item(item.alias, tuple(c for c in item.columns if c not in common))

    return f"{text} NATURAL {kind}JOIN {added}", [Item("", common), rest(left), rest(right)]


def recursion(maker: "Queries", depth: int) -> tuple[str, Columns]:
    """Return a closure over links that change: linear, or as far as some hops."""
    shop = maker.shop
    random = shop.random
    source, columns = leaf(shop)
    inner = shop.alias()
    kind = random.choice(("INTEGER", "TEXT"))
    found = [name for name, k in columns if k == kind]
    if not found:
        return maker.query(depth - 1)
    one, other = random.choice(found), random.choice(found)
    links, closure = shop.alias(), shop.alias()
    # Two ends that differ even where there is one column of the type.
    end = f"{inner}.{other}" if one != other else _moved(kind, f"{inner}.{other}")
    base = f"{links}(a, b) AS (SELECT {inner}.{one}, {end} FROM {source} AS {inner})"
    columns = [("a", kind), ("b", kind)]
    if random.random() < 0.3:
        limit = random.randint(2, 4)
        step = (
            f"{closure}(a, b, n) AS (SELECT a, b, 1 FROM {links} UNION SELECT {closure}.a, "
            f"{links}.b, {closure}.n + 1 FROM {closure} JOIN {links} ON {closure}.b = {links}.a "
            f"WHERE {closure}.n < {limit})"
        )
        columns.append(("n", "INTEGER"))
    else:
        step = (
            f"{closure}(a, b) AS (SELECT a, b FROM {links} UNION SELECT {closure}.a, {links}.b "
            f"FROM {closure} JOIN {links} ON {closure}.b = {links}.a)"
        )
    before = dict(shop.views)
    shop.views[closure] = columns
    text, result = maker.over_view(closure, columns)
    shop.views = before
    return f"WITH RECURSIVE {base}, {step} {text}", result


def _moved(kind: str, column: str) -> str:
    return f"({column} + 1) % 3" if kind == "INTEGER" else f"SUBSTRING({column} || 'a', 2, 2)"


def when_windows_close(shop: Workshop) -> str:
    """Return a query with EMIT ON WINDOW CLOSE, or "" where no stream has a watermark."""
    random = shop.random
    streams = [r for r in shop.relations if r.lateness is not None and not r.key and r.ttl is None]
    if not streams:
        return ""
    chosen = random.choice(streams)
    shop.beyond.add("watermarks")
    by = [name for name, _ in chosen.columns[:-1]]
    key = random.choice((*by, ""))
    keys = f"{key}, " if key else ""
    size = random.choice((1, 2, 4))
    windows = (
        f"TUMBLE({chosen.name}, ts, INTERVAL '{size} s')",
        f"HOP({chosen.name}, ts, INTERVAL '1 s', INTERVAL '{size} s')",
        f"SESSION({chosen.name}, ts, INTERVAL '{size} s'{f', {key}' if key else ''})",
    )
    having = random.choice(("", "", " HAVING COUNT(*) > 1"))
    return (
        f"SELECT {keys}window_start, window_end, COUNT(*) AS n, MIN({random.choice(by)}) AS least "
        f"FROM {random.choice(windows)} GROUP BY {keys}window_start, window_end{having} "
        "EMIT ON WINDOW CLOSE"
    )


def of_user(shop: Workshop) -> str:
    """Return the definition of a function of the user, which is then called in expressions."""
    shop.beyond.add("functions of users")
    shop.user_function = "dew"
    return f"CREATE FUNCTION dew(c DOUBLE, h DOUBLE) RETURNS DOUBLE AS '{_FUNCTION}:dew_point'"
