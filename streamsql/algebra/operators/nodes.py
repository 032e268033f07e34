"""What operators of one and of two inputs have in common."""

import msgspec

from streamsql.algebra.expressions import Expression, columns_of
from streamsql.algebra.leaves import require
from streamsql.algebra.operators import plan
from streamsql.data.schema import Schema


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
