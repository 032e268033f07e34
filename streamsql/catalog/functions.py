"""Functions and aggregates of the user, by name: expressions, or code that is installed."""

import msgspec

from streamsql.algebra.aggregates import AggregateFunction
from streamsql.algebra.user_functions import INSTALLED
from streamsql.data.schema import Schema
from streamsql.data.types import DataType


class FunctionDefinition(msgspec.Struct, frozen=True):
    """A definition by CREATE FUNCTION or CREATE AGGREGATE; code is installed at each site.

    Attributes:
        aggregate: Whether it is an aggregate.
        parameters: Names and types of its arguments.
        result: Type of its result.
        implementation: `package.module:name` of a Python function, or of a class of an aggregate;
            empty where there is a body.
        on_null: Whether it is called with NULLs; else a NULL argument gives NULL, and aggregates
            skip the row.
        merged_by: Of an aggregate: the function that makes the result of all rows from those of
            their parts, USER for itself; None: nothing is known.
        text: The CREATE statement.
        body: The expression behind AS, to be shown; `text` is what is bound.
    """

    name: str
    aggregate: bool
    parameters: Schema
    result: DataType
    implementation: str
    on_null: bool = False
    text: str = ""
    merged_by: AggregateFunction | None = None
    body: str = ""

    @property
    def code(self) -> str:
        """The expression or the implementation, as it stands behind AS.

        Examples:
            >>> one = Schema.of(("x", DataType.DOUBLE))
            >>> FunctionDefinition("f", False, one, DataType.DOUBLE, "", body="x * 2").code
            '(x * 2)'
        """
        return f"({self.body})" if self.body else self.implementation

    @property
    def usage(self) -> str:
        """How it is called, for hints and listings.

        Examples:
            >>> one = Schema.of(("x", DataType.DOUBLE))
            >>> FunctionDefinition("f", False, one, DataType.TEXT, "m:f").usage
            'f(x DOUBLE) RETURNS TEXT'
        """
        merged = f" MERGED BY {self.merge_name}" if self.merge_name else ""
        return f"{self.name}{self.parameters} RETURNS {self.result}{merged}"

    @property
    def merge_name(self) -> str:
        """The function behind MERGED BY as it is written, or an empty string.

        Examples:
            >>> one = Schema.of(("x", DataType.DOUBLE))
            >>> itself = AggregateFunction.USER
            >>> FunctionDefinition(
            ...     "f", True, one, DataType.DOUBLE, "m:F", merged_by=itself
            ... ).merge_name
            'f'
        """
        if self.merged_by is None:
            return ""
        return self.name if self.merged_by == AggregateFunction.USER else str(self.merged_by)

    def check_installed(self) -> None:
        """Check that the implementation is installed in this process, and as it was declared.

        An expression needs nothing.

        Raises:
            DeploymentError: It is not.
        """
        if self.body:
            return
        INSTALLED.check(
            self.implementation,
            aggregate=self.aggregate,
            merged=None if self.merged_by is None else self.result,
        )
