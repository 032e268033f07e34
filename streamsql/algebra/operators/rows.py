"""Operators that look at one row at a time: filter, project, and rows as they are."""

from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.leaves import require
from streamsql.algebra.operators.nodes import Unary, check_columns
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType


class Filter(Unary, frozen=True, tag="filter"):
    """The rows for which a predicate is TRUE."""

    predicate: Expression

    def __post_init__(self) -> None:
        """Refuse a predicate that reads beyond the input."""
        check_columns((self.predicate,), len(self.input.schema), "filter")
        require(self.predicate.dtype in (DataType.BOOLEAN, DataType.NULL), "filter type")


class Project(Unary, frozen=True, tag="project"):
    """One expression per output column; duplicates are kept."""

    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse expressions that read beyond the input."""
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
