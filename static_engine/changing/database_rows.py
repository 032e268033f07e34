"""Rows of a database table by what the database itself identifies them by."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import (
    ColumnClause,
    and_,
    bindparam,
    delete,
    func,
    inspect,
    literal_column,
    select,
    text,
    types,
    update,
)
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement, TableClause, column, quoted_name
from sqlalchemy.types import TypeEngine

from static_engine.changing.change_checks import failed, not_writable
from static_engine.sources.table_errors import TableError
from static_engine.sources.values.conversion import batch_of_values, rows_in
from streamsql.algebra.row_changes import RowChange
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Row

MAX_CHOSEN = 500_000
"""Max rows of one UPDATE, MERGE, or DELETE with a condition."""
_STREAMING = {"yield_per": 20_000}
_CHUNK = 1_000
_SAME: dict[DataType, tuple[type[TypeEngine[Any]], ...]] = {
    DataType.BOOLEAN: (types.Boolean,),
    DataType.INTEGER: (types.Integer,),
    DataType.TEXT: (types.String, types.Uuid),
    DataType.DOUBLE: (types.Float,),
    DataType.TIMESTAMP: (types.DateTime, types.Date),
}
"""Types of which values that differ in the database differ in the declared type, too."""
_ROWID_NAMES = ("rowid", "_rowid_", "oid")

Identity = tuple[Any, ...]

Changes = Callable[[Iterator[Row]], Iterator[RowChange]]
"""Yields what becomes of rows, each before it takes the next."""


class FoundRows:
    """The rows of a table within a transaction.

    Args:
        definition: As it is declared.
        connection: In the transaction.
        target: The table.
        names: All its columns there.
        declared: The declared ones, in the order of the declaration.
        where: The table, for errors.
    """

    def __init__(  # noqa: PLR0913 - each is another thing
        self,
        definition: SourceDefinition,
        connection: Connection,
        target: TableClause,
        *,
        names: Sequence[str],
        declared: Sequence[ColumnClause[Any]],
        where: str,
    ) -> None:
        self._definition, self._connection, self._where = definition, connection, where
        self._target, self._names, self._declared = target, names, declared

    def rows(self, chosen: Sequence[int]) -> Generator[tuple[Any, ...]]:
        """Yield some columns of all rows, as the database gives them."""
        query = select(*(self._declared[place] for place in chosen)).select_from(self._target)
        with self._connection.execute(query, execution_options=_STREAMING) as found:
            for row in found:
                yield tuple(row)

    def is_unique(self, chosen: Sequence[int], kinds: Sequence[TypeEngine[Any]]) -> bool:
        """Whether the database itself keeps some declared columns unique.

        In SQLite it is never counted on: a column there may hold 1 and '1', which are one value.
        Nor where another type is declared: '2' and '02' differ there and are one INTEGER here.

        Args:
            chosen: Their positions in the declaration.
            kinds: The types in the database of all that are declared.
        """
        if self._connection.dialect.name == "sqlite":
            return False
        dtypes = self._definition.schema.dtypes
        if not all(isinstance(kinds[place], _SAME.get(dtypes[place], ())) for place in chosen):
            return False
        # A constraint does not hold for the rows of inheriting tables, which a SELECT finds.
        heirs = text(
            "SELECT EXISTS (SELECT 1 FROM pg_inherits JOIN pg_class ON oid = inhparent "
            "WHERE relname = :name AND relkind = 'r')"
        )
        if self._connection.execute(heirs, {"name": str(self._target.name)}).scalar_one():
            return False
        inspector, name, schema = inspect(self._connection), self._target.name, self._target.schema
        wanted = {str(self._declared[place].name) for place in chosen}
        unique = [inspector.get_pk_constraint(name, schema)["constrained_columns"]]
        unique += [one["column_names"] for one in inspector.get_unique_constraints(name, schema)]
        return any(columns and wanted.issuperset(columns) for columns in unique)

    def delete_all(self) -> int:
        """Delete all rows; return how many there were."""
        before = self._count()
        self._connection.execute(delete(self._target))
        self._check_gone(self._count())
        return before

    def delete_where(self, goes: Callable[[Row], bool]) -> int:
        """Delete the rows that fit a condition, which means the same as in queries.

        Returns:
            How many they were.
        """
        identity = self._identity()
        with closing(self._identified(identity)) as found:
            chosen = [known for known, row in found if goes(row)]
        if len(chosen) > MAX_CHOSEN:
            raise failed(
                f"{self._where}: more than {MAX_CHOSEN} rows fit the condition",
                "DELETE them in parts, or DELETE all rows without a condition",
            )
        if self._delete(identity, chosen) < len(chosen):
            # Fewer, when one has taken others with it (ON DELETE CASCADE), or a trigger kept some.
            with closing(self._identified(identity)) as found:
                self._check_gone(sum(goes(row) for _, row in found))
        return len(chosen)

    def changed(self, changes: Changes) -> list[tuple[Identity | None, Row | None]]:
        """Return what becomes of the rows: each by its identity, with the row in its place.

        A new row has no identity; in place of a row that goes there is none.

        Raises:
            TableError: They are too many.
        """
        here: Identity = ()
        found: list[tuple[Identity | None, Row | None]] = []
        with closing(self._identified(self._identity())) as identified:

            def rows() -> Iterator[Row]:
                nonlocal here
                for here, row in identified:  # noqa: B007  (read below)
                    yield row

            for old, new in changes(rows()):
                found.append((None if old is None else here, new))
                if len(found) > MAX_CHOSEN:
                    raise failed(
                        f"{self._where}: more than {MAX_CHOSEN} rows would change",
                        "change them in parts, with a narrower condition",
                    )
        return found

    def delete(self, gone: list[Identity]) -> None:
        """Delete rows by their identities."""
        if self._delete(self._identity(), gone) < len(gone):
            raise self._kept("delete")

    def update(self, changed: list[tuple[Identity, dict[str, object]]]) -> None:
        """Update rows by their identities; values by column."""
        identity = self._identity()
        fits = [known == bindparam(f"k{n}") for n, known in enumerate(identity)]
        if self._connection.dialect.name == "postgresql":
            fits = [text("tableoid = :k0 AND ctid = CAST(:k1 AS tid)")]  # type: ignore[list-item]
        by_columns: dict[tuple[str, ...], list[dict[str, object]]] = {}
        for known, values in changed:
            keys = {f"k{n}": value for n, value in enumerate(known)}
            given = {f"v{n}": value for n, value in enumerate(values.values())}
            by_columns.setdefault(tuple(values), []).append({**keys, **given})
        for columns, parameters in by_columns.items():
            assigned: dict[Any, Any] = {
                column(quoted_name(name, quote=True)): bindparam(f"v{n}")
                for n, name in enumerate(columns)
            }
            statement = update(self._target).where(and_(*fits)).values(assigned)
            for start in range(0, len(parameters), _CHUNK):
                part = parameters[start : start + _CHUNK]
                if self._connection.execute(statement, part).rowcount != len(part):
                    raise self._kept("update")

    def _kept(self, verb: str) -> TableError:
        return failed(
            f"{self._where}: a trigger or a rule of the database did not {verb} some of the rows; "
            "nothing has changed",
            "see the table's definition there",
        )

    def _check_gone(self, left: int) -> None:
        if left:
            raise failed(
                f"{self._where}: a trigger or a rule of the database keeps {left} of the "
                "rows; nothing has changed",
                "see the table's definition there",
            )

    def _count(self) -> int:
        query = select(func.count()).select_from(self._target)
        return int(self._connection.execute(query).scalar_one())

    def _identified(self, identity: list[ColumnElement[Any]]) -> Generator[tuple[Identity, Row]]:
        """Yield every row in the declared types, with what the database identifies it by."""
        query = select(*identity, *self._declared).select_from(self._target)
        width, first = len(identity), 1
        with self._connection.execute(query, execution_options=_STREAMING) as found:
            for part in found.partitions():
                values = [row[width:] for row in part]
                batch = batch_of_values(self._definition, values, first, self._where)
                yield from zip((tuple(row[:width]) for row in part), rows_in(batch), strict=True)
                first += len(part)

    def _identity(self) -> list[ColumnElement[Any]]:
        """Return columns that identify a row as long as the transaction lasts."""
        if self._connection.dialect.name == "postgresql":
            # A partition or an inheriting table counts its places for itself.
            return [literal_column("tableoid"), literal_column("ctid")]
        schema = self._target.schema or "main"
        asked = text("SELECT wr FROM pragma_table_list WHERE schema = :schema AND name = :name")
        named = {"schema": schema, "name": str(self._target.name)}
        if self._connection.execute(asked, named).scalar():
            key = inspect(self._connection).get_pk_constraint(self._target.name, schema)
            return [column(quoted_name(name, quote=True)) for name in key["constrained_columns"]]
        used = {name.lower() for name in self._names}
        for name in _ROWID_NAMES:
            if name not in used:
                return [literal_column(name)]
        raise not_writable(
            self._definition,
            f"has columns named {', '.join(_ROWID_NAMES)} in its database, so Pando cannot "
            "identify its rows",
            "DELETE it in the database",
        )

    def _delete(self, identity: list[ColumnElement[Any]], chosen: list[Identity]) -> int:
        gone = 0
        if self._connection.dialect.name == "postgresql":
            by_table: dict[int, list[str]] = {}
            for oid, place in chosen:
                by_table.setdefault(oid, []).append(str(place))
            here = text("tableoid = :oid AND ctid = ANY (CAST(:places AS tid[]))")
            for oid, places in by_table.items():
                for start in range(0, len(places), _CHUNK):
                    known = {"oid": oid, "places": places[start : start + _CHUNK]}
                    statement = delete(self._target).where(here)
                    gone += self._connection.execute(statement, known).rowcount
            return gone
        fits = and_(*(known == bindparam(f"k{n}") for n, known in enumerate(identity)))
        statement = delete(self._target).where(fits)
        for start in range(0, len(chosen), _CHUNK):
            part = chosen[start : start + _CHUNK]
            known_rows = [{f"k{n}": value for n, value in enumerate(row)} for row in part]
            gone += self._connection.execute(statement, known_rows).rowcount
        return gone
