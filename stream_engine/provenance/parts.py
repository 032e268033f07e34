"""Annotated rows, cut into messages of bounded size."""

from collections.abc import Iterator

from streamsql.wire.batch_parts import row_bytes
from streamsql.wire.messages import AnnotatedRow

MAX_ROWS = 5_000
MAX_BYTES = 1_000_000
"""The most in one message; a single row that is larger travels alone."""


def parts_of(rows: list[AnnotatedRow]) -> Iterator[tuple[AnnotatedRow, ...]]:
    """Yield the rows in parts that fit a message, in their order."""
    part: list[AnnotatedRow] = []
    size = 0
    for row in rows:
        added = len(row.annotation) + row_bytes(row.row)
        if part and (len(part) == MAX_ROWS or size + added > MAX_BYTES):
            yield tuple(part)
            part, size = [], 0
        part.append(row)
        size += added
    if part:
        yield tuple(part)
