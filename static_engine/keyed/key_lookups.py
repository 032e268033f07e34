"""Rows of tables for keys, from the database itself or from the tables as they were read.

The database is asked where it compares keys as we do.
"""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from static_engine.evaluation.static_executor import (
    StaticExecutor,
    check_size,
    refuse_streams,
)
from static_engine.keyed.keyed_fragments import KeyedFragment
from static_engine.sources.databases.database_lookup import DatabaseLookup, LookupRequest
from static_engine.sources.declared_options import table_options
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, database_url
from static_engine.sources.values.conversion import arrow_schema, rows_in
from static_engine.sources.values.unique_keys import unique_rows
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns
from streamsql.algebra.operators import (
    Filter,
    Plan,
    Project,
    RemoteSource,
    Scan,
    Values,
    transform_up,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TableSource
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType, Row
from streamsql.reference import Database, evaluate

_ALIKE = (DataType.INTEGER, DataType.TEXT, DataType.BOOLEAN, DataType.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Filters and projections over one table, as seen from the table.

    Attributes:
        keys: Columns of the table that hold the keys.
        conditions: Of the filters that read columns of the table only.
        columns: That anything reads.
    """

    scan: Scan
    keys: tuple[int, ...]
    conditions: tuple[Expression, ...]
    columns: frozenset[int]


class DatabaseKeys:
    """Looks keys up in the database; rows are judged once more by the language's own definition.

    Args:
        keyed: The fragment; its tables are filters and projections over one table.
        definition: The table.
        locations: What may be read.
        max_rows: Most rows that keys may find.
    """

    def __init__(
        self,
        keyed: KeyedFragment,
        definition: SourceDefinition,
        locations: Locations,
        max_rows: int,
    ) -> None:
        chain = chain_of(keyed)
        if chain is None:
            raise ValueError("no chain over one table")
        self._keyed, self._definition, self._max_rows = keyed, definition, max_rows
        self._locations, self._scan = locations, chain.scan
        types = tuple(keyed.keys.columns.dtypes)
        self._request = LookupRequest(chain.keys, types, chain.conditions, chain.columns)

    def find(self, keys: Sequence[Row]) -> Delta:
        """Return the fragment's rows for some keys.

        Raises:
            NoLookupError: The table has to be read first.
            TableError: The database does not answer.
            EvaluationError: The keys find too many rows.
        """
        _check_definition(self._definition, self._scan)
        options = table_options(self._definition)
        url = database_url(options.url, self._locations)
        lookup = DatabaseLookup(self._definition, url, options.table, self._request)
        batches: Iterator[pa.RecordBatch] = lookup.batches(keys)
        read = self._request.columns | set(self._request.keys)
        if self._definition.key and read.issuperset(self._definition.key):
            batches = unique_rows(self._definition, batches)
        return _answer(self._keyed, self._scan, batches, keys, self._max_rows)


class StoredKeys:
    """Looks keys up in a table that was read: Arrow finds rows in memory or in our Parquet file.

    Args:
        keyed: The fragment; its tables are filters and projections over one table.
        store: The tables.
        max_rows: Most rows that keys may find.
    """

    def __init__(self, keyed: KeyedFragment, store: TableStore, max_rows: int) -> None:
        self._keyed, self._store, self._max_rows = keyed, store, max_rows
        self._chain = chain_of(keyed)

    @property
    def is_possible(self) -> bool:
        """Whether keys and table have columns of a type that Arrow compares as we do."""
        if self._chain is None:
            return False
        types = self._chain.scan.columns.dtypes
        pairs = zip(self._keyed.keys.columns.dtypes, self._chain.keys, strict=True)
        return all(dtype == types[place] and dtype in _ALIKE for dtype, place in pairs)

    def find(self, keys: Sequence[Row]) -> Delta:
        """Return the fragment's rows for some keys.

        Raises:
            TableError: The table has not been read, or was declared again.
            EvaluationError: The keys find too many rows.
        """
        if self._chain is None:
            raise ValueError("no chain over one table")
        scan = self._chain.scan
        table = self._store.table(scan)
        rows = ds.dataset(table.data if table.data is not None else str(table.snapshot))
        kinds = arrow_schema(scan.columns).types
        wanted = [
            pc.field(f"c{place}").isin(pa.array(list({key[n] for key in keys}), kinds[place]))
            for n, place in enumerate(self._chain.keys)
        ]
        found = rows.to_batches(filter=reduce(operator.and_, wanted))
        return _answer(self._keyed, scan, found, keys, self._max_rows)


def _answer(
    keyed: KeyedFragment,
    scan: Scan,
    batches: Iterator[pa.RecordBatch],
    keys: Sequence[Row],
    max_rows: int,
) -> Delta:
    """Return a fragment's rows for some keys from at least the rows of its table that hold them."""
    events: list[SourceEvent] = []
    for batch in batches:
        check_size(len(events) + batch.num_rows, max_rows)
        events += [SourceEvent(row, ts=0) for row in rows_in(batch)]
    database = Database()
    database.append(scan.source, events)
    return evaluate(keyed.join, database, 0, {keyed.keys.fragment: list(keys)})


def find_by_executor(keyed: KeyedFragment, executor: StaticExecutor, keys: Sequence[Row]) -> Delta:
    """Return a fragment's rows for some keys from the tables as they were read.

    Raises:
        FederationError: As `StaticExecutor.evaluate`.
    """

    def with_keys(node: Plan) -> Plan:
        return Values(tuple(keys), node.columns) if isinstance(node, RemoteSource) else node

    plan = transform_up(keyed.join, with_keys)
    refuse_streams(plan)
    return executor.evaluate(plan)


def chain_of(keyed: KeyedFragment) -> _Chain | None:
    """Return what a fragment wants of its table, if it is one and holds the keys as they are."""
    output: tuple[Expression, ...] | None = None
    steps: list[Filter | Project] = []
    plan = keyed.tables
    while isinstance(plan, Filter | Project):
        steps.append(plan)
        plan = plan.input
    if not isinstance(plan, Scan) or plan.history is not None:
        return None
    fields = plan.columns.fields
    output = tuple(Column(p, f.name, f.dtype) for p, f in enumerate(fields))
    conditions: list[Expression] = []
    for step in reversed(steps):
        if isinstance(step, Filter):
            conditions.append(_over(step.predicate, output))
        else:
            output = tuple(_over(expression, output) for expression in step.expressions)
    keys = [output[p] for p in keyed.table_keys]
    read = frozenset().union(*map(columns_of, (*output, *conditions)))
    if not all(isinstance(key, Column) for key in keys):
        return None
    places = tuple(key.position for key in keys if isinstance(key, Column))
    return _Chain(plan, places, tuple(conditions), read)


def database_of(definition: SourceDefinition) -> bool:
    """Whether a table is one of a database, which can be asked for keys."""
    try:
        return table_options(definition).source == TableSource.SQL
    except TableError:
        return False


def _over(expression: Expression, below: tuple[Expression, ...]) -> Expression:
    return map_columns(expression, lambda column: below[column.position])


def _check_definition(definition: SourceDefinition, scan: Scan) -> None:
    if definition.schema != scan.columns:
        raise TableError(
            f"a query reads {scan.source}{scan.columns}, but the table is now {definition.schema}",
            hint="drop the query and start it again",
        )
