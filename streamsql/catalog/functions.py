"""Functions and aggregates of the user, by name."""

import msgspec

from streamsql.data.schema import Schema
from streamsql.data.types import DataType


class FunctionDefinition(msgspec.Struct, frozen=True):
    """A definition by CREATE FUNCTION or CREATE AGGREGATE; the code is installed at each site.

    Attributes:
        aggregate: Whether it is an aggregate.
        parameters: Names and types of its arguments.
        result: Type of its result.
        implementation: `package.module:name` of a Python function, or of a class of an aggregate.
        on_null: Whether it is called with NULLs; else a NULL argument gives NULL, and aggregates
            skip the row.
        text: The CREATE statement.
    """

    name: str
    aggregate: bool
    parameters: Schema
    result: DataType
    implementation: str
    on_null: bool = False
    text: str = ""

    @property
    def usage(self) -> str:
        """How it is called, for hints and listings.

        Examples:
            >>> one = Schema.of(("x", DataType.DOUBLE))
            >>> FunctionDefinition("f", False, one, DataType.TEXT, "m:f").usage
            'f(x DOUBLE) RETURNS TEXT'
        """
        return f"{self.name}{self.parameters} RETURNS {self.result}"
