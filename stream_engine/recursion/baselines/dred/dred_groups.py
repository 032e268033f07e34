"""Groups of rows that are packed together: of one width, and of bounded size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from stream_engine.provenance.parts import MAX_BYTES, MAX_ROWS
from streamsql.data.types import Row
from streamsql.wire.channel_protocol import row_bytes

T = TypeVar("T")
_EXTRA_BYTES = 16


def bounded_groups(items: Iterable[T], row_of: Callable[[T], Row]) -> Iterator[list[T]]:
    """Yield items in their order, as many together as one packed group may hold."""
    group: list[T] = []
    size = width = 0
    for item in items:
        row = row_of(item)
        added = row_bytes(row) + _EXTRA_BYTES
        is_full = len(group) == MAX_ROWS or size + added > MAX_BYTES
        if group and (is_full or len(row) != width):
            yield group
            group, size = [], 0
        group.append(item)
        size += added
        width = len(row)
    if group:
        yield group
