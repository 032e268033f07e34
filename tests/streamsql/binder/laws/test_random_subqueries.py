"""Random nests of correlated subqueries answer as DuckDB does, whichever way they are unnested."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import duckdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamsql.binder import bind_query
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from streamsql.syntax import Query
from tests.streamsql.from_text import catalog_of, query_of

COLUMNS = {"t": ("a", "b"), "u": ("a", "d"), "v": ("k", "f")}
TABLES = {
    name: f"CREATE TABLE {name} ({', '.join(f'{column} INTEGER' for column in columns)})"
    for name, columns in COLUMNS.items()
}
CATALOG = catalog_of(*TABLES.values())
numbers = st.sampled_from([None, 0, 1, 1, 2])
contents = st.fixed_dictionaries(
    {name: st.lists(st.tuples(numbers, numbers), max_size=5) for name in COLUMNS}
)
COMPARISONS = ("<", ">", "=", "<>", ">=", "<=")


@dataclass
class Author:
    """Writes queries by the choices of a random number generator.

    `outer` are columns of the query around, `inner` those of the query at hand.
    """

    random: Random
    aliases: int = 0
    depth: int = field(default=2)

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def source(self) -> tuple[str, tuple[str, ...]]:
        self.aliases += 2
        one, two = f"s{self.aliases - 1}", f"s{self.aliases}"
        if self.random.random() < 0.6:
            table = self.one(*COLUMNS)
            return f"{table} AS {one}", tuple(f"{one}.{c}" for c in COLUMNS[table])
        kind = self.one("JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN")
        columns = (f"{one}.a", f"{one}.b", f"{two}.a", f"{two}.d")
        return f"t AS {one} {kind} u AS {two} ON {one}.a = {two}.a", columns

    def link(self, inner: tuple[str, ...], outer: tuple[str, ...]) -> str:
        i, o = self.one(*inner), self.one(*outer)
        equal = f"{i} = {o}"
        return self.one(
            *(equal, equal, equal),
            f"{i} {self.one(*COMPARISONS)} {o}",
            f"{i} IS NOT DISTINCT FROM {o}",
            f"({equal} OR {self.one(*inner)} = 1)",
            f"{i} = {o} + 1",
            f"COALESCE({i}, {o}) = 1",
            f"{o} IS NULL",
            f"{i} > 0",
        )

    def where(self, inner: tuple[str, ...], outer: tuple[str, ...]) -> str:
        parts = [self.link(inner, outer) for _ in range(self.random.choice((0, 1, 1, 2)))]
        if self.depth > 0 and self.random.random() < 0.3:
            further = self.random.random() < 0.4
            parts.append(self.condition((*inner, *outer) if further else inner))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def scalar(self, outer: tuple[str, ...]) -> str:
        source, inner = self.source()
        where = self.where(inner, outer)
        value = self.one(*inner, f"{self.one(*inner)} + {self.one(*outer)}")
        if self.random.random() < 0.25:
            column = self.one(*inner)
            down = self.one(" DESC", "")
            return f"(SELECT {column} FROM {source}{where} ORDER BY {column}{down} LIMIT 1)"
        item = self.one(
            *("COUNT(*)", f"COUNT({value})", f"SUM({value})", f"MAX({value})"),
            f"COALESCE(SUM({value}), -1)",
            f"COUNT(*) + {self.one(*outer)}",
            f"COUNT(DISTINCT {value})",
        )
        having = self.one("", "", "", " HAVING COUNT(*) > 1", " HAVING COUNT(*) < 2")
        return f"(SELECT {item} FROM {source}{where}{having})"

    def rows(self, outer: tuple[str, ...]) -> str:
        source, inner = self.source()
        where = self.where(inner, outer)
        column = self.one(*inner)
        value = self.one(column, column, f"{column} + {self.one(*outer)}")
        group = f"GROUP BY {column}{self.one('', ' HAVING COUNT(*) > 1')}"
        return self.one(
            *(f"(SELECT {value} FROM {source}{where})",) * 3,
            f"(SELECT DISTINCT {value} FROM {source}{where})",
            f"(SELECT SUM({self.one(*inner)}) FROM {source}{where} {group})",
            f"(SELECT MAX({value}) FROM {source}{where})",
            f"(SELECT MAX({value}) FROM {source}{where} HAVING COUNT(*) {self.one('>', '<')} 1)",
            f"(SELECT COUNT({value}) FROM {source}{where} HAVING COUNT(*) < {self.one(*outer)})",
            f"(SELECT {column} FROM {source}{where} ORDER BY {column} LIMIT 2)",
        )

    def value(self, outer: tuple[str, ...]) -> str:
        self.depth -= 1
        column, comparison = self.one(*outer), self.one(*COMPARISONS)
        match self.random.randrange(4):
            case 0:
                text = self.scalar(outer)
            case 1:
                text = f"EXISTS {self.rows(outer)}"
            case 2:
                text = f"({column} {self.one('IN', 'NOT IN')} {self.rows(outer)})"
            case _:
                text = f"({column} {comparison} {self.one('ANY', 'ALL')} {self.rows(outer)})"
        self.depth += 1
        return text

    def condition(self, outer: tuple[str, ...]) -> str:
        self.depth -= 1
        column = self.one(*outer)
        match self.random.randrange(5):
            case 0:
                text = f"{self.one('', 'NOT ')}EXISTS {self.rows(outer)}"
            case 1 | 2:
                text = f"{column} {self.one('IN', 'NOT IN')} {self.rows(outer)}"
            case 3:
                text = f"{column} {self.one(*COMPARISONS)} {self.scalar(outer)}"
            case _:
                text = f"({column} IN {self.rows(outer)} OR {self.one(*outer)} > 0)"
        self.depth += 1
        return text

    def query(self) -> str:
        source, columns = self.source()
        if self.random.random() < 0.2:
            key = columns[:1]
            items = f"{key[0]}, SUM({columns[1]}) AS s, {self.value(key)} AS x"
            return f"SELECT {items} FROM {source} GROUP BY {key[0]} HAVING {self.condition(key)}"
        items = f"{columns[0]}, {columns[1]}, {self.value(columns)} AS x"
        return f"SELECT {items} FROM {source} WHERE {self.condition(columns)}"


def ours(query: Query, tables: dict[str, list[Row]]) -> Counter[Row]:
    database = Database()
    for name in COLUMNS:
        database.append(name, [SourceEvent(row, ts=0) for row in tables[name]])
    return Counter(evaluate(bind_query(query, CATALOG).plan, database, now=0))


def theirs(query: Query, tables: dict[str, list[Row]]) -> Counter[Row]:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    try:
        for name, created in TABLES.items():
            connection.execute(created)
            if tables[name]:
                connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", tables[name])
        text = query.tree.sql(dialect="duckdb", identify=True)
        return Counter(connection.execute(text).fetchall())
    finally:
        connection.close()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random=st.randoms(use_true_random=False), tables=contents)
def test_random_subqueries(random: Random, tables: dict[str, list[Row]]) -> None:
    query = query_of(Author(random).query())
    assert ours(query, tables) == theirs(query, tables)
