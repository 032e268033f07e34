"""What a statement of a local session gives."""

from dataclasses import dataclass
from typing import Any

from streamsql.data.schema import Schema
from streamsql.data.types import Row


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave: rows under a schema, or a message, or text to print as it is.

    Attributes:
        data: The text as a value for JSON, where it has such a form.
    """

    message: str = ""
    schema: Schema | None = None
    rows: tuple[Row, ...] = ()
    text: str = ""
    data: Any = None
    warnings: tuple[str, ...] = ()
