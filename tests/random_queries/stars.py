"""Random queries by SELECT * over USING and NATURAL, and with names that come twice."""

from typing import TYPE_CHECKING

from tests.random_queries.expressions import KINDS, Expressions
from tests.random_queries.schemas import Columns

if TYPE_CHECKING:
    from tests.random_queries.queries import Queries

_WORDS = ("", "LEFT ", "RIGHT ", "FULL ")


def all_columns(maker: "Queries") -> tuple[str, Columns]:
    """Return SELECT * over two or three relations that are joined by the names they share."""
    shop, random = maker.shop, maker.shop.random
    chosen = random.choices(shop.relations, k=random.choice((2, 2, 3)))
    first, *others = chosen
    aliases = [shop.alias() for _ in chosen]
    text, columns = f"{first.name} AS {aliases[0]}", list(first.columns)
    for alias, other in zip(aliases[1:], others, strict=True):
        word = random.choice(_WORDS)
        shared = [column for column in other.columns if columns.count(column) == 1]
        if not shared:
            text += f" CROSS JOIN {other.name} AS {alias}"
            columns += other.columns
        elif random.random() < 0.4:
            text += f" NATURAL {word}JOIN {other.name} AS {alias}"
            columns = _merged(columns, list(other.columns), shared)
        else:
            by = random.sample(shared, random.randint(1, min(2, len(shared))))
            names = ", ".join(name for name, _ in by)
            text += f" {word}JOIN {other.name} AS {alias} USING ({names})"
            columns = _merged(columns, list(other.columns), by)
    once = [name for name, _ in columns if [n for n, _ in columns].count(name) == 1]
    listed = random.choice(("*", "*", "*", f"{aliases[0]}.*", f"{aliases[-1]}.*"))
    if once and random.random() < 0.3:
        listed = f"{random.choice(once)}, {listed}"
    where = f" WHERE {random.choice(once)} IS NOT NULL" if once and shop.chance(0.25) else ""
    return f"SELECT {listed} FROM {text}{where}", columns


def _merged(left: Columns, right: Columns, by: Columns) -> Columns:
    return [*by, *(c for c in left if c not in by), *(c for c in right if c not in by)]


def names_twice(maker: "Queries") -> tuple[str, Columns]:
    """Return a query over one that has a name twice, which only a star or another name may read."""
    shop, random = maker.shop, maker.shop.random
    text, items = maker.from_clause(0)
    inner = Expressions(shop, items)
    kinds = [random.choice(KINDS) for _ in range(random.randint(2, 4))]
    names = [random.choice(("k", "m", "n")) for _ in kinds]
    listed = ", ".join(
        f"{inner.of(kind, 1)} AS {name}" for name, kind in zip(names, kinds, strict=True)
    )
    where = f" WHERE {inner.condition(1)}" if shop.chance(0.3) else ""
    query = f"SELECT {listed} FROM {text}{where}"
    columns = list(zip(names, kinds, strict=True))
    if random.random() < 0.3:
        return query, columns
    alias = shop.alias()
    read = random.choice((random.choice(names), "*", f"{alias}.*"))
    if random.random() < 0.3:
        return f"WITH {alias} AS ({query}) SELECT {read} FROM {alias}", columns
    return f"SELECT {read} FROM ({query}) AS {alias}", columns
