"""The rows of a query by DuckDB, over the readings that hold at the end."""

import re
from collections.abc import Sequence

import duckdb
import pyarrow as pa

from benchmarks._optimizer.gate_worlds import SCHEMA
from benchmarks._optimizer.worlds import Readings, World
from streamsql.catalog.definitions import SourceDefinition, ViewDefinition
from streamsql.data.delta import Delta, from_rows
from streamsql.data.types import MICROSECONDS, DataType, Row, Value

_TYPES = {DataType.TEXT: "VARCHAR", DataType.TIMESTAMP: "BIGINT"}
_WINDOW = re.compile(r"(\w+) \[RANGE (\d+) (SECONDS|MINUTE)\]")
_VIEW = re.compile(r"CREATE (?:RECURSIVE )?VIEW (\w+).*?;", re.DOTALL)
_REACHABLE = """CREATE VIEW reachable AS
  WITH RECURSIVE r (src, dst) AS (
    SELECT src, dst FROM link UNION SELECT l.src, r.dst FROM link l JOIN r ON l.dst = r.src)
  SELECT src, dst FROM r;"""
_DISTANCE = "CREATE MACRO distance(a, b, c, d) AS sqrt((a - c) ** 2 + (b - d) ** 2);"


def by_duckdb(text: str, world: World, readings: Readings) -> Delta:
    """Return the rows of a query; a window is a table of the readings in it."""
    views = {
        match[1]: match[0]
        for match in _VIEW.finditer(SCHEMA.read_text(encoding="utf-8"))
        if isinstance(world.catalog.find(match[1]), ViewDefinition)
    }
    needed = _needed(text, views)
    with duckdb.connect() as duck:
        duck.execute(_DISTANCE)
        whole = " ".join((text, *needed, "link"))
        for source in world.catalog.sources:
            if re.search(rf"\b{source.name}\b", whole, re.IGNORECASE):
                _fill(duck, source, source.name, _held(source, readings, source.ttl))
        for table, rows in world.tables.items():
            if re.search(rf"\b{table}\b", whole, re.IGNORECASE):
                _fill(duck, world.source(table), table, rows)
        for match in {(m[1], m[2], m[3]) for m in _WINDOW.finditer(whole)}:
            name, count, unit = match
            span = int(count) * MICROSECONDS * (60 if unit == "MINUTE" else 1)
            source = world.source(name)
            _fill(duck, source, f"{name}_{count}", _held(source, readings, span))
        if "link" in (source.name.lower() for source in world.catalog.sources):
            duck.execute(_REACHABLE)
        for view in needed:
            duck.execute(_plain(view))
        return from_rows(duck.execute(_plain(text)).fetchall())


def same_rows(first: Delta, second: Delta) -> bool:
    """Return whether rows are equal; means of another engine may differ in the last digits."""
    return _rounded(first) == _rounded(second)


def _rounded(rows: Delta) -> Delta:
    found: Delta = {}
    for row, weight in rows.items():
        key = tuple(round(value, 9) if isinstance(value, float) else value for value in row)
        found[key] = found.get(key, 0) + weight
    return found


def _plain(text: str) -> str:
    return _WINDOW.sub(r"\1_\2", text)


def _needed(text: str, views: dict[str, str]) -> list[str]:
    """Return the definitions of the views that a text reads, in an order in which they can be."""
    found: list[str] = []
    for name, view in views.items():
        if re.search(rf"\b{name}\b", text, re.IGNORECASE):
            rest = {other: v for other, v in views.items() if other != name}
            found += [each for each in _needed(view, rest) if each not in found]
            found.append(view)
    return list(dict.fromkeys(found))


def _held(source: SourceDefinition, readings: Readings, span: int | None) -> list[Row]:
    """Return the readings of the last time: of a device its last one, of a log all of them."""
    end = readings[-1][0]
    held: dict[tuple[Value, ...], tuple[int, Row]] = {}
    for number, (time, _, read, event) in enumerate(readings):
        if read.lower() == source.name.lower():
            key = tuple(event.row[k] for k in source.key) or (number,)
            held.pop(key, None)
            if not event.delete:
                held[key] = time, event.row
    return [row for time, row in held.values() if span is None or time > end - span]


def _fill(
    duck: duckdb.DuckDBPyConnection, source: SourceDefinition, name: str, rows: Sequence[Row]
) -> None:
    fields = source.schema.fields
    columns = ", ".join(f"{f.name} {_TYPES.get(f.dtype, f.dtype)}" for f in fields)
    duck.execute(f"CREATE TABLE {name} ({columns})")
    if rows:
        given = pa.table({f.name: [row[at] for row in rows] for at, f in enumerate(fields)})
        duck.register("given", given)
        duck.execute(f"INSERT INTO {name} SELECT * FROM given")
        duck.unregister("given")
