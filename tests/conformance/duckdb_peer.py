"""The same statements in DuckDB: parsed by us, written in its dialect by sqlglot.

What is translated beyond that: ARG_MIN and ARG_MAX, which take the smallest of several best values
here and any of them there; `distance`; and constants such as 0.5, which are DOUBLE here and DECIMAL
there. DuckDB's WITH RECURSIVE lets a branch see only the newest rows of one relation, so non-linear
and mutual recursion is iterated from outside, every branch still being computed by DuckDB.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import duckdb
from sqlglot import exp

from streamsql.catalog.definitions import ViewDefinition
from streamsql.data.types import DataType, Row
from streamsql.syntax import CreateSource, CreateView, Statement, parse_script
from tests.streamsql.from_text import query_of

MACROS = ("CREATE MACRO distance(x1, y1, x2, y2) AS SQRT(POW(x1 - x2, 2) + POW(y1 - y2, 2))",)
ROUNDS = 200
_NUMBERS = dict.fromkeys((DataType.INTEGER, DataType.TIMESTAMP, DataType.INTERVAL), "BIGINT")


class Peer:
    """A DuckDB in memory with the relations of a script.

    Args:
        script: CREATE SOURCE, TABLE and VIEW statements in StreamSQL.
        views: Further views; those whose relations are missing are left out.
    """

    def __init__(self, script: str, views: Iterable[ViewDefinition] = ()) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._plain: dict[str, str] = {}
        for macro in MACROS:
            self._connection.execute(macro)
        for statement in parse_script(script):
            self.define(statement)
        waiting = list(views)
        while waiting:
            before = len(waiting)
            waiting = [view for view in waiting if not self._defined(view)]
            if len(waiting) == before:
                break

    def close(self) -> None:
        """Free it."""
        self._connection.close()

    def fill(self, table: str, rows: list[Row]) -> None:
        """Replace a table's rows."""
        self._connection.execute(f'DELETE FROM "{table}"')
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            self._connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)

    def answer(self, text: str) -> Counter[Row]:
        """Return the bag of rows of a query."""
        query = self._plain.get(text)
        if query is None:
            statement = query_of(text)
            query = self._translated(statement.tree)
            if query.startswith("WITH") or "WITH" not in text:  # nothing was iterated for it
                self._plain[text] = query
        return self._bag(query)

    def define(self, statement: Statement) -> None:
        """Create what a statement declares; times are numbers."""
        match statement:
            case CreateSource():
                columns = ", ".join(
                    f'"{c.name.text}" {_NUMBERS.get(c.dtype, c.dtype)}' for c in statement.columns
                )
                self._connection.execute(f'CREATE TABLE "{statement.name.text}" ({columns})')
            case CreateView():
                names = [column.text for column in statement.columns]
                self._view(statement.name.text, names, statement.query.tree)
            case _:
                raise AssertionError(f"{statement.text} defines nothing")

    def _defined(self, view: ViewDefinition) -> bool:
        (statement,) = parse_script(view.text)
        try:
            self.define(statement)
        except duckdb.CatalogException:
            return False
        return True

    def _view(self, name: str, columns: list[str], tree: exp.Expr) -> None:
        listed = f"({', '.join(map(_quoted, columns))})" if columns else ""
        query = self._translated(tree)
        if any(table.name.lower() == name for table in tree.find_all(exp.Table)):
            query = f"WITH RECURSIVE {_quoted(name)}{listed} AS ({query}) SELECT * FROM {name}"
        self._connection.execute(f"CREATE VIEW {_quoted(name)}{listed} AS {query}")

    # --- translation -------------------------------------------------------------------------

    def _translated(self, tree: exp.Expr) -> str:
        tree = tree.copy().transform(_adapted)
        clause = tree.args.get("with_")
        if clause is not None and clause.args.get("recursive") and not _is_plain(clause):
            tree.set("with_", None)
            self._iterate(clause)
        return tree.sql(dialect="duckdb", identify=True)

    def _iterate(self, clause: exp.Expr) -> None:
        """Compute all tables of a WITH RECURSIVE together as tables, round by round."""
        queries: dict[str, list[str]] = {}
        for table in clause.expressions:
            queries[table.alias_or_name] = [
                branch.sql(dialect="duckdb", identify=True) for branch in _branches(table.this)
            ]
        names = {
            t.alias_or_name: [c.name for c in t.args["alias"].columns] for t in clause.expressions
        }
        for name in queries:
            self._connection.execute(f"DROP TABLE IF EXISTS {_quoted(name)}")
        made: set[str] = set()
        while len(made) < len(queries):  # one whose branches can be typed already
            for name, branches in queries.items():
                if name not in made and self._make_empty(name, names[name], branches):
                    made.add(name)
        for _ in range(ROUNDS):
            if not sum(self._step(name, branches) for name, branches in queries.items()):
                return
        raise AssertionError("this recursion does not end in DuckDB")

    def _make_empty(self, name: str, columns: list[str], branches: list[str]) -> bool:
        listed = f"({', '.join(map(_quoted, columns))})" if columns else ""
        for branch in branches:
            try:
                self._connection.execute(
                    f"CREATE OR REPLACE TABLE {_quoted(name)} AS "
                    f"WITH q{listed} AS ({branch}) SELECT * FROM q LIMIT 0"
                )
            except duckdb.CatalogException:
                continue
            return True
        return False

    def _step(self, name: str, branches: list[str]) -> int:
        """Add what the branches give beyond what is known; return how many rows that is."""
        union = " UNION ".join(f"({branch})" for branch in branches)
        added = self._connection.execute(
            f"INSERT INTO {_quoted(name)} (({union}) EXCEPT SELECT * FROM {_quoted(name)})"
        ).fetchone()
        return int(added[0]) if added else 0

    def _bag(self, query: str) -> Counter[Row]:
        return Counter(rounded(row) for row in self._connection.execute(query).fetchall())


def _quoted(name: str) -> str:
    return f'"{name}"'


def _adapted(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.ArgMin() | exp.ArgMax():
            down = isinstance(node, exp.ArgMax)
            by = exp.Ordered(this=node.expression.copy(), desc=down, nulls_first=False)
            ties = exp.Ordered(this=node.this.copy(), nulls_first=False)
            return exp.First(this=exp.Order(this=node.this.copy(), expressions=[by, ties]))
        case exp.AnyValue():  # the least of them here
            return exp.Min(this=node.this.copy().transform(_adapted))
        case exp.Literal() if not node.args.get("is_string") and re.search(r"[.eE]", node.name):
            return exp.Cast(this=node.copy(), to=exp.DataType.build("DOUBLE"))
        case exp.WithinGroup(this=exp.PercentileCont(this=fraction), expression=order):
            arguments = [order.expressions[0].this.copy().transform(_adapted), fraction.copy()]
            return exp.Anonymous(this="quantile_cont", expressions=arguments)
        case exp.Cast(this=inner, to=kind):
            wide = exp.DataType.build("BIGINT") if kind.this == exp.DataType.Type.INT else kind
            return exp.TryCast(this=inner.copy().transform(_adapted), to=wide.copy())
        case _:
            return node


def _branches(tree: exp.Expr) -> list[exp.Expr]:
    if isinstance(tree, exp.Union) and tree.args.get("distinct"):
        return _branches(tree.this) + _branches(tree.expression)
    return [tree]


def _is_plain(clause: exp.Expr) -> bool:
    """Whether DuckDB understands it: only the last branch of a table reads it, and once."""
    names = [table.alias_or_name for table in clause.expressions]
    for position, table in enumerate(clause.expressions):
        read = [[t.name for t in b.find_all(exp.Table)] for b in _branches(table.this)]
        if any(names[position] in branch for branch in read[:-1]):
            return False
        if read[-1].count(names[position]) > 1:
            return False
        if any(set(branch) & set(names[position + 1 :]) for branch in read):
            return False
    return True


def rounded(row: tuple[Any, ...]) -> Row:
    """Return a row with its numbers as floats of nine digits, as both sides are compared."""
    return tuple(
        value if value is None or isinstance(value, str) else round(float(value), 9) + 0.0
        for value in row
    )
