"""Lookups by key that are due, over all queries: what is asked, where, and again when."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from static_engine.evaluation.evaluations import Evaluations
from static_engine.evaluation.static_executor import EngineLostError, StaticExecutor, check_size
from static_engine.keyed.key_lookups import (
    DatabaseKeys,
    StoredKeys,
    chain_of,
    database_of,
    find_by_executor,
)
from static_engine.keyed.keyed_fragments import KeyedFragment, KeyJob
from static_engine.keyed.received_keys import ReceivedKeys, keys_port
from static_engine.sources.databases.database_lookup import NoLookupError
from static_engine.sources.declared_options import table_options
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Fingerprint
from static_engine.tables.table_sizes import TableSizes
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.errors import FederationError, InternalError
from streamsql.wire.fragments import Fragment, FragmentBundle

RETRY_SECONDS = 10.0

ExecutorFor = Callable[[Plan], StaticExecutor | None]
Compute = Callable[[Callable[[], None]], Awaitable[bool]]


class _Reader(Protocol):
    """A query as lookups need it."""

    @property
    def keyed(self) -> "KeyedQuery": ...

    def change(self, fragment: str, delta: Delta) -> None:
        """Add to a fragment's result."""


class _Looked:
    """A fragment that looks keys up.

    Attributes:
        by_database: How, if the database is asked; None: the tables are read.
        in_store: How, if keys are looked up in one table that is read; None: a plan is evaluated.
        decided: The definition for which that was decided.
    """

    def __init__(self, fragment: Fragment) -> None:
        self.keyed = KeyedFragment(fragment.plan)
        self.port = keys_port(fragment)
        self.chain = chain_of(self.keyed)
        self.by_database: DatabaseKeys | None = None
        self.in_store: StoredKeys | None = None
        self.decided: SourceDefinition | None = None
        self.compares_otherwise: SourceDefinition | None = None
        self.begun = False
        self.error: FederationError | None = None
        self.retry_at = float("-inf")

    @property
    def finder(self) -> DatabaseKeys | StoredKeys | None:
        """The lookup that spares an evaluation over all rows, if there is one."""
        if self.by_database is not None:
            return self.by_database
        return self.in_store if self.in_store is not None and self.in_store.is_possible else None


class KeyedQuery:
    """The fragments of one query that look keys up, and the channels that bring the keys.

    Args:
        bundle: The whole plan.
        site: Our id.

    Raises:
        WireError: A fragment reads keys and is no join by them.
    """

    def __init__(self, bundle: FragmentBundle, site: str) -> None:
        self.received = ReceivedKeys(bundle, site)
        self.looked = {f.id: _Looked(f) for f in bundle.at(site) if keys_port(f)}

    @property
    def error(self) -> FederationError | None:
        """Why keys are not answered at present."""
        return next((looked.error for looked in self.looked.values() if looked.error), None)

    def asks_database(self, fragment: str) -> bool:
        """Whether a fragment's table is not read but asked."""
        looked = self.looked.get(fragment)
        return looked is not None and looked.by_database is not None


class KeyedQueries:
    """Answers the keys of all queries, some thousand at a time.

    A table that is asked counts as changed when its file has, after its `refresh` interval, when
    somebody asks to read it again, and when we change its database.

    Args:
        store: The tables that are read.
        watch: The definitions.
        evaluations: For the versions of tables.
        max_rows: Most rows of one fragment.
        clock: Seconds, monotonic.

    Attributes:
        sizes: Of all tables, for the planner.
    """

    def __init__(
        self,
        store: TableStore,
        watch: TableWatch,
        evaluations: Evaluations,
        max_rows: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._watch, self._evaluations = store, watch, evaluations
        self._max_rows, self._clock = max_rows, clock
        self.sizes = TableSizes(store, watch)
        self._prints: dict[str, Fingerprint | None] = {}
        self.count = 0

    def decide(self, queries: Iterable[_Reader]) -> None:
        """Find out which tables are asked for keys, so that they need not be read."""
        for looked in _all_looked(queries):
            if looked.in_store is None and looked.chain is not None:
                looked.in_store = StoredKeys(looked.keyed, self._store, self._max_rows)
            definition = self._watch.definition(looked.chain.scan.source) if looked.chain else None
            if definition == looked.decided:
                continue
            looked.decided, looked.by_database = definition, None
            if definition is None or definition == looked.compares_otherwise:
                continue
            if database_of(definition):
                looked.by_database = DatabaseKeys(
                    looked.keyed, definition, self._store.locations, self._max_rows
                )

    def poll(self, queries: Iterable[_Reader]) -> None:
        """Look at the files of the databases that are asked, and at sizes; blocking."""
        self.sizes.poll()
        names = {
            looked.decided.name: looked.decided
            for looked in _all_looked(queries)
            if looked.by_database is not None and looked.decided is not None
        }
        self._prints = {name: self._print_of(table) for name, table in names.items()}

    def problems(self, queries: Iterable[_Reader]) -> dict[str, TableError]:
        """Return why databases that are asked for keys do not answer, by table."""
        return {
            looked.decided.name: looked.error
            for looked in _all_looked(queries)
            if looked.by_database and looked.decided and isinstance(looked.error, TableError)
        }

    def is_due(self, query: _Reader) -> bool:
        """Whether keys of a query should be looked up."""
        return any(self._is_due(query, looked) for looked in query.keyed.looked.values())

    async def evaluate(
        self, queries: Mapping[str, _Reader], executor_for: ExecutorFor, compute: Compute
    ) -> bool:
        """Answer keys, one job per fragment; return whether more are due."""
        chosen = list(queries.values())
        for query in chosen:
            _take(query)
            for name, looked in query.keyed.looked.items():
                if self._is_due(query, looked):
                    await self._look_up(query, name, looked, executor_for, compute)
        return any(map(self.is_due, chosen))

    async def _look_up(
        self,
        query: _Reader,
        name: str,
        looked: _Looked,
        executor_for: ExecutorFor,
        compute: Compute,
    ) -> None:
        finder = looked.finder
        executor = executor_for(looked.keyed.tables) if finder is None else None
        if executor is None and finder is None:
            return
        found: list[Delta] = []
        try:
            job = looked.keyed.begin(self._version(looked))
            check_size(looked.keyed.rows, self._max_rows)
        except FederationError as error:
            self._failed(looked, error)
            return
        if job.keys:
            self.count += 1
            await compute(partial(self._find, looked, executor, job, found))
            if not found:
                return
        change = looked.keyed.finish(job, found[0] if found else {})
        looked.error, looked.begun = None, True
        query.change(name, change)

    def _find(
        self, looked: _Looked, executor: StaticExecutor | None, job: KeyJob, found: list[Delta]
    ) -> None:
        """Add the rows for a job's keys to `found`, or note why there are none."""
        try:
            finder = looked.finder
            if finder is not None:
                found.append(finder.find(job.keys))
            elif executor is not None:
                found.append(find_by_executor(looked.keyed, executor, job.keys))
        except NoLookupError:
            looked.compares_otherwise, looked.by_database = looked.decided, None
        except EngineLostError as error:
            self._failed(looked, error)
            raise
        except FederationError as error:
            self._failed(looked, error)
        except Exception as error:  # noqa: BLE001 - one query must not stop the others
            text = f"looking keys up failed: {type(error).__name__}: {error}"
            self._failed(looked, InternalError(text))

    def _failed(self, looked: _Looked, error: FederationError) -> None:
        looked.error, looked.retry_at = error, self._clock() + RETRY_SECONDS

    def _is_due(self, query: _Reader, looked: _Looked) -> bool:
        version = self._version(looked)
        if version is None or (looked.error is not None and self._clock() < looked.retry_at):
            return False
        received = query.keyed.received
        begins = not looked.begun and received.is_complete(looked.port)
        return begins or received.has_news(looked.port) or looked.keyed.is_due(version)

    def _version(self, looked: _Looked) -> object:
        """Return what changes when answers may have; None while nothing can be answered."""
        if looked.by_database is None or looked.decided is None:
            return self._evaluations.versions(looked.keyed.tables)
        table = looked.decided
        if table.name not in self._prints:
            return None  # its file is looked at first
        try:
            refresh = table_options(table).refresh
        except TableError:
            return None
        turn = int(self._clock() / refresh) if refresh else 0
        return (self._watch.revision(table.name), turn, self._prints[table.name])

    def _print_of(self, definition: SourceDefinition) -> Fingerprint | None:
        try:
            return self._store.print_of(definition)
        except TableError:
            return None  # whoever asks it for keys gets the reason


def _all_looked(queries: Iterable[_Reader]) -> Iterable[_Looked]:
    return [looked for query in queries for looked in query.keyed.looked.values()]


def _take(query: _Reader) -> None:
    """Give the keys that have come to every fragment that looks them up."""
    received, looked_up = query.keyed.received, query.keyed.looked
    taken = {port: received.take(port) for port in {each.port for each in looked_up.values()}}
    for name, looked in looked_up.items():
        change = looked.keyed.change(*taken[looked.port])
        if change:
            query.change(name, change)
