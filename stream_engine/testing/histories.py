"""Sources of every behaviour, and random rows, changes and events of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from streamsql.algebra.operators import (
    Scan,
    SourceKind,
)
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value

SECOND = 1_000_000

_DOMAINS: dict[DataType, tuple[Value, ...]] = {
    DataType.TEXT: ("a", "b", None),
    DataType.INTEGER: (0, 1, 2, None),
    DataType.DOUBLE: (0.1, 0.2, 1e16, -1e16, 2.5, None),
    DataType.BOOLEAN: (True, False, None),
}

COLUMNS = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER), ("x", DataType.DOUBLE))
"""The columns of every source here."""

SOURCES: tuple[Scan, ...] = (
    Scan("log", SourceKind.STREAM, COLUMNS),
    Scan("fading", SourceKind.STREAM, COLUMNS, ttl=3 * SECOND),
    Scan("keyed", SourceKind.STREAM, COLUMNS, key=(0,)),
    Scan("keyed_fading", SourceKind.STREAM, COLUMNS, key=(0, 1), ttl=4 * SECOND),
    Scan("stored", SourceKind.TABLE, COLUMNS),
)
"""One source of every behaviour."""


def values(dtype: DataType) -> st.SearchStrategy[Value]:
    """Return few values of a type, NULL among them."""
    return st.sampled_from(_DOMAINS.get(dtype, _DOMAINS[DataType.INTEGER]))


def rows(schema: Schema) -> st.SearchStrategy[Row]:
    """Return rows of a schema."""
    return st.tuples(*(values(dtype) for dtype in schema.dtypes))


def deltas(schema: Schema = COLUMNS, *, max_rows: int = 4) -> st.SearchStrategy[Delta]:
    """Return changes with weights -2 to 2, not all of which apply to a given relation."""
    weights = st.sampled_from((-2, -1, 1, 2))
    return st.dictionaries(rows(schema), weights, max_size=max_rows)


@st.composite
def schemas(draw: st.DrawFn, *, max_columns: int = 4) -> Schema:
    """Return columns of any types the domains have, with distinct names."""
    dtypes = draw(st.lists(st.sampled_from(tuple(_DOMAINS)), min_size=1, max_size=max_columns))
    return Schema.of(*((f"c{position}", dtype) for position, dtype in enumerate(dtypes)))


@st.composite
def delta_sequences(
    draw: st.DrawFn, schema: Schema = COLUMNS, *, max_steps: int = 5
) -> list[Delta]:
    """Return changes of a relation that never becomes negative."""
    relation: Delta = {}
    sequence = []
    for change in draw(st.lists(deltas(schema), max_size=max_steps)):
        legal: Delta = {}
        for row, weight in change.items():
            kept = max(weight, -relation.get(row, 0))
            if kept:
                legal[row] = kept
        accumulate(relation, legal)
        sequence.append(legal)
    return sequence


@dataclass(frozen=True)
class Moment:
    """What happens between two steps: the time moves, then events arrive in order."""

    now: int
    events: tuple[tuple[str, SourceEvent], ...]


@st.composite
def histories(
    draw: st.DrawFn, sources: Sequence[Scan] = SOURCES, *, max_moments: int = 4
) -> list[Moment]:
    """Return moments of increasing time with events that may be late, early or withdrawals.

    Streams without key are never withdrawn from: a log keeps no rows, and which of several copies
    of a fading row a withdrawal takes away depends on what has expired already.
    """
    now = 0
    moments = []
    for _ in range(draw(st.integers(1, max_moments))):
        now += draw(st.sampled_from((0, SECOND // 2, SECOND, 3 * SECOND)))
        events = draw(st.lists(_events(sources, now), min_size=1, max_size=8))
        moments.append(Moment(now, tuple(events)))
    return moments


@st.composite
def _events(draw: st.DrawFn, sources: Sequence[Scan], now: int) -> tuple[str, SourceEvent]:
    scan = draw(st.sampled_from(sources))
    row = draw(rows(scan.columns))
    offset = draw(st.sampled_from((-4, -2, -1, 0, 0, 1))) * (SECOND // 2)
    may_withdraw = bool(scan.key) or scan.kind != SourceKind.STREAM
    delete = may_withdraw and draw(st.integers(0, 4)) == 0
    return (scan.source, SourceEvent(row, now + offset, delete))
