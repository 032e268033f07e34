"""What stands in FROM: relations with their windows, each also as a view of DuckDB."""

from tests.random_queries.schemas import SECOND, Columns, Relation
from tests.random_queries.scopes import Workshop, dual
from tests.random_queries.streams import late


def leaf(shop: Workshop) -> tuple[str, Columns]:
    """Return a relation or view, perhaps with windows, and its columns."""
    if shop.views and shop.chance(0.25):
        name = shop.random.choice(sorted(shop.views))
        if name.startswith("q"):  # of WITH: what is outside of the query cannot read it
            return name, shop.views[name]
        return _timed(shop, name, name, shop.views[name])
    if shop.for_postgres:
        relation = shop.random.choice(shop.relations)
        return relation.name, list(relation.columns)
    of_late = late(shop) if shop.chance(0.02) else None
    if of_late is not None:
        return of_late
    relation = shop.random.choice(shop.relations)
    columns = list(relation.columns)
    if relation.table or not shop.chance(0.4):
        return _timed(shop, relation.name, relation.name, columns)
    window, condition = _window(shop, relation)
    name = _defined(shop, condition)
    return _timed(shop, f"{relation.name} {window}", name, columns)


def _window(shop: Workshop, relation: Relation) -> tuple[str, str]:
    """Return a CQL window, and the rows in it as DuckDB says it."""
    random = shop.random
    size = random.choice((1, 2, 4))
    span = size * SECOND
    name = relation.name
    match random.randrange(7):
        case 0 | 1:
            return f"[RANGE {size} SECONDS]", f"SELECT * FROM {name} WHERE ts > {{now}} - {span}"
        case 2:
            slide = random.choice((1, 2)) * SECOND
            end = f"{{now}} // {slide} * {slide}"
            condition = f"ts > {end} - {span} AND ts <= {end}"
            written = f"[RANGE {size} SECONDS SLIDE {slide // SECOND} SECONDS]"
            return written, f"SELECT * FROM {name} WHERE {condition}"
        case 3:
            second = f"ts // {SECOND} = {{now}} // {SECOND}"
            return "[NOW]", f"SELECT * FROM {name} WHERE {second}"
        case 4:
            return "[UNBOUNDED]", f"SELECT * FROM {name}"
        case _:
            return _rows(shop, relation, size)


def _rows(shop: Workshop, relation: Relation, size: int) -> tuple[str, str]:
    random = shop.random
    if not relation.key and relation.ttl is None:
        shop.counted.add(relation.name)
    names = [name for name, _ in relation.columns]
    by = random.sample(names[:-1], random.randint(0, 2))
    limit = random.choice((None, None, 3))
    written = f"PARTITION BY {', '.join(by)} ROWS {size}" if by else f"ROWS {size}"
    written += f" RANGE {limit} SECONDS" if limit and by else ""
    parts = f"PARTITION BY {', '.join(by)} " if by else ""
    order = ", ".join(f"{name} DESC NULLS LAST" for name in names)
    since = f" AND ts > {{now}} - {limit * SECOND}" if limit and by else ""
    numbered = f"ROW_NUMBER() OVER ({parts}ORDER BY ts DESC, {order})"
    text = f"SELECT * FROM {relation.name} QUALIFY {numbered} <= {size}"
    return f"[{written}]", f"SELECT * FROM ({text}) WHERE TRUE{since}"


def _timed(shop: Workshop, text: str, name: str, columns: Columns) -> tuple[str, Columns]:
    """Perhaps put a window over one of its times around a relation."""
    times = [column for column, kind in columns if kind == "TIMESTAMP"]
    taken = any(column.startswith("window_") for column, _ in columns)
    if not times or taken or not shop.chance(0.2):
        return dual(text, name), columns
    random = shop.random
    time = random.choice(times)
    size = random.choice((1, 2, 3))
    span, long = size * SECOND, f"INTERVAL '{size} s'"
    match random.randrange(3):
        case 0:
            written = f"TUMBLE({text}, {time}, {long})"
            start, end = f"{time} - {time} % {span}", f"{time} - {time} % {span} + {span}"
            made = f"SELECT *, {start} AS window_start, {end} AS window_end FROM {name}"
            made += f" WHERE {time} IS NOT NULL"
        case 1:
            written = f"HOP({text}, {time}, INTERVAL '1 s', {long})"
            numbers = f"range(({time} - {span}) // {SECOND} + 1, {time} // {SECOND} + 1)"
            made = f"SELECT *, UNNEST({numbers}) AS w FROM {name} WHERE {time} IS NOT NULL"
            made = f"SELECT * EXCLUDE (w), w * {SECOND} AS window_start, w * {SECOND} + {span} " + (
                f"AS window_end FROM ({made})"
            )
        case _:
            written, made = _session(shop, (text, name), columns, time, span)
    wider = [*columns, ("window_start", "TIMESTAMP"), ("window_end", "TIMESTAMP")]
    return dual(written, _defined(shop, made)), wider


def _session(
    shop: Workshop, read: tuple[str, str], columns: Columns, time: str, span: int
) -> tuple[str, str]:
    text, name = read
    names = [column for column, _ in columns if column != time]
    by = shop.random.sample(names, min(len(names), shop.random.randint(0, 1)))
    keys = "".join(f", {column}" for column in by)
    parts = f"PARTITION BY {', '.join(by)} " if by else ""
    lag = f"{time} - LAG({time}) OVER ({parts}ORDER BY {time}) < {span}"
    made = f"SELECT *, CASE WHEN {lag} THEN 0 ELSE 1 END AS fresh FROM {name}"
    made += f" WHERE {time} IS NOT NULL"
    made = f"SELECT *, SUM(fresh) OVER ({parts}ORDER BY {time}) AS nth FROM ({made})"
    over = f"OVER (PARTITION BY nth{keys})"
    made = (
        f"SELECT * EXCLUDE (fresh, nth), MIN({time}) {over} AS window_start, "
        f"MAX({time}) {over} + {span} AS window_end FROM ({made})"
    )
    return f"SESSION({text}, {time}, INTERVAL '{span // SECOND} s'{keys})", made


def _defined(shop: Workshop, text: str) -> str:
    name = f"w{len(shop.windows) + 1}"
    shop.windows[name] = text
    return name
