"""Random relations as streams: ISTREAM, DSTREAM, RSTREAM, windows behind them, late rows."""

import re
from typing import TYPE_CHECKING

from tests.random_queries.schemas import Columns
from tests.random_queries.scopes import Workshop

if TYPE_CHECKING:
    from tests.random_queries.queries import Queries

WORDS = ("ISTREAM", "ISTREAM", "DSTREAM", "RSTREAM")
BEYOND = "relations as streams"


def stream_of(maker: "Queries", depth: int) -> tuple[str, Columns] | None:
    """Return the stream of a query's changes, or None where the query reads no stream."""
    shop = maker.shop
    if not any(not relation.table for relation in shop.relations):
        return None
    text, columns = maker.query(depth)
    tables = {relation.name for relation in shop.relations if relation.table}
    read = read_in(shop, text)
    if not read - tables or "LATE(" in text:
        return None
    shop.beyond.add(BEYOND)
    shop.still |= read & tables
    return f"{shop.random.choice(WORDS)}({text})", [*columns, ("ts", "TIMESTAMP")]


def windowed_stream(maker: "Queries", depth: int) -> tuple[str, Columns] | None:
    """Return such a stream for FROM, perhaps with a window."""
    made = stream_of(maker, depth)
    if made is None:
        return None
    text, columns = made
    random = maker.shop.random
    size = random.choice((1, 2, 4))
    windows = ("", "", f" [RANGE {size} SECONDS]", f" [ROWS {size}]", " [NOW]")
    return f"({text}){random.choice(windows)}", columns


def late(shop: Workshop) -> tuple[str, Columns] | None:
    """Return the rows of a source that came too late, or None where there is no watermark."""
    found = [r for r in shop.relations if r.lateness is not None and not r.key and r.ttl is None]
    if not found:
        return None
    chosen = shop.random.choice(found)
    shop.beyond.add("watermarks")
    return f"LATE({chosen.name})", list(chosen.columns)


def read_in(shop: Workshop, text: str) -> frozenset[str]:
    """Return the sources and tables that a text reads, be it by views."""
    words = frozenset(re.findall(r"\w+", text))
    found = words & {relation.name for relation in shop.relations}
    return found.union(*(names for view, names in shop.reading.items() if view in words))
