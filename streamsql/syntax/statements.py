"""Statements as the parser hands them on: frozen, each with its text and place."""

from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.operators import SourceKind, StreamKind
from streamsql.data.types import DataType, Value
from streamsql.errors import Span
from streamsql.syntax.explain_options import ExplainFormat, ExplainType
from streamsql.syntax.script_places import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Anything that ends in a semicolon.

    Attributes:
        text: The statement as written, without the semicolon.
        span: Where it begins.
        script: The text that the places inside the statement refer to.
    """

    text: str
    span: Span
    script: Script = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written: lower-cased unless quoted."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class ValueMeaning:
    """One `'ON' = TRUE` of VALUES: what a device sends as text, and the column's value for it."""

    raw: str
    value: Value
    span: Span
    value_span: Span


@dataclass(frozen=True, slots=True)
class ColumnClause:
    """One clause behind a column's type, such as `FROM 'ENERGY.Total'` or `SCALE 0.1`.

    Attributes:
        word: In upper case; `streamsql.syntax.statement_parsers.column_clauses` lists them.
        value: A text, a number, or the pairs of VALUES.
        span: Where the word was written.
        value_span: Where the value was written.
    """

    word: str
    value: str | float | tuple[ValueMeaning, ...]
    span: Span
    value_span: Span


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column of CREATE SOURCE or CREATE TABLE."""

    name: Name
    dtype: DataType
    primary_key: bool = False
    clauses: tuple[ColumnClause, ...] = ()


@dataclass(frozen=True, slots=True)
class Watermark:
    """`WATERMARK FOR column AS column - INTERVAL '…'`; lateness in microseconds."""

    column: Name
    lateness: int


@dataclass(frozen=True, slots=True)
class Option:
    """One `name = 'value'` of a WITH clause.

    Attributes:
        span: Where the name was written.
        value_span: Where the value was written.
    """

    name: str
    value: str
    span: Span
    value_span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource(Statement):
    """CREATE SOURCE, CREATE LINK SOURCE or CREATE TABLE.

    Attributes:
        key: Columns of KEY (...) or PRIMARY KEY (...).
        replace: OR REPLACE: a source of that name gives way to it. `text` is without it.
    """

    name: Name
    kind: SourceKind
    columns: tuple[ColumnDefinition, ...]
    key: tuple[Name, ...] = ()
    watermark: Watermark | None = None
    options: tuple[Option, ...] = ()
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Statement):
    """A query, perhaps inside ISTREAM, DSTREAM or RSTREAM.

    Attributes:
        tree: sqlglot's tree in the StreamSQL dialect; offsets refer to `script`.
        emit: The operator around it; None: it is a relation.
        options: `WITH (name = 'value', …)` behind it: how its recursions are maintained.
        on_close: Where EMIT ON WINDOW CLOSE stands behind it, or None.
        display: The display of OUTPUT TO DISPLAY, or None.
    """

    tree: exp.Expr = field(compare=False)
    emit: StreamKind | None = None
    options: tuple[Option, ...] = ()
    on_close: Span | None = None
    display: Name | None = None


@dataclass(frozen=True, slots=True)
class RefreshTimes:
    """`REFRESH AT ('14:00', …) [COST WEIGHTS (1, …)]`.

    Attributes:
        times: Minutes after midnight, all different.
        weights: One per time, or none.
    """

    times: tuple[int, ...]
    weights: tuple[float, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView(Statement):
    """CREATE [RECURSIVE | MATERIALIZED] VIEW.

    Attributes:
        refresh: When it is refreshed; None: it is always up to date.
    """

    name: Name
    columns: tuple[Name, ...]
    recursive: bool
    materialized: bool
    query: Query
    refresh: RefreshTimes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh(Statement):
    """REFRESH MATERIALIZED VIEW name: not only at its times. REFRESH TABLE name: read it again."""

    name: Name
    is_table: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDisplay(Statement):
    """CREATE DISPLAY name WITH (floor = 1, x = 3.5, y = 8.0): a place that shows answers."""

    name: Name
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAlarm(Statement):
    """CREATE ALARM name AS query SEVERITY 'critical' [FOR '30 s'].

    Attributes:
        severity: As written.
        place: Where the severity was written.
        hold: How long a row must have been there, in microseconds.
    """

    name: Name
    query: Query
    severity: str
    place: Span
    hold: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSink(Statement):
    """CREATE SINK name FROM (view | query) WITH (connector = 'mqtt', …): the answer leaves."""

    name: Name
    query: Query
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """The expression of a function or aggregate, between the parentheses.

    Attributes:
        text: As written, to be shown.
    """

    tree: exp.Expr = field(compare=False)
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction(Statement):
    """CREATE FUNCTION | AGGREGATE f(x TYPE, …) RETURNS type [MERGED BY g] AS (…) | 'module:name'.

    Attributes:
        implementation: As written; empty where there is a body.
        place: Where the implementation or the body was written.
        on_null: CALLED ON NULL INPUT.
        merged_by: The function behind MERGED BY.
    """

    name: Name
    aggregate: bool
    parameters: tuple[ColumnDefinition, ...]
    result: DataType
    implementation: str
    place: Span
    on_null: bool = False
    merged_by: Name | None = None
    body: FunctionBody | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Statement):
    """DROP kind name: of a definition, or of a running query; kind in lower case."""

    kind: str
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Statement):
    """INSERT INTO s [(columns)] VALUES rows, or a query; each value is an expression tree."""

    source: Name
    columns: tuple[Name, ...]
    rows: tuple[tuple[exp.Expr, ...], ...] = field(default=(), compare=False)
    query: Query | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Statement):
    """DELETE FROM s [WHERE predicate]."""

    source: Name
    predicate: exp.Expr | None = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe(Statement):
    """SUBSCRIBE [TO] (view | (query)) [WITH (SNAPSHOT, PROGRESS)] [ENVELOPE UPSERT (KEY (cols))].

    Attributes:
        snapshot: Whether readers begin with the rows there are, not with the next change.
        progress: Whether they receive the time up to which the answer is complete.
        key: Columns by which changes come as upserts and deletes; empty for signed rows.
    """

    inner: Query
    snapshot: bool = True
    progress: bool = False
    key: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Statement):
    """EXPLAIN [ANALYZE | ALTERNATIVES] [(TYPE …, FORMAT …)] statement."""

    type: ExplainType
    format: ExplainFormat
    analyze: bool
    inner: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Show(Statement):
    """SHOW SOURCES | TABLES | VIEWS | … | SINKS | NETWORK; kind in lower case."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe(Statement):
    """DESCRIBE name."""

    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSite(Statement):
    """ALTER SITE site SET (name = value, …): settings of an engine site."""

    site: Name
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSource(Statement):
    """ALTER SOURCE name ADD [COLUMN] column TYPE … | DROP [COLUMN] column | SET (option = '…', …).

    One of the three is given.
    """

    name: Name
    added: ColumnDefinition | None = None
    dropped: Name | None = None
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceTime(Statement):
    """ADVANCE TIME TO '…' | BY '…': sets the clock of a local script.

    Attributes:
        to: Microseconds since 1970, or None.
        by: Microseconds to add, or None.
    """

    to: int | None = None
    by: int | None = None
