"""Operators of relational algebra: rows one at a time, groups, sets and bags."""

import enum

import msgspec

from streamsql.algebra.aggregates import AggregateCall
from streamsql.algebra.expressions import Column, Expression, columns_of
from streamsql.algebra.leaves import PROGRESS_COLUMNS, require
from streamsql.algebra.operators import plan
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType


class Unary(msgspec.Struct, frozen=True):
    """An operator over one input, with the input's columns unless it says otherwise."""

    input: "plan.Plan"

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.input.schema

    @property
    def inputs(self) -> tuple["plan.Plan", ...]:
        """The input."""
        return (self.input,)


class Binary(msgspec.Struct, frozen=True):
    """An operator over two inputs."""

    left: "plan.Plan"
    right: "plan.Plan"

    @property
    def inputs(self) -> tuple["plan.Plan", ...]:
        """Left and right."""
        return (self.left, self.right)


def check_columns(expressions: tuple[Expression, ...], width: int, where: str) -> None:
    """Refuse expressions that read beyond an input.

    Args:
        expressions: Read over the rows of the input.
        width: Columns of the input.
        where: What reads them, for the message.

    Raises:
        InternalError: One reads a column that is not there.
    """
    for expression in expressions:
        for position in columns_of(expression):
            require(0 <= position < width, f"{where} reads column {position} of {width}")


class Filter(Unary, frozen=True, tag="filter"):
    """The rows for which a predicate is TRUE."""

    predicate: Expression

    def __post_init__(self) -> None:
        check_columns((self.predicate,), len(self.input.schema), "filter")
        require(self.predicate.dtype in (DataType.BOOLEAN, DataType.NULL), "filter type")


class Project(Unary, frozen=True, tag="project"):
    """One expression per output column; duplicates are kept."""

    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        require(len(self.expressions) == len(self.names), "project names")
        check_columns(self.expressions, len(self.input.schema), "project")

    @property
    def schema(self) -> Schema:
        """Names with the expressions' types."""
        pairs = zip(self.names, self.expressions, strict=True)
        return Schema(tuple(Field(name, e.dtype) for name, e in pairs))


class Materialize(Unary, frozen=True, tag="materialize"):
    """The rows as they are: a table of WITH that is computed once, however often it is read.

    A barrier: nothing above changes what is below, so that all readings of a table stay equal.

    Attributes:
        name: Of the table; within a query it stands for one input.
    """

    name: str


def identity_columns(schema: Schema) -> tuple[Expression, ...]:
    """Return one column expression per column of a schema."""
    return tuple(Column(i, f.name, f.dtype) for i, f in enumerate(schema.fields))


class Aggregate(Unary, frozen=True, tag="aggregate"):
    """Groups and their aggregates; without group columns always exactly one row.

    The output is the group columns, then one column per aggregate.
    """

    group: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        width = len(self.input.schema)
        require(all(0 <= g < width for g in self.group), "group column out of range")
        for call in self.aggregates:
            check_columns(call.arguments, width, "aggregate")

    @property
    def schema(self) -> Schema:
        """Group columns, then aggregates."""
        calls = tuple(Field(call.name, call.dtype) for call in self.aggregates)
        return Schema(self.input.schema.select(self.group).fields + calls)


class OnClose(Binary, frozen=True, tag="on_close"):
    """The groups whose window has closed: EMIT ON WINDOW CLOSE.

    A window has closed when the watermark, the least of the right side's, has reached its end;
    where all sites are idle, the greatest. From then on nothing that arrives can change it, so its
    row is given once and never taken back, and nothing has to be remembered of it. While the right
    side is empty nothing closes.

    Attributes:
        left: Groups, one of whose columns is the end of a window.
        right: (site, watermark) of every site with readings: scans of `ScanPart.PROGRESS`.
        end: Position of the window's end in the left side.
    """

    end: int

    def __post_init__(self) -> None:
        require(isinstance(self.left, Aggregate), "windows close over an aggregate")
        grouped = len(self.left.group) if isinstance(self.left, Aggregate) else 0
        require(0 <= self.end < grouped, "a window's end must be a group column")
        require(self.right.schema.dtypes == PROGRESS_COLUMNS.dtypes, "progress columns")

    @property
    def schema(self) -> Schema:
        """The left side's columns."""
        return self.left.schema


class SetKind(enum.StrEnum):
    """Set operators other than UNION."""

    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


class Distinct(Unary, frozen=True, tag="distinct"):
    """Each row once."""


class SetOperation(Binary, frozen=True, tag="set_operation"):
    """INTERSECT and EXCEPT of inputs of equal types; NULLs are equal.

    With `all` a row is there min(l, r) times, or max(l - r, 0) times; else at most once: when both
    sides have it, or when only the left side has it.
    """

    kind: SetKind
    all: bool = False

    def __post_init__(self) -> None:
        require(self.left.schema.dtypes == self.right.schema.dtypes, "set operation types differ")

    @property
    def schema(self) -> Schema:
        """The left side's columns."""
        return self.left.schema


class UnionAll(msgspec.Struct, frozen=True, tag="union_all"):
    """The bag sum of inputs of equal types; UNION is Distinct over it."""

    branches: tuple["plan.Plan", ...]

    def __post_init__(self) -> None:
        require(bool(self.branches), "union without branches")
        first = self.branches[0].schema.dtypes
        require(all(b.schema.dtypes == first for b in self.branches), "union types differ")

    @property
    def schema(self) -> Schema:
        """The first branch's columns."""
        return self.branches[0].schema

    @property
    def inputs(self) -> tuple["plan.Plan", ...]:
        """The branches."""
        return self.branches
