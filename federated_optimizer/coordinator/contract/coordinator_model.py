"""Values that the coordinator gives the console, all frozen."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from federated_optimizer.alarm_life_cycle import AlarmBook, AlarmRow
from streamsql.algebra.streams import Emit
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import Row
from streamsql.wire.site_messages import ConnectorState, SiteRole, SiteState


@dataclass(frozen=True, slots=True)
class Wanted:
    """Queries that a list is asked for: all that fit, or the newest of them.

    Attributes:
        shows: Tells of columns whether queries that have them are asked for; None: all are.
        words: Each of them, in any case, is in the id, the name or the text of a query.
        reads: A relation that they read, themselves or in a view, in any case; empty: any.
        most: The number of queries at most; None: any number.
        displayed: True: only those whose answers are shown on a display.
    """

    shows: Callable[[Schema], bool] | None = None
    words: str = ""
    reads: str = ""
    most: int | None = None
    displayed: bool = False


ALL = Wanted()


class QueryStatus(enum.StrEnum):
    """State of a query."""

    STARTING = "starting"  # not every site has sent its first snapshot yet
    RUNNING = "running"
    DEGRADED = "degraded"  # a site is offline or a table cannot be refreshed
    FAILED = "failed"  # stopped by an error such as the recursion limit
    STOPPED = "stopped"


class Origin(enum.StrEnum):
    """For whom a query runs."""

    USER = "user"
    MAP = "map"  # the console's own layers
    ALARM = "alarm"
    SINK = "sink"
    SESSION = "session"  # gone with its reader
    NODE = "node"  # nobody: other runs read its rows


ACTING = frozenset({Origin.ALARM, Origin.SINK})
"""Origins of queries each change of whose answer acts on the world."""


class Freshness(enum.StrEnum):
    """Trust in the last report of a site."""

    LIVE = "live"
    STALE = "stale"  # offline, or not heard from since the connection to the broker was lost
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A query as lists show it.

    Attributes:
        run: The id under which sites run it; equal queries share one.
        waiting_for: Sites whose first snapshot is missing, or that are offline.
        settled: Every site has sent and received everything there is.
        display: Where its answer is shown, or empty.
        snapshot: Whether readers that do not say otherwise begin with the rows there are.
        progress: Whether they are told up to when the answer is complete.
        key: Positions of the columns by which they get upserts; empty for signed rows.
        units: Of the columns, "" where none is known; empty: of none.
    """

    id: str
    name: str
    text: str
    status: QueryStatus
    schema: Schema
    origin: Origin = Origin.USER
    emit: Emit = Emit.RELATION
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
    units: tuple[str, ...] = ()
    run: str = ""


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
        figures: The last state with figures: of a site that is away the last one before.
        figures_since: When a site that is away has sent that; None: it is there, or never did.
        differences: How sources are defined otherwise there than in the catalog, a sentence each.
        late_sources: Declared sources whose definition it should have reported by now.
    """

    site: str
    role: SiteRole
    online: bool
    freshness: Freshness
    epoch: int
    since: int
    detail: str = ""
    rooms: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sensors: int = 0
    connectors: tuple[ConnectorState, ...] = ()
    state: SiteState | None = None
    figures: SiteState | None = None
    figures_since: int | None = None
    differences: tuple[str, ...] = ()
    late_sources: frozenset[str] = frozenset()


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
        unsettled_since: Where no site is away: since when rows are unknown because the query has
            not settled, or None.
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
    unsettled_since: int | None = None

    @property
    def state(self) -> str:
        """`raised`, `unknown`, `waiting` or `clear`: the first that a row is in."""
        if self.raised:
            return "raised"
        if self.unknown:
            return "unknown"
        return "waiting" if self.waiting else "clear"


def alarm_info(book: AlarmBook, schema: Schema) -> AlarmInfo:
    """Return an alarm as lists show it, from its book alone: without its running query."""
    return AlarmInfo(
        definition=book.definition,
        query="",
        status="",
        schema=schema,
        rows=book.rows,
        raised=book.raised,
        waiting=book.waiting,
        unknown=book.unknown,
        unacknowledged=book.unacknowledged,
        unlisted=book.unlisted,
        dropped=book.dropped,
        since=book.since,
    )


class ResultKind(enum.StrEnum):
    """Kind of result of a statement."""

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
    """A fault in a text while it is being typed: 1-based line and column."""

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
