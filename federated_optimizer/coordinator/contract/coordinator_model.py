"""What the coordinator tells the console: frozen values, and the interface the console codes to."""

import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from federated_optimizer.alarm_book import AlarmBook, AlarmRow
from streamsql.catalog.definitions import Definition
from streamsql.catalog.notices import AlarmDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import Row, Value
from streamsql.wire.messages import SiteState, WrapperState
from streamsql.wire.site_settings import SiteSettings


class QueryStatus(enum.StrEnum):
    """Where a query stands."""

    STARTING = "starting"  # not every site has sent its first snapshot yet
    RUNNING = "running"
    DEGRADED = "degraded"  # a site is offline or a table cannot be refreshed
    FAILED = "failed"  # stopped by an error such as the recursion limit
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A query as lists show it.

    Attributes:
        origin: "user", "map" (the console's own layers), "alarm" or "session" (gone with its
            reader).
        waiting_for: Sites whose first snapshot is missing, or that are offline.
        settled: Every site has sent and received everything there is.
        display: Where its answer is shown, or empty.
        snapshot: Whether readers that do not say otherwise begin with the rows there are.
        progress: Whether they are told up to when the answer is complete.
        key: Positions of the columns by which they get upserts; empty for signed rows.
    """

    id: str
    name: str
    text: str
    status: QueryStatus
    schema: Schema
    origin: str = "user"
    emit: str = "relation"
    version: int = 1
    created: int = 0
    rows: int = 0
    changes: int = 0
    last_change: int | None = None
    error: str = ""
    waiting_for: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    settled: bool = False
    display: str = ""
    snapshot: bool = True
    progress: bool = False
    key: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One signed row of a query's result; `ts` is the coordinator's time in microseconds.

    `reading_ts` is the time of the oldest reading behind it, when known.
    """

    ts: int
    diff: int
    row: Row
    reading_ts: int | None = None


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes that belong together.

    Attributes:
        snapshot: The changes are the whole relation so far; everything after it is a delta.
        progress: The answer is complete up to here: all that had happened by then is in it.
    """

    query: str
    changes: tuple[Change, ...]
    snapshot: bool = False
    status: QueryStatus | None = None
    error: str = ""
    progress: int | None = None


@dataclass(frozen=True, slots=True)
class SiteInfo:
    """A gateway, base site, static engine or the coordinator itself.

    Attributes:
        freshness: "live", "stale" (offline, within or after the grace time, or not heard from since
            the connection to the broker was lost) or "unknown".
        figures: The last state with figures: of a site that is away the last one before.
        figures_since: When a site that is away has sent that; None: it is there, or never did.
        differences: How sources are defined otherwise there than in the catalog, a sentence each.
    """

    site: str
    role: str
    online: bool
    freshness: str
    epoch: int
    since: int
    detail: str = ""
    rooms: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sensors: int = 0
    wrappers: tuple[WrapperState, ...] = ()
    state: SiteState | None = None
    figures: SiteState | None = None
    figures_since: int | None = None
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlarmInfo:
    """An alarm as lists show it.

    Attributes:
        query: Id of its running query; empty in a local script.
        status: Status of that query.
        raised: Rows that have raised it and are known to be there, acknowledged ones included.
        waiting: Rows that have not been there for long enough.
        unknown: Rows that have raised it and may be gone: a site that may feed them is away.
        unacknowledged: Rows that nobody has acknowledged, cleared ones included.
        unlisted: Rows beyond what is kept.
        dropped: Cleared rows that were dropped before anybody acknowledged them.
        since: When the oldest of the raised and unknown ones was raised, or None.
        away: Sites that are away, because of which rows are unknown.
    """

    definition: AlarmDefinition
    query: str
    status: str
    schema: Schema
    rows: tuple[AlarmRow, ...]
    raised: int
    waiting: int
    unknown: int
    unacknowledged: int
    unlisted: int
    dropped: int
    since: int | None
    away: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """`raised`, `unknown`, `waiting` or `clear`: the first that a row is in."""
        if self.raised:
            return "raised"
        if self.unknown:
            return "unknown"
        return "waiting" if self.waiting else "clear"


def alarm_info(
    book: AlarmBook, schema: Schema, query: str = "", status: str = "", away: tuple[str, ...] = ()
) -> AlarmInfo:
    """Return an alarm as lists show it, from its book."""
    return AlarmInfo(
        definition=book.definition,
        query=query,
        status=status,
        schema=schema,
        rows=book.rows,
        raised=book.raised,
        waiting=book.waiting,
        unknown=book.unknown,
        unacknowledged=book.unacknowledged,
        unlisted=book.unlisted,
        dropped=book.dropped,
        since=book.since,
        away=away,
    )


class ResultKind(enum.StrEnum):
    """What executing a statement gave."""

    QUERY = "query"
    ROWS = "rows"
    TEXT = "text"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The outcome of one statement.

    QUERY: a query now runs (`query`). ROWS: a table of values (SHOW, DESCRIBE): `columns`, `rows`.
    TEXT: EXPLAIN text, or with `data` its JSON form. DONE: `message` says what was done.
    """

    kind: ResultKind
    message: str = ""
    query: QueryInfo | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    text: str = ""
    data: Any = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong with a text while it is being typed: 1-based line and column."""

    message: str
    line: int
    column: int
    text: str
    hint: str = ""
    severity: str = "error"
    code: str = ""


@dataclass(frozen=True, slots=True)
class Validation:
    """The answer to "would this run?".

    Attributes:
        columns: Of the last query; `types` are theirs.
    """

    diagnoses: tuple[Diagnosis, ...] = ()
    columns: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    types: tuple[str, ...] = ()


class Subscription(Protocol):
    """A reader of a query's changes; iterate, then close.

    Bounded: a reader that falls too far behind gets a fresh snapshot batch instead of the changes
    it missed.
    """

    def __aiter__(self) -> AsyncIterator[ChangeBatch]:
        """Yield a snapshot first, then changes, until the query ends."""
        ...

    async def close(self) -> None:
        """Stop reading; ends a query of origin "session" when it was the last reader."""
        ...


class RowQuestions(Protocol):
    """Why a row is there, and what a deletion would do; the running queries are not touched.

    Answers are of kind TEXT, with `data` as well (see `coordinator/explanation_text.py`).
    """

    async def why_row(
        self, query_id: str, values: Sequence[object], *, limit: int = 10, confidence: str = ""
    ) -> StatementResult:
        """Return what a row of a running query rests on.

        Args:
            query_id: Id or name.
            values: The row, a value per column.
            limit: Most combinations of base rows to list.
            confidence: Column with probabilities of base rows, such as "link.pdr", or empty.

        Raises:
            KeyError: There is no such query.
            FederationError: The question is wrong, base rows do not come, or it takes too much
                work.
        """
        ...

    async def confidence_of_rows(
        self, query_id: str, column: str, *, limit: int | None = None
    ) -> StatementResult:
        """Return how probable the rows of a running query are.

        Args:
            query_id: Id or name.
            column: With probabilities of base rows, such as "link.pdr".
            limit: Most rows to look at.

        Raises:
            KeyError: There is no such query.
            FederationError: The question is wrong, base rows do not come, or it takes too much
                work.
        """
        ...

    async def what_if_deleted(
        self,
        deletions: Sequence[tuple[str, Sequence[object]]],
        *,
        gateways: Sequence[str] = (),
        nodes: Sequence[str | int] = (),
        query_id: str | None = None,
    ) -> StatementResult:
        """Return what would become of a running query, or of all, without base rows.

        Args:
            deletions: Names of sources or tables with values of their key or first columns: all
                such rows are meant.
            gateways: Ids of gateways: all base rows that they own are meant.
            nodes: Rows of streams and links that have one of them in their key are meant.
            query_id: Id or name; None for all of users, alarms and the map that read a source.

        Raises:
            KeyError: There is no such query.
            FederationError: The question is wrong, base rows do not come, or it takes too much
                work.
        """
        ...


class UnknownQueryError(KeyError):
    """No query of a name runs.

    Attributes:
        why: Why it no longer does, in a sentence, where that is known.
    """

    def __init__(self, name: str, why: str = "") -> None:
        super().__init__(name)
        self.why = why


class CoordinatorApi(Protocol):
    """Everything console, map, REST API and command line use."""

    @property
    def rows(self) -> RowQuestions:
        """Answers questions about rows of results."""
        ...

    async def execute(
        self, text: str, *, name: str = "", origin: str = "user"
    ) -> tuple[StatementResult, ...]:
        """Run a script; a SELECT or SUBSCRIBE starts a continuous query.

        Raises:
            FederationError: The first statement that fails; earlier ones stay done.
        """
        ...

    async def validate(self, text: str) -> Validation:
        """Parse and bind without running anything."""
        ...

    async def shapes(self, names: Sequence[str]) -> dict[str, Validation]:
        """Return the columns of sources, tables and views by name, where they bind."""
        ...

    def queries(self, origin: str | None = None) -> tuple[QueryInfo, ...]:
        """Return all queries, newest last."""
        ...

    def query(self, query_id: str) -> QueryInfo:
        """Return a query by id or name.

        Raises:
            KeyError: There is none.
        """
        ...

    def keep(self, query_id: str) -> QueryInfo:
        """Return a query that somebody is about to read; a session query waits for them anew.

        Raises:
            KeyError: There is none.
        """
        ...

    def explain(self, query_id: str) -> StatementResult:
        """Return the fragments of a running query as text and data, with live row counts."""
        ...

    async def stop(self, query_id: str) -> QueryInfo:
        """Stop and forget a query.

        Raises:
            KeyError: There is none.
        """
        ...

    def relation(self, query_id: str) -> tuple[Row, ...]:
        """Return the current rows of a query's result, sorted.

        Raises:
            KeyError: There is none.
        """
        ...

    def subscribe(
        self, query_id: str, *, snapshot: bool = True, progress: bool = False
    ) -> Subscription:
        """Start reading a query's changes.

        Args:
            query_id: Id or name.
            snapshot: Begin with the rows there are.
            progress: Tell up to when the answer is complete, now and then.

        Raises:
            KeyError: There is none.
        """
        ...

    def sites(self) -> tuple[SiteInfo, ...]:
        """Return gateways, base sites and the static engine as last heard of."""
        ...

    def site_settings(self, site: str) -> SiteSettings:
        """Return what is set at an engine site; where nothing is, what it says it uses.

        Raises:
            KeyError: There is no such engine site.
        """
        ...

    async def change_site(self, site: str, changes: Mapping[str, Value]) -> SiteSettings:
        """Set something at an engine site while it runs; what is not named stays.

        Raises:
            KeyError: There is no such engine site.
            BindingError: A name or a value is wrong.
        """
        ...

    async def remove_gateway(self, site: str) -> None:
        """Remove a gateway that will not come back: nobody plans with it or waits for it.

        Raises:
            KeyError: There is no such site.
            BindingError: It is no gateway, or it is online.
        """
        ...

    def definitions(self) -> tuple[Definition, ...]:
        """Return all sources, tables and views."""
        ...

    def alarms(self) -> tuple[AlarmInfo, ...]:
        """Return all alarms with their rows, in the order they were made."""
        ...

    def acknowledge(self, number: int) -> AlarmRow:
        """Note that somebody has seen a row that raised an alarm, cleared or not.

        Raises:
            KeyError: No row of this number has been raised.
        """
        ...

    def acknowledge_all(self, alarm: str) -> int:
        """Note that somebody has seen all rows of an alarm; return how many are new.

        Raises:
            KeyError: There is no such alarm.
        """
        ...

    def links(self) -> tuple[tuple[str, str, float | None], ...]:
        """Return the current links (source, target, cost) that gateways have published."""
        ...

    def command(self, site: str, verb: str, arguments: dict[str, Value]) -> None:
        """Send a command to a site, e.g. simulate; nobody answers here.

        Raises:
            DeploymentError: The site is not online, or not heard from since the broker was away.
        """
        ...
