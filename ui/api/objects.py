"""The coordinator's values as JSON objects, with times as ISO text."""

from collections.abc import Sequence
from typing import Any

from federated_optimizer.alarm_life_cycle import AlarmRow
from federated_optimizer.coordinator.contract.coordinator_model import (
    AlarmInfo,
    Change,
    Diagnosis,
    QueryInfo,
    SiteInfo,
    StatementResult,
)
from federated_optimizer.coordinator.contract.sink_model import DeadLetter, SinkInfo
from federated_optimizer.coordinator.queries.answers.upserts import Upsert
from streamsql.catalog.catalog import kind_of
from streamsql.catalog.definitions import Definition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import MICROSECONDS, Row, timestamp_text
from streamsql.errors import FederationError, QueryError
from streamsql.redaction import redacted, redacted_address, redacted_values
from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import ConnectionProblem

Object = dict[str, Any]


def query_object(query: QueryInfo) -> Object:
    """Return a query as lists show it."""
    last = query.last_change
    return {
        "id": query.id,
        "name": query.name,
        "run": query.run,
        "text": query.text,
        "status": str(query.status),
        "origin": query.origin,
        "emit": query.emit,
        "version": query.version,
        "columns": schema_object(query.schema, query.units),
        "created": timestamp_text(query.created),
        "rows": query.rows,
        "changes": query.changes,
        "last_change": timestamp_text(last) if last is not None else None,
        "error": query.error,
        "waiting_for": list(query.waiting_for),
        "warnings": list(query.warnings),
        "settled": query.settled,
        "display": query.display,
        "subscription": {
            "snapshot": query.snapshot,
            "progress": query.progress,
            "key": [query.schema.names[p] for p in query.key],
        },
    }


def schema_object(schema: Schema, units: Sequence[str] = ()) -> list[Object]:
    """Return columns as names and types, and units where `units` has one."""
    columns: list[Object] = [{"name": f.name, "type": str(f.dtype)} for f in schema.fields]
    for column, unit in zip(columns, units, strict=False):
        if unit:
            column["unit"] = unit
    return columns


def row_object(schema: Schema, row: Row) -> Object:
    """Return a row by column name."""
    return dict(schema.to_object(row))


def change_object(schema: Schema, change: Change) -> Object:
    """Return one signed row."""
    shown: Object = {
        "ts": timestamp_text(change.ts),
        "diff": change.diff,
        "row": row_object(schema, change.row),
    }
    if change.reading_ts is not None:
        shown["reading_ts"] = timestamp_text(change.reading_ts)
    return shown


def upsert_object(schema: Schema, key: tuple[int, ...], upsert: Upsert) -> Object:
    """Return the row that a key has now, or null when it has none any more."""
    columns = Schema(tuple(schema.fields[p] for p in key))
    return {
        "ts": timestamp_text(upsert.ts),
        "key": row_object(columns, upsert.key),
        "row": row_object(schema, upsert.row) if upsert.row is not None else None,
    }


def alarm_object(info: AlarmInfo) -> Object:
    """Return an alarm and its rows."""
    definition = info.definition
    return {
        "alarm": definition.name,
        "severity": str(definition.severity),
        "state": info.state,
        "for_seconds": definition.hold / MICROSECONDS,
        "query": info.query,
        "status": info.status,
        "text": definition.query,
        "raised": info.raised,
        "waiting": info.waiting,
        "unknown": info.unknown,
        "unacknowledged": info.unacknowledged,
        "unlisted": info.unlisted,
        "dropped": info.dropped,
        "away": list(info.away),
        "unsettled_since": _time(info.unsettled_since),
        "since": _time(info.since),
        "rows": [alarm_row_object(info.schema, row) for row in info.rows],
    }


def sink_object(info: SinkInfo) -> Object:
    """Return a sink and its dead letters."""
    definition = info.definition
    key = Schema(tuple(info.schema.fields[info.schema.index_of(n)] for n in definition.key))
    return {
        "sink": definition.name,
        "connector": str(definition.connector),
        "endpoint": definition.endpoint,
        "to": definition.target,
        "mode": str(definition.mode),
        "format": str(definition.format),
        "key": list(definition.key),
        "discovery": definition.discovery,
        "units": dict(zip(info.schema.names, definition.units, strict=False)),
        "query": info.query,
        "query_status": info.query_status,
        "text": definition.query,
        "status": str(info.status),
        "problem": info.problem,
        "delivered": info.delivered,
        "waiting": info.waiting,
        "unknown": info.unknown,
        "dropped": info.dropped,
        "last": _time(info.last),
        "dead_letters": [_letter_object(key, info.schema, letter) for letter in info.dead],
    }


def _letter_object(key: Schema, schema: Schema, letter: DeadLetter) -> Object:
    return {
        "key": row_object(key, letter.key) if letter.key else None,
        "row": None if letter.row is None else row_object(schema, letter.row),
        "reason": letter.reason,
        "tries": letter.tries,
        "given_up": _time(letter.given_up),
    }


def alarm_row_object(schema: Schema, row: AlarmRow) -> Object:
    """Return one row of an alarm."""
    return {
        "id": row.id,
        "alarm": row.alarm,
        "state": str(row.state),
        "row": row_object(schema, row.row),
        "since": _time(row.since),
        "raised": _time(row.raised),
        "unknown": _time(row.unknown),
        "acknowledged": _time(row.acknowledged),
        "cleared": _time(row.cleared),
    }


def _time(micros: int | None) -> str | None:
    return None if micros is None else timestamp_text(micros)


def _cut_off(problem: ConnectionProblem | None) -> Object | None:
    if problem is None:
        return None
    since, until = timestamp_text(problem.since), _time(problem.until)
    return {"reason": problem.reason, "since": since, "until": until}


def site_object(site: SiteInfo) -> Object:
    """Return a gateway, base site or static engine."""
    figures = site.figures
    buffer = figures.buffer if figures is not None else None
    return {
        "site": site.site,
        "role": site.role,
        "online": site.online,
        "freshness": str(site.freshness),
        "epoch": site.epoch,
        "since": timestamp_text(site.since),
        "detail": site.detail,
        "ready": site.state.ready if site.state is not None else site.online,
        "last_known": _time(site.figures_since),
        "differences": list(site.differences),
        "connection_problem": None if figures is None else _cut_off(figures.connection),
        "clock_offset_ms": figures.clock.offset_ms if figures is not None else None,
        "clock_error_ms": figures.clock.error_ms if figures is not None else 0.0,
        "clock_corrected_ms": figures.clock.corrected_ms if figures is not None else 0.0,
        "rooms": list(site.rooms),
        "sources": list(site.sources),
        "sensors": site.sensors,
        "connectors": [
            {
                "kind": w.kind,
                "streams": list(w.streams),
                "readings": w.readings,
                "errors": w.errors,
                "last_error": w.last_error,
                "note": w.note,
            }
            for w in site.connectors
        ],
        "declared": [
            {
                "source": d.name,
                "version": d.version,
                "endpoint": d.endpoint,
                "problem": d.problem,
                "rows": d.rows,
                "bad": d.bad,
                "last_bad": d.last_bad,
            }
            for d in (figures.declared if figures is not None else ())
        ],
        "endpoints": [
            {
                "name": e.name,
                "connector": e.connector,
                "listens": e.listens,
                "browses": e.browses,
            }
            for e in (figures.endpoints if figures is not None else ())
        ],
        "buffer": None
        if buffer is None
        else {
            "stored": buffer.stored,
            "bytes": buffer.bytes,
            "dropped": buffer.dropped,
            "hours_left": None if buffer.hours_left is None else round(buffer.hours_left, 1),
        },
        "counters": dict(figures.counters) if figures is not None else {},
    }


def definition_object(definition: Definition) -> Object:
    """Return a source, table, view or function, without the password of its database."""
    return redacted_values(_definition_object(definition))


def _definition_object(definition: Definition) -> Object:
    shown: Object = {"name": definition.name, "kind": kind_of(definition), "text": definition.text}
    if isinstance(definition, ViewDefinition):
        shown["columns"] = [{"name": name, "type": ""} for name in definition.columns]
        shown["library"] = definition.library
        shown["recursive"] = definition.recursive
        return shown
    if isinstance(definition, FunctionDefinition):
        shown["columns"] = schema_object(definition.parameters)
        shown["result"] = str(definition.result)
        shown["implementation"] = definition.code
        return shown
    if isinstance(definition, DisplayDefinition):
        shown["columns"] = []
        place = ("floor", "x", "y", "title", "rows")
        return shown | {name: getattr(definition, name) for name in place}
    if isinstance(definition, AlarmDefinition):
        shown["columns"] = []
        hold = definition.hold / MICROSECONDS
        return shown | {"severity": str(definition.severity), "for_seconds": hold}
    if isinstance(definition, SinkDefinition):
        shown["columns"] = []
        return shown | {"connector": str(definition.connector), "to": definition.target}
    shown["columns"] = schema_object(definition.schema, definition.units)
    if definition.refresh is not None:
        return shown | {"library": False, "refresh": definition.refresh.text}
    shown["key"] = [definition.schema.names[k] for k in definition.key]
    shown["stream"] = str(definition.kind)
    shown["options"] = dict(definition.options)
    url = definition.option("url")
    if url:
        shown["options"]["url"] = redacted_address(url)
        written = url.replace("'", "''")
        shown["text"] = definition.text.replace(written, redacted_address(url))
    return shown


def result_object(result: StatementResult) -> Object:
    """Return the outcome of a statement."""
    return {
        "kind": str(result.kind),
        "message": redacted(result.message),
        "query": query_object(result.query) if result.query is not None else None,
        "columns": list(result.columns),
        "rows": [list(row) for row in result.rows],
        "text": redacted(result.text),
        "data": redacted_values(result.data),
        "warnings": list(map(redacted, result.warnings)),
    }


def diagnosis_object(diagnosis: Diagnosis) -> Object:
    """Return what is wrong with a text, and where."""
    return {
        "message": diagnosis.message,
        "line": diagnosis.line,
        "column": diagnosis.column,
        "text": diagnosis.text,
        "hint": diagnosis.hint,
        "severity": diagnosis.severity,
        "code": diagnosis.code,
    }


def error_object(error: FederationError) -> Object:
    """Return an error with its place in the statement, if it has one."""
    span = error.span if isinstance(error, QueryError) else None
    told = {
        "error": {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "line": span.line if span else None,
            "column": span.column if span else None,
            "text": span.text if span else None,
            "carried_out": list(error.carried_out),
        }
    }
    return redacted_values(told)


def event_text(event: str, value: object) -> bytes:
    """Return a server-sent event (HTML standard, section 9.2)."""
    return b"event: " + event.encode() + b"\ndata: " + encode_json(value) + b"\n\n"
