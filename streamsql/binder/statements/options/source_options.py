"""`WITH (…)` of CREATE SOURCE and CREATE TABLE: unknown options and wrong values are refused.

What only the engine that reads them can know (whether a file is there) is reported by it when it
tries.
"""

from collections.abc import Callable, Mapping
from typing import Never

from streamsql.algebra.operators import SourceKind
from streamsql.catalog.keep_options import keep_of, rollups_of
from streamsql.catalog.table_options import (
    TABLE_OPTIONS,
    TableSource,
    delimiter_of,
    layer_of,
    moment_of,
    needed_options,
    refresh_of,
    secret_of,
    truth_of,
)
from streamsql.data.durations import parse_duration
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import BindingError
from streamsql.syntax.cursor import did_you_mean, nearest
from streamsql.syntax.statements import CreateSource, Option

KEEPING_OPTIONS = ("sample", "ttl", "idle", "colocate", "keep", "rollup")
"""Options that say which rows of a source are kept, and where, however they come."""
MAPPING_OPTIONS = (
    "connector", "endpoint", "gateways", "format", "rows", "only", "only_rows", "delimiter",
    "header",
)  # fmt: skip
"""Options that say which connector feeds a source and how a payload becomes rows."""

_MISSED = {
    "ttl": ("rows of a table do not expire", "remove ttl, or use SOURCE"),
    "idle": ("a table has no watermark", "remove idle, or use SOURCE"),
    "topic": ("only a source has a connector, but this is a table", "remove topic, or use SOURCE"),
    "sample": ("a table has no readings to sample", "refresh = '10 min', or use SOURCE"),
    "connector": (
        "only a source has a connector, but this is a table",
        "CREATE SOURCE, or source = 'csv'",
    ),
    "colocate": ("a table is stored in one place", "remove colocate"),
    "keep": ("only readings of sources go to the lake, but this is a table", "remove keep"),
    "rollup": ("only readings of sources are rolled up, but this is a table", "remove rollup"),
}
"""Options of sources that somebody may expect of tables, with what is wrong and what to do."""


def check_table_options(statement: CreateSource) -> None:
    """Check the options of a table."""
    options = {option.name: option for option in statement.options}
    for name, (message, hint) in _MISSED.items():
        if name in options:
            refuse_option(options[name], message, hint)
    source = options.get("source")
    if source is None:
        _check_no_source(statement)
        return
    kind = source.value.strip().lower()
    if kind not in TABLE_OPTIONS:
        refuse_option(
            source,
            f"there is no table source {source.value!r:.40}",
            listed_or_close(kind, tuple(TABLE_OPTIONS)),
        )
    for option in statement.options:
        if option.name not in TABLE_OPTIONS[kind]:
            message = f"tables from {kind} have no option {option.name!r:.40}"
            refuse_option(option, message, listed_or_close(option.name, TABLE_OPTIONS[kind]))
        if option.name in _TABLE_VALUES:
            check_value(option, *_TABLE_VALUES[option.name])
        if option.name == "layer":
            check_value(option, lambda text: layer_of(text, kind), "name one layer")
    if kind == TableSource.ICS:
        _check_interval(options)
    for name in needed_options(kind):
        if name not in options:
            refuse_option(
                source,
                f"a table from {kind} needs the option {name}",
                f"WITH (source = '{kind}', {name} = '…')",
            )


def _check_interval(options: Mapping[str, Option]) -> None:
    for name, other in (("since", "until"), ("until", "since")):
        if name in options and other not in options:
            refuse_option(
                options[name],
                f"{name} needs the option {other}: occurrences are those of an interval",
                "WITH (since = '2026-01-01', until = '2027-01-01')",
            )


def _check_no_source(statement: CreateSource) -> None:
    known = sorted({name for names in TABLE_OPTIONS.values() for name in names})
    for option in statement.options:
        if option.name not in known:
            refuse_option(
                option,
                f"a table has no option {option.name!r:.40}",
                listed_or_close(option.name, tuple(known)),
            )
        refuse_option(
            option,
            f"{option.name} needs the option source, the format of the rows",
            f"add source = '…', one of {', '.join(TABLE_OPTIONS)}",
        )


def stream_ttl(statement: CreateSource, schema: Schema) -> int | None:
    """Check the options of a source or link source; return its time to live in microseconds.

    Those that say how a connector reads devices are checked in `source_mappings`.
    """
    ttl = None
    has_connector = any(option.name == "connector" for option in statement.options)
    for option in statement.options:
        match option.name:
            case "ttl":
                ttl = _duration(option)
            case "idle":
                _check_idle(option, statement)
            case "colocate":
                _check_columns(option, schema)
            case "keep" | "rollup":
                check_value(option, *_LAKE_VALUES[option.name])
            case "sample":
                _duration(option)
                _check_devices(option, statement, schema)
            case _:
                _check_intake(option, has_connector=has_connector)
    return ttl


def _check_intake(option: Option, *, has_connector: bool) -> None:
    """Check an option that says where rows come from; those of connectors are checked elsewhere."""
    match option.name:
        case "wrapper":
            kind = option.value.strip() or "motes"
            refuse_option(
                option,
                "a source has no option 'wrapper': connectors feed sources",
                f"connector = '{kind:.40}', and endpoint = '…', a name in the gateway's settings",
            )
        case _ if has_connector:
            pass
        case "topic" | "endpoint" | "gateways" | "format" | "rows" | "only" | "only_rows":
            refuse_option(
                option,
                f"{option.name} needs the option connector, the kind of the devices",
                "add connector = 'mqtt', or another",
            )
        case name if any(name in names for names in TABLE_OPTIONS.values()):
            refuse_option(
                option,
                f"{name} is the location of a table's rows, but this is a source",
                "CREATE TABLE for stored data; sources have connector, sample and ttl",
            )
        case name:
            known = ("connector", *KEEPING_OPTIONS)
            refuse_option(
                option, f"a source has no option {name!r:.40}", listed_or_close(name, known)
            )


def _check_idle(option: Option, statement: CreateSource) -> None:
    _duration(option)
    if statement.watermark is None:
        refuse_option(
            option,
            "idle needs a watermark, but this source has none",
            "add WATERMARK FOR ts AS ts - INTERVAL '5 s', or remove idle",
        )


def _duration(option: Option) -> int:
    try:
        micros = parse_duration(option.value)
    except ValueError as error:
        refuse_option(option, str(error), f"{option.name} = '90 s', '30 min', '1 h' or '2 days'")
    if micros <= 0:
        refuse_option(option, f"{option.name} must be longer than 0", f"{option.name} = '90 s'")
    return micros


def _check_devices(option: Option, statement: CreateSource, schema: Schema) -> None:
    """Check that something tells the devices of a sampled source apart."""
    has_key = bool(statement.key) or statement.kind == SourceKind.LINK
    has_key = has_key or any(column.primary_key for column in statement.columns)
    if not has_key and DataType.TEXT not in schema.dtypes:
        refuse_option(
            option,
            "sample keeps one reading per device, but no column names a device",
            "add KEY (column), or a TEXT column",
        )


def _check_columns(option: Option, schema: Schema) -> None:
    for text in option.value.split(","):
        name = text.strip().lower()
        if name not in schema.names:
            refuse_option(
                option,
                f"colocate names {text.strip()!r:.40}, which is not a column of this source",
                did_you_mean(name, schema.names, f"columns: {', '.join(schema.names)}"),
            )


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("an empty text")
    return text


def _address(text: str) -> str:
    if secret_of(text) is None and "://" not in text:
        # Not quoted: whatever it is, it may hold a password.
        raise ValueError("this is not an address such as 'sqlite:///staff.db' or 'secret:staff'")
    return text


_TABLE_VALUES: Mapping[str, tuple[Callable[[str], object], str]] = {
    "path": (_not_empty, "path = 'rooms.csv', relative to the data directory"),
    "table": (_not_empty, "table = 'staff' or 'schema.staff'"),
    "url": (_address, "url = 'sqlite:///staff.db' or 'postgresql://…'"),
    "header": (truth_of, "header = 'false' for a file without a header line"),
    "delimiter": (delimiter_of, "delimiter = ';'"),
    "refresh": (refresh_of, "refresh = '10 min'"),
    "since": (moment_of, "since = '2026-01-01'"),
    "until": (moment_of, "until = '2027-01-01'"),
}
"""Check and example of the value of an option."""
_LAKE_VALUES: Mapping[str, tuple[Callable[[str], object], str]] = {
    "keep": (keep_of, "keep = '30 days', 'forever' or 'no'"),
    "rollup": (rollups_of, "rollup = '1 min, 1 h', or 'no'"),
}


def check_value(option: Option, check: Callable[[str], object], example: str) -> None:
    """Check an option's value with a function that raises ValueError."""
    try:
        check(option.value)
    except ValueError as error:
        refuse_option(option, f"{option.name}: {error}", example)


def listed_or_close(name: str, known: tuple[str, ...]) -> str:
    """Return a hint with the known names, the nearest first."""
    close = nearest(name, known)
    listed = f"known: {', '.join(known)}"
    return f"did you mean {close}? {listed}" if close else listed


def refuse_option(option: Option, message: str, hint: str) -> Never:
    """Refuse an option where its name was written.

    Raises:
        BindingError: Always.
    """
    code = "unknown_option" if "no option" in message else "bad_option"
    raise BindingError(message, span=option.span, hint=hint, code=code)
