"""The lake over the broker: what the coordinator asks of the static engine, and what that answers.

Both are MessagePack: the request on the command topic `lake`, the answer on the topic of responses.
What takes long is a job: the answer names it, and its progress is in later answers to `status`.
"""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from streamsql.wire.bounds import Count, Epoch, Name, Names, Text, Time, WireRow

LAKE = "lake"
"""The verb of the command."""
MAX_TABLES = 2_000
MAX_COLUMNS = 200
"""Of a table, in an answer."""
MAX_JOBS = 200
MAX_ROWS = 200
MAX_BUCKETS = 400
MAX_BARS = 40
"""Of the plot of one column."""


class LakeTask(StrEnum):
    """Kinds of requests."""

    STATUS = "status"
    JOBS = "jobs"
    SAMPLE = "sample"
    STORED = "stored"
    COMPACT = "compact"
    EXPIRE = "expire"
    EXPORT = "export"
    REPLAY = "replay"
    CANCEL = "cancel"


class JobState(StrEnum):
    """States of a job."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ExportFormat(StrEnum):
    """Files that an export writes."""

    PARQUET = "parquet"
    CSV = "csv"


class LakeRequest(msgspec.Struct, frozen=True):
    """A question or an order.

    Attributes:
        id: Of the request; the same one that comes again is not carried out again.
        epoch: Of the static engine that is meant.
        task: What is asked.
        table: Of the lake, as `readings.temperature`; empty: all, where that may be. Of `stored`
            the name of a stored table.
        since: Of an export or sample: first event time, in microseconds; None: from the beginning.
        until: Likewise, not included.
        form: Of an export.
        job: The id of a job that is to be cancelled.
        rows: Of a sample, how many.
    """

    id: Name
    epoch: Epoch
    task: LakeTask
    table: Name = ""
    since: Time | None = None
    until: Time | None = None
    form: ExportFormat = ExportFormat.PARQUET
    job: Name = ""
    rows: Annotated[int, Meta(ge=0, le=MAX_ROWS)] = 20


class LakeColumn(msgspec.Struct, frozen=True):
    """A column of a table: its name and type in the lake, and what it is, in words."""

    name: Name
    type: Name
    words: Name = ""


class LakeTable(msgspec.Struct, frozen=True):
    """A table of the lake.

    Attributes:
        namespace: `readings`, `rollups`, `system` or `tables`.
        name: Of the table.
        rows: In its present state.
        bytes: Of its files, compressed.
        files: How many.
        small_files: How many of them compaction would put together.
        snapshots: States that may be read.
        first: Earliest time in it, in microseconds; None: unknown.
        last: Latest time in it.
        committed: When it was changed last.
        columns: At most `MAX_COLUMNS`.
        keep: How long its readings are kept, as it is written; empty: this is not about readings.
        rollups: Its roll-ups, e.g. `1 min`.
        problem: Why there is no more to say.
    """

    namespace: Name
    name: Name
    rows: Count = 0
    bytes: Count = 0
    files: Count = 0
    small_files: Count = 0
    snapshots: Count = 0
    first: Time | None = None
    last: Time | None = None
    committed: Time | None = None
    columns: Annotated[tuple[LakeColumn, ...], Meta(max_length=MAX_COLUMNS)] = ()
    keep: Name = ""
    rollups: Names = ()
    problem: Text = ""


class LakeJob(msgspec.Struct, frozen=True):
    """Work on the lake.

    Attributes:
        id: Of the job.
        task: `compact`, `expire`, `export`, `replay`, or `care`: all that is due, by itself.
        table: Of the lake; empty: all.
        state: What it is doing.
        done: How much is done; of what, `message` says.
        total: Of how much; 0: not known yet.
        began: In microseconds.
        ended: Likewise; None: it has not.
        message: What is done, what came of it, or what is wrong.
    """

    id: Name
    task: Name
    table: Name
    state: JobState
    done: Count = 0
    total: Count = 0
    began: Time | None = None
    ended: Time | None = None
    message: Text = ""


class LakeSample(msgspec.Struct, frozen=True):
    """Some rows of a table, and how its numbers went.

    Attributes:
        columns: Of the rows.
        rows: The newest, the newest first.
        since: Of the plots, in microseconds.
        until: Likewise.
        series: Columns of the plots: `_from`, `_count`, then `_min`, `_max` and `_avg` of numbers.
        buckets: A row per interval.
        cut: Whether there were more rows than are read for this; the latest are missing then.
    """

    columns: Names = ()
    rows: Annotated[tuple[WireRow, ...], Meta(max_length=MAX_ROWS)] = ()
    since: Time | None = None
    until: Time | None = None
    series: Names = ()
    buckets: Annotated[tuple[WireRow, ...], Meta(max_length=MAX_BUCKETS)] = ()
    cut: bool = False


class TableFigures(msgspec.Struct, frozen=True):
    """A stored table: of files, a database or the lake.

    Attributes:
        name: Of the table.
        source: Its kind, e.g. `csv`.
        place: Its file, folder or database table, as written; no address of a database.
        rows: About how many; None: unknown.
        bytes: Of its files; None: unknown.
        read: When its rows were read, in microseconds; None: no query needs them.
        refresh: Seconds between two readings; None: when its files change.
        columns: At most `MAX_COLUMNS`.
        problem: Why it cannot be read.
        told: Whether changes are seen without reading it.
    """

    name: Name
    source: Name
    place: Text = ""
    rows: Count | None = None
    bytes: Count | None = None
    read: Time | None = None
    refresh: float | None = None
    columns: Annotated[tuple[LakeColumn, ...], Meta(max_length=MAX_COLUMNS)] = ()
    problem: Text = ""
    told: bool = False


class ColumnFigures(msgspec.Struct, frozen=True):
    """Values of one column of a stored table.

    Attributes:
        name: Of the column.
        nulls: Rows without a value.
        distinct: Values that differ.
        least: As text; empty: there is none.
        greatest: Likewise.
        labels: Of the bars: values, or the intervals in which they are.
        counts: Rows of each bar.
        others: Rows of values that have no bar.
    """

    name: Name
    nulls: Count = 0
    distinct: Count = 0
    least: Text = ""
    greatest: Text = ""
    labels: Annotated[tuple[Text, ...], Meta(max_length=MAX_BARS)] = ()
    counts: Annotated[tuple[Count, ...], Meta(max_length=MAX_BARS)] = ()
    others: Count = 0


class LakeAnswer(msgspec.Struct, frozen=True):
    """The answer to a request.

    Attributes:
        id: Of the request.
        where: Address of the warehouse.
        workers: Who does the work, for people.
        tables: Of the lake; those that are left out are counted in `more`.
        more: See `tables`.
        jobs: What runs and has run, the newest last.
        sample: Of a table.
        stored: Stored tables; of a request that names one, only this.
        figures: Of the columns of that one.
        looked: Of how many of its rows.
        code: Of an error; empty: there is none.
        message: What is wrong.
        hint: What to do about it.
    """

    id: Name
    where: Text = ""
    workers: Text = ""
    tables: Annotated[tuple[LakeTable, ...], Meta(max_length=MAX_TABLES)] = ()
    more: Count = 0
    jobs: Annotated[tuple[LakeJob, ...], Meta(max_length=MAX_JOBS)] = ()
    sample: LakeSample | None = None
    stored: Annotated[tuple[TableFigures, ...], Meta(max_length=MAX_TABLES)] = ()
    figures: Annotated[tuple[ColumnFigures, ...], Meta(max_length=MAX_COLUMNS)] = ()
    looked: Count = 0
    code: Name = ""
    message: Text = ""
    hint: Text = ""
