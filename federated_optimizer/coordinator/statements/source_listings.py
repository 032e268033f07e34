"""SHOW SOURCES and DESCRIBE of a source: where its rows come from, and which gateways have it."""

from federated_optimizer.coordinator.contract.coordinator_model import SiteInfo
from federated_optimizer.coordinator.sites.source_serving import serving_of
from federated_optimizer.coordinator.store.schema.former_wrappers import Unmigrated, migrated
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import is_system
from streamsql.data.durations import duration_text
from streamsql.mapping.row_columns import fact_columns
from streamsql.mapping.source_mapping import ColumnMapping, SourceMapping
from streamsql.wire.site_messages import ENGINE_ROLES

Row = tuple[str | int | float | bool | None, ...]

SOURCE_COLUMNS = (
    "source", "kind", "columns", "ttl", "connector", "endpoint", "version", "gateways", "missing",
)  # fmt: skip
"""`gateways`: those that send its rows. `missing`: those whose rows are missing, and why."""
DECLARED_COLUMNS = ("column", "type", "from", "unit", "note")
"""Of DESCRIBE of a declared source."""


def source_row(source: SourceDefinition, sites: tuple[SiteInfo, ...]) -> Row:
    """Return a row of SHOW SOURCES."""
    ttl = duration_text(source.ttl) if source.ttl is not None else ""
    head = (source.name, str(source.kind), str(source.schema), ttl)
    mapping = source.mapping
    if mapping is None:
        former = migrated(source)
        missing = former.reason if isinstance(former, Unmigrated) else ""
        return (*head, "", "", None, ", ".join(_owners(source, sites)), missing)
    serving = serving_of(source, mapping, sites)
    gaps = [
        f"{site}: {gap.reason}" if site else gap.reason for site, gap in serving.missing.items()
    ]
    feed = (mapping.connector, mapping.endpoint, source.version)
    return (*head, *feed, ", ".join(serving.serving), "; ".join(gaps))


def _owners(source: SourceDefinition, sites: tuple[SiteInfo, ...]) -> list[str]:
    if is_system(source):
        return [site.site for site in sites if site.role in ENGINE_ROLES]
    name = source.name.lower()
    return [s.site for s in sites if name in {offered.lower() for offered in s.sources}]


def declared_rows(source: SourceDefinition, mapping: SourceMapping) -> list[Row]:
    """Return the rows of DESCRIBE of a declared source: its columns, then what is said of all."""
    levels = fact_columns(mapping)
    columns: list[Row] = [
        (
            *(field.name, str(field.dtype), _origin(field.name, column, levels), column.unit),
            "; ".join([*column_notes(source, position), *_clauses(column)]),
        )
        for position, (field, column) in enumerate(
            zip(source.schema.fields, mapping.columns, strict=True)
        )
    ]
    return columns + [("", "", "", "", fact) for fact in _facts(source, mapping)]


def column_notes(source: SourceDefinition, position: int) -> list[str]:
    """Return what a column is to its source."""
    notes = ["key"] if position in source.key else []
    return [*notes, "event time"] if position == source.time_column else notes


def _origin(name: str, column: ColumnMapping, levels: frozenset[str]) -> str:
    return column.path or (f"{{{name}}}" if name in levels else name)


def _clauses(column: ColumnMapping) -> list[str]:
    """Return the clauses that have no column of their own, as they are written."""
    texts = {"FORMAT": column.format, "ZONE": column.zone, "IN": column.unit_in}
    notes = [f"{word} '{text}'" for word, text in texts.items() if text]
    if column.scale != 1.0:
        notes.append(f"SCALE {column.scale:g}")
    if column.offset != 0.0:
        notes.append(f"OFFSET {column.offset:g}")
    if column.values:
        notes.append(f"VALUES of {', '.join(repr(raw) for raw, _ in column.values)}")
    return notes


def _facts(source: SourceDefinition, mapping: SourceMapping) -> list[str]:
    own = [f"{name} {text}" for name, text in mapping.options]
    only = [path if text is None else f"{path}={text}" for path, text in mapping.only]
    parts = [
        f"connector {mapping.connector}",
        f"endpoint {mapping.endpoint}" if mapping.endpoint else "",
        f"gateways {', '.join(mapping.gateways)}" if mapping.gateways else "",
        *own,
        f"format {mapping.format}",
        f"rows {mapping.rows}" if mapping.rows else "",
        f"only {', '.join(only)}" if only else "",
        f"only_rows {', '.join(map(''.join, mapping.only_rows))}" if mapping.only_rows else "",
    ]
    return [", ".join(filter(None, parts)), f"version {source.version}"]
