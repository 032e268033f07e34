"""Further pieces of random queries: constants, natural joins, windows that close."""

from tests.random_queries.expressions import LITERALS
from tests.random_queries.schemas import NAMES
from tests.random_queries.scopes import Item, Workshop

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
    """Return the definition of a function or aggregate of the user, which is then called."""
    shop.beyond.add("functions of users")
    if shop.chance(0.5):
        if shop.chance(0.5):
            shop.user_aggregate = "peak"
            merged = "RETURNS DOUBLE MERGED BY MAX"
            return f"CREATE AGGREGATE peak(v DOUBLE) {merged} AS '{_FUNCTION}:Peak'"
        shop.user_aggregate = "hm"
        return f"CREATE AGGREGATE hm(v DOUBLE) RETURNS DOUBLE AS '{_FUNCTION}:HarmonicMean'"
    shop.user_function = "dew"
    return f"CREATE FUNCTION dew(c DOUBLE, h DOUBLE) RETURNS DOUBLE AS '{_FUNCTION}:dew_point'"
