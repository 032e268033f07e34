"""Relational operators: plans that cannot be built ill-formed.

Every node is frozen, compares by structure, knows its schema, and travels between services as it is
(the codec is msgspec's). Leaves are in `leaves.py`; what an engine has to know to run a node stands
in its docstring, and `streamsql.reference` computes it in the plainest way.
"""

import enum
from collections.abc import Callable, Iterator
from typing import Union

import msgspec

from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.choices import AggregateSelection, Best, RecursionChoice
from streamsql.algebra.expressions import Column, Expression, columns_of
from streamsql.algebra.leaves import (
    EVENT_COLUMNS,
    PROGRESS_COLUMNS,
    RecursiveReference,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
    Values,
    Window,
    WindowKind,
    require,
)
from streamsql.algebra.over_windows import Frame, WindowCall, WindowFunction
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType

__all__ = [
    "Aggregate",
    "AggregateCall",
    "AggregateFunction",
    "AggregateSelection",
    "AsOfJoin",
    "Best",
    "Distinct",
    "Filter",
    "Fixpoint",
    "Frame",
    "HopWindow",
    "Join",
    "JoinKind",
    "OnClose",
    "OverWindow",
    "Plan",
    "Project",
    "RecursionChoice",
    "RecursiveReference",
    "RemoteSource",
    "Scan",
    "ScanPart",
    "SessionWindow",
    "SetKind",
    "SetOperation",
    "SortKey",
    "SourceKind",
    "StreamKind",
    "StreamWindow",
    "ToStream",
    "TopN",
    "UnionAll",
    "Values",
    "Window",
    "WindowCall",
    "WindowFunction",
    "WindowKind",
    "identity_columns",
    "is_open",
    "refers_to",
    "transform_up",
    "walk_plan",
    "walk_relation",
    "with_inputs",
]

WINDOW_COLUMNS = ("window_start", "window_end")


class JoinKind(enum.StrEnum):
    """Which rows a join gives.

    INNER, LEFT and FULL give pairs of rows; LEFT and FULL also the rows without partner of the left
    side or of both, padded with NULLs. SEMI gives the left rows that have a partner, ANTI those
    that have none, each as often as it is there. A RIGHT join is a LEFT join with exchanged sides.
    """

    INNER = "INNER"
    LEFT = "LEFT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"

    @property
    def is_filter(self) -> bool:
        """Whether it gives left rows only: SEMI and ANTI."""
        return self in (JoinKind.SEMI, JoinKind.ANTI)


class SetKind(enum.StrEnum):
    """Set operators beside UNION."""

    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


class StreamKind(enum.StrEnum):
    """CQL's operators from relations to streams."""

    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"


class SortKey(msgspec.Struct, frozen=True):
    """One key of an ORDER BY.

    NULL is greater than every value, as in PostgreSQL, unless `nulls_first` says where it goes.

    Attributes:
        position: Of the column.
        descending: Greatest first.
        nulls_first: Where NULLs go, whatever the direction.
    """

    position: int
    descending: bool = False
    nulls_first: bool = False


class _Unary(msgspec.Struct, frozen=True):
    """An operator over one input, with the input's columns unless it says otherwise."""

    input: "Plan"

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.input.schema

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The input."""
        return (self.input,)


class _Binary(msgspec.Struct, frozen=True):
    """An operator over two inputs."""

    left: "Plan"
    right: "Plan"

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Left and right."""
        return (self.left, self.right)


class Filter(_Unary, frozen=True, tag="filter"):
    """The rows for which a predicate is TRUE."""

    predicate: Expression

    def __post_init__(self) -> None:
        """Refuse a predicate that reads beyond the input."""
        _check_columns((self.predicate,), len(self.input.schema), "filter")
        require(self.predicate.dtype in (DataType.BOOLEAN, DataType.NULL), "filter type")


class Project(_Unary, frozen=True, tag="project"):
    """One expression per output column; duplicates are kept."""

    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse expressions that read beyond the input."""
        require(len(self.expressions) == len(self.names), "project names")
        _check_columns(self.expressions, len(self.input.schema), "project")

    @property
    def schema(self) -> Schema:
        """Names with the expressions' types."""
        pairs = zip(self.names, self.expressions, strict=True)
        return Schema(tuple(Field(name, e.dtype) for name, e in pairs))


class Join(_Binary, frozen=True, tag="join"):
    """Pairs of rows that agree on the keys and satisfy the residual predicate; see `JoinKind`.

    NULL keys never match.

    Attributes:
        keys: Pairs (left position, right position); empty for a theta join or product.
        residual: Read over the concatenated row, whatever the kind gives.
    """

    kind: JoinKind
    keys: tuple[tuple[int, int], ...] = ()
    residual: Expression | None = None

    def __post_init__(self) -> None:
        """Refuse keys and predicates that read beyond their side."""
        left, right = len(self.left.schema), len(self.right.schema)
        for left_key, right_key in self.keys:
            require(0 <= left_key < left and 0 <= right_key < right, "join key out of range")
        if self.residual is not None:
            _check_columns((self.residual,), left + right, "join")

    @property
    def schema(self) -> Schema:
        """Left columns, then right columns; SEMI and ANTI: left columns."""
        left = self.left.schema
        return left if self.kind.is_filter else left + self.right.schema


class AsOfJoin(_Binary, frozen=True, tag="as_of_join"):
    """Each left row with the one right row that was current at its time.

    That is the right row of the same keys with the greatest time not after the left row's (before
    it, if strict); of several with that time the greatest row in row order. INNER drops left rows
    without one, LEFT pads them. NULL keys and NULL times never match.

    Attributes:
        kind: INNER or LEFT.
        left_time: Position of the left row's time, of any ordered type.
        right_time: Position of the right row's time, of the same type.
        strict: Whether the right row must be older.
        keys: Pairs (left position, right position).
    """

    kind: JoinKind
    left_time: int
    right_time: int
    strict: bool = False
    keys: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Refuse other kinds, and positions beyond a side."""
        require(self.kind in (JoinKind.INNER, JoinKind.LEFT), "as-of join kind")
        left, right = len(self.left.schema), len(self.right.schema)
        for left_key, right_key in (*self.keys, (self.left_time, self.right_time)):
            require(0 <= left_key < left and 0 <= right_key < right, "join key out of range")

    @property
    def schema(self) -> Schema:
        """Left columns, then right columns."""
        return self.left.schema + self.right.schema


class Aggregate(_Unary, frozen=True, tag="aggregate"):
    """Groups and their aggregates; without group columns always exactly one row.

    The output is the group columns, then one column per aggregate.
    """

    group: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        """Refuse columns beyond the input."""
        width = len(self.input.schema)
        require(all(0 <= g < width for g in self.group), "group column out of range")
        for call in self.aggregates:
            _check_columns(call.arguments, width, "aggregate")

    @property
    def schema(self) -> Schema:
        """Group columns, then aggregates."""
        calls = tuple(Field(call.name, call.dtype) for call in self.aggregates)
        return Schema(self.input.schema.select(self.group).fields + calls)


class Distinct(_Unary, frozen=True, tag="distinct"):
    """Each row once."""


class TopN(_Unary, frozen=True, tag="top_n"):
    """The first rows by an order: in all, or of every partition.

    Rows that the keys do not tell apart are ordered as whole rows (`streamsql.data.delta.sort_key`,
    ascending), so the answer never depends on arrival. A row that is there twice counts twice.

    Attributes:
        order: At least one key, or none: then whole rows decide.
        limit: Most rows; None for all that follow the offset.
        offset: Rows to skip.
        partition: Positions of the columns that tell the partitions apart.
    """

    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    partition: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse negative numbers and columns beyond the input."""
        width = len(self.input.schema)
        positions = (*(key.position for key in self.order), *self.partition)
        require(all(0 <= p < width for p in positions), "order column out of range")
        require((self.limit is None or self.limit >= 0) and self.offset >= 0, "limit")


class OverWindow(_Unary, frozen=True, tag="over_window"):
    """Each row with the values of window functions as more columns.

    Rows of a partition stand in the order of the keys; those the keys do not tell apart (peers)
    stand in the order of whole rows (`streamsql.data.delta.sort_key`, ascending), so no value
    depends on arrival. A row that is there twice stands there twice and may get two values. RANK,
    DENSE_RANK and RANGE frames look at the keys only.

    Attributes:
        partition: Positions of the columns that tell the partitions apart; NULLs are equal.
        order: Keys; without any all rows of a partition are peers.
        calls: At least one; each gives a column.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]

    def __post_init__(self) -> None:
        """Refuse columns beyond the input and calls that make no sense."""
        width = len(self.input.schema)
        positions = (*(key.position for key in self.order), *self.partition)
        require(all(0 <= p < width for p in positions), "over window column out of range")
        require(bool(self.calls), "over window without calls")
        for call in self.calls:
            require(call.is_sound, f"window call {call.name}")
            _check_columns(call.arguments, width, "window call")

    @property
    def schema(self) -> Schema:
        """The input's columns, then one per call."""
        return self.input.schema + Schema(tuple(Field(c.name, c.dtype) for c in self.calls))


class HopWindow(_Unary, frozen=True, tag="hop_window"):
    """Each row once per window that holds its time, with the window's bounds as two more columns.

    Windows are [start, start + size), where start is a multiple of `hop` since 1970 plus `offset`.
    TUMBLE has hop = size. A row whose time is NULL is in no window.

    Attributes:
        time: Position of a TIMESTAMP column.
        size: Of a window in microseconds.
        hop: From one window to the next, in microseconds.
        offset: Of the first window, in microseconds.
    """

    time: int
    size: int
    hop: int
    offset: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that make no sense."""
        require(0 <= self.time < len(self.input.schema), "window time out of range")
        require(self.size > 0 and self.hop > 0, "window size")

    @property
    def schema(self) -> Schema:
        """The input's columns, then `window_start` and `window_end`."""
        return self.input.schema + _WINDOW_BOUNDS


class SessionWindow(_Unary, frozen=True, tag="session_window"):
    """Each row with the bounds of its session as two more columns.

    A session of a partition is a longest sequence of rows whose neighbours in time are less than
    `gap` apart; it lasts from its first time to its last plus the gap. Rows that arrive, leave or
    expire merge and split sessions. A row whose time is NULL is in no session.

    Attributes:
        time: Position of a TIMESTAMP column.
        gap: In microseconds.
        partition: Positions of the columns that tell the partitions apart; NULLs are equal.
    """

    time: int
    gap: int
    partition: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse sizes that make no sense."""
        width = len(self.input.schema)
        require(all(0 <= p < width for p in (self.time, *self.partition)), "session columns")
        require(self.gap > 0, "session gap")

    @property
    def schema(self) -> Schema:
        """The input's columns, then `window_start` and `window_end`."""
        return self.input.schema + _WINDOW_BOUNDS


class OnClose(_Binary, frozen=True, tag="on_close"):
    """The groups whose window has closed: EMIT ON WINDOW CLOSE.

    A window has closed when the watermark, the least of the right side's, has reached its end. From
    then on nothing that arrives can change it, so its row is given once and never taken back, and
    nothing has to be remembered of it. While the right side is empty nothing closes.

    Attributes:
        left: Groups, one of whose columns is the end of a window.
        right: (site, watermark) of every site with readings: scans of `ScanPart.PROGRESS`.
        end: Position of the window's end in the left side.
    """

    end: int

    def __post_init__(self) -> None:
        """Refuse anything but groups by a window's end."""
        require(isinstance(self.left, Aggregate), "windows close over an aggregate")
        grouped = len(self.left.group) if isinstance(self.left, Aggregate) else 0
        require(0 <= self.end < grouped, "a window's end must be a group column")
        require(self.right.schema.dtypes == PROGRESS_COLUMNS.dtypes, "progress columns")

    @property
    def schema(self) -> Schema:
        """The left side's columns."""
        return self.left.schema


class ToStream(msgspec.Struct, frozen=True, tag="to_stream"):
    """What happens to a relation, instant by instant, as a stream that is only added to.

    Let R(t) be the relation of `query` at time t over the events that count by then. At each
    instant t that is final ISTREAM gives R(t) - R(before t), DSTREAM R(before t) - R(t), as bags,
    and RSTREAM, if these differ, all of R(t); every row with t behind it. Instants before the least
    watermark of all sources are final: nothing that arrives can change them. Until each source has
    a watermark none is.

    `query` is no input: it is evaluated once per instant. Stored tables in it count as they are
    when an instant is worked on, and make no instants.

    Attributes:
        kind: Which of the three.
        query: Closed; its sources are `scans`.
        scans: The distinct scans in the query, of streams and tables.
        feeds: Per scan its EVENTS; of a table its rows.
        progress: Per stream (site, watermark) of every site that reads it.
        name: Of the column with the instant.
    """

    kind: StreamKind
    query: "Plan"
    scans: tuple[Scan, ...]
    feeds: tuple["Plan", ...]
    progress: tuple["Plan", ...]
    name: str = "ts"

    def __post_init__(self) -> None:
        """Refuse feeds that do not fit the scans."""
        require(len(self.scans) == len(self.feeds), "one feed per scan")
        for scan, feed in zip(self.scans, self.feeds, strict=True):
            before = 0 if scan.kind == SourceKind.TABLE else len(EVENT_COLUMNS)
            require(feed.schema.dtypes[before:] == scan.schema.dtypes, "feed columns")
        for part in self.progress:
            require(part.schema.dtypes == PROGRESS_COLUMNS.dtypes, "progress columns")

    @property
    def schema(self) -> Schema:
        """The query's columns and the instant."""
        return self.query.schema + Schema((Field(self.name, DataType.TIMESTAMP),))

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Feeds, then progress."""
        return self.feeds + self.progress


class StreamWindow(_Unary, frozen=True, tag="stream_window"):
    """A CQL window over a stream that a query gives; means what `Window` means over a scan.

    Attributes:
        input: A stream: rows are only added to it.
        time: Position of the event time.
        kind: RANGE, ROWS or NOW.
    """

    time: int
    kind: WindowKind
    size: int | None = None
    slide: int | None = None
    partition: tuple[int, ...] = ()
    range: int | None = None

    def __post_init__(self) -> None:
        """Refuse sizes that make no sense."""
        width = len(self.input.schema)
        require(all(0 <= p < width for p in (self.time, *self.partition)), "window columns")
        require(self.range is None or (self.range > 0 and self.kind == WindowKind.ROWS), "range")
        sized = self.kind in (WindowKind.RANGE, WindowKind.ROWS)
        require(sized == (self.size is not None and self.size > 0), "window size")
        require(self.slide is None or self.slide > 0, "window slide")


class SetOperation(_Binary, frozen=True, tag="set_operation"):
    """INTERSECT and EXCEPT of inputs of equal types; NULLs are equal.

    With `all` a row is there min(l, r) times, or max(l - r, 0) times; else at most once: when both
    sides have it, or when only the left side has it.
    """

    kind: SetKind
    all: bool = False

    def __post_init__(self) -> None:
        """Refuse sides of different types."""
        require(self.left.schema.dtypes == self.right.schema.dtypes, "set operation types differ")

    @property
    def schema(self) -> Schema:
        """The left side's columns."""
        return self.left.schema


class UnionAll(msgspec.Struct, frozen=True, tag="union_all"):
    """The bag sum of inputs of equal types; UNION is Distinct over it."""

    branches: tuple["Plan", ...]

    def __post_init__(self) -> None:
        """Refuse branches of different types."""
        require(bool(self.branches), "union without branches")
        first = self.branches[0].schema.dtypes
        require(all(b.schema.dtypes == first for b in self.branches), "union types differ")

    @property
    def schema(self) -> Schema:
        """The first branch's columns."""
        return self.branches[0].schema

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The branches."""
        return self.branches


class Fixpoint(msgspec.Struct, frozen=True, tag="fixpoint"):
    """The least relation containing the base branches and closed under the step branches.

    Set semantics. Each step branch reads `RecursiveReference(name)` at least once; more than once
    makes the recursion non-linear. Mutually recursive relations are one relation whose first
    column tells them apart.

    Attributes:
        limit: Most rows the relation may have before the query is stopped with an error.
        selection: With it, the relation is only its best rows per group, ties kept.
        choice: How it is to be maintained.
    """

    name: str
    columns: Schema
    base: tuple["Plan", ...]
    step: tuple["Plan", ...]
    limit: int = 1_000_000
    selection: AggregateSelection | None = None
    choice: RecursionChoice = RecursionChoice()

    def __post_init__(self) -> None:
        """Refuse branches of other types."""
        types = self.columns.dtypes
        require(bool(self.base), "recursion without base branch")
        for branch in self.base + self.step:
            require(branch.schema.dtypes == types, "recursive branch types differ")

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.columns

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Base branches, then step branches."""
        return self.base + self.step


Plan = Union[  # noqa: UP007  (msgspec resolves the forward references)
    Scan,
    RemoteSource,
    RecursiveReference,
    Values,
    Window,
    Filter,
    Project,
    Join,
    AsOfJoin,
    Aggregate,
    Distinct,
    TopN,
    OverWindow,
    HopWindow,
    SessionWindow,
    OnClose,
    ToStream,
    StreamWindow,
    SetOperation,
    UnionAll,
    Fixpoint,
]

_WINDOW_BOUNDS = Schema(tuple(Field(name, DataType.TIMESTAMP) for name in WINDOW_COLUMNS))


def _check_columns(expressions: tuple[Expression, ...], width: int, where: str) -> None:
    for expression in expressions:
        for position in columns_of(expression):
            require(0 <= position < width, f"{where} reads column {position} of {width}")


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """Return the same operator over other inputs.

    Raises:
        InternalError: The number or the kind of inputs is wrong.
    """
    require(len(inputs) == len(plan.inputs), "wrong number of inputs")
    match plan:
        case Scan() | RemoteSource() | RecursiveReference() | Values():
            return plan
        case Window():
            (only,) = inputs
            require(isinstance(only, Scan), "a window stands on a scan")
            return msgspec.structs.replace(plan, input=only)
        case Join() | AsOfJoin() | SetOperation() | OnClose():
            return msgspec.structs.replace(plan, left=inputs[0], right=inputs[1])
        case UnionAll():
            return UnionAll(inputs)
        case ToStream(feeds=feeds):
            count = len(feeds)
            return msgspec.structs.replace(plan, feeds=inputs[:count], progress=inputs[count:])
        case Fixpoint(base=base):
            return msgspec.structs.replace(plan, base=inputs[: len(base)], step=inputs[len(base) :])
        case _:
            return msgspec.structs.replace(plan, input=inputs[0])


def transform_up(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Rebuild a plan bottom-up through a function."""
    inputs = tuple(transform_up(child, change) for child in plan.inputs)
    return change(plan if inputs == plan.inputs else with_inputs(plan, inputs))


def walk_plan(plan: Plan) -> Iterator[Plan]:
    """Yield every node, parents first."""
    yield plan
    for child in plan.inputs:
        yield from walk_plan(child)


def walk_relation(plan: Plan) -> Iterator[Plan]:
    """Yield every node that is evaluated, parents first: of a stream its query, not its inputs."""
    yield plan
    for child in (plan.query,) if isinstance(plan, ToStream) else plan.inputs:
        yield from walk_relation(child)


def refers_to(plan: Plan, name: str) -> bool:
    """Whether a plan reads the recursive relation of that name."""
    return any(isinstance(n, RecursiveReference) and n.name == name for n in walk_plan(plan))


def is_open(plan: Plan) -> bool:
    """Whether a plan reads a recursive relation that it does not define itself.

    A plan with a whole recursion inside is closed.
    """
    return bool(_open_names(plan))


def _open_names(plan: Plan) -> frozenset[str]:
    if isinstance(plan, RecursiveReference):
        return frozenset((plan.name,))
    names = frozenset[str]().union(*map(_open_names, plan.inputs))
    return names - {plan.name} if isinstance(plan, Fixpoint) else names


def identity_columns(schema: Schema) -> tuple[Expression, ...]:
    """Return one column expression per column of a schema."""
    return tuple(Column(i, f.name, f.dtype) for i, f in enumerate(schema.fields))
