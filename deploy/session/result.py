"""What a statement of a local session gives."""

from dataclasses import dataclass

from streamsql.data.schema import Schema
from streamsql.data.types import Row


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave: rows under a schema, or a message, or text to print as it is."""

    message: str = ""
    schema: Schema | None = None
    rows: tuple[Row, ...] = ()
    text: str = ""
    warnings: tuple[str, ...] = ()
