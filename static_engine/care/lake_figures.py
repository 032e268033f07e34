"""Figures of the tables of the lake: rows, bytes, files, and from when to when."""

from dataclasses import dataclass

import msgspec
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.table import Table
from pyiceberg.types import PrimitiveType, TimestamptzType
from sqlalchemy.exc import SQLAlchemyError

from static_engine.care.compaction import groups_of
from static_engine.care.rollups import ROLLUPS
from static_engine.care.sums import FROM
from static_engine.lake.kept_readings import EVENT_TIME, READINGS
from static_engine.lake.lake import NAMESPACES, Lake
from static_engine.lake.lake_errors import DAMAGE
from streamsql.errors import FederationError
from streamsql.wire.stored_tables.lake_messages import (
    MAX_COLUMNS,
    MAX_TABLES,
    LakeColumn,
    LakeTable,
)

SHOWN = (*NAMESPACES, ROLLUPS)


@dataclass(frozen=True, slots=True)
class _Seen:
    metadata: str
    figures: LakeTable


class LakeFigures:
    """Figures of all tables; those of a table that has not changed are not computed again."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._seen: dict[tuple[str, str], _Seen] = {}

    def tables(self) -> tuple[tuple[LakeTable, ...], int]:
        """Return the tables, by namespace and name, and how many there are beyond them."""
        found = [(space, name) for space in SHOWN for name in self._names(space)]
        shown = found[:MAX_TABLES]
        self._seen = {each: seen for each, seen in self._seen.items() if each in shown}
        return tuple(self._of(*each) for each in shown), len(found) - len(shown)

    def _names(self, namespace: str) -> list[str]:
        try:
            return self._lake.names(namespace)
        except NoSuchNamespaceError:
            return []

    def _of(self, namespace: str, name: str) -> LakeTable:
        try:
            table = self._lake.table(name, namespace)
            seen = self._seen.get((namespace, name))
            if seen is None or seen.metadata != table.metadata_location:
                seen = _Seen(table.metadata_location, _figures(self._lake, table, namespace, name))
                self._seen[namespace, name] = seen
        except (FederationError, OSError, SQLAlchemyError, *DAMAGE) as error:
            return LakeTable(namespace, name, problem=str(error).replace("\n", "; "))
        else:
            return seen.figures


def _figures(lake: Lake, table: Table, namespace: str, name: str) -> LakeTable:
    tasks = list(table.scan().plan_files())
    first = last = None
    time = time_column(table)
    if time:
        field = table.schema().find_field(time)
        lows = [(task.file.lower_bounds or {}).get(field.field_id) for task in tasks]
        highs = [(task.file.upper_bounds or {}).get(field.field_id) for task in tasks]
        first = min((_micros(low) for low in lows if low is not None), default=None)
        last = max((_micros(high) for high in highs if high is not None), default=None)
    snapshot = table.current_snapshot()
    words = {}
    if namespace == READINGS:
        words = {each.column: each.words for each in lake.columns_of(table).columns}
    columns = tuple(
        LakeColumn(field.name, _type(field.field_type), words.get(field.name, field.doc or ""))
        for field in table.schema().fields[:MAX_COLUMNS]
    )
    return LakeTable(
        namespace,
        name,
        rows=sum(task.file.record_count for task in tasks),
        bytes=sum(task.file.file_size_in_bytes for task in tasks),
        files=len(tasks),
        small_files=sum(len(group.files) for group in groups_of(table, 2)),
        snapshots=len(table.metadata.snapshots),
        first=first,
        last=last,
        committed=None if snapshot is None else snapshot.timestamp_ms * 1_000,
        columns=columns,
    )


def time_column(table: Table) -> str:
    """Return the column that says when a row was; empty: there is none."""
    names = [field.name for field in table.schema().fields]
    for name in (EVENT_TIME, FROM):
        if name in names:
            return name
    for part in table.spec().fields:
        field = table.schema().find_field(part.source_id)
        if isinstance(field.field_type, TimestamptzType):
            return field.name
    return ""


def with_policy(table: LakeTable, keep: str, rollups: tuple[str, ...]) -> LakeTable:
    """Return a table's figures with what its source says of its readings."""
    return msgspec.structs.replace(table, keep=keep, rollups=rollups)


def _micros(bound: bytes) -> int:
    return int(from_bytes(TimestamptzType(), bound))


def _type(kind: object) -> str:
    return str(kind) if isinstance(kind, PrimitiveType) else type(kind).__name__
