"""Source events: what happens to a source, before windows and keys make a relation of it."""

import msgspec

from streamsql.data.types import Value


class SourceEvent(msgspec.Struct, frozen=True, array_like=True):
    """A row arrives at, or is withdrawn from, a source.

    For a keyed source an arrival replaces the row of the same key unless that one has a later event
    time (the later arrival wins a tie); a withdrawal removes the key's row whatever its other
    columns say. For a bag a withdrawal removes one copy of exactly that row: the one of its
    event time if there is one, else the oldest.

    Attributes:
        row: The row in the source's schema.
        ts: Event time in microseconds since 1970 UTC; equal to the time column if there is one.
        delete: True for a withdrawal.
    """

    row: tuple[Value, ...]
    ts: int
    delete: bool = False
