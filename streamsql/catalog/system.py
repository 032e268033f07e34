"""System sources: reports of a federation about itself, in every catalog without CREATE.

After STREAM's introspection queries over `SysStream`: whatever can be measured is a row of one
stream, so that a graph of it is a query like any other. Reports of engine sites are
streams, and their rows are where they were measured; what the coordinator knows are tables.
"""

from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, Severity
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SYS_STREAM_SECONDS = 60


def _schema(columns: str) -> Schema:
    """Return the schema of columns as CREATE writes them."""
    pairs = [column.split() for column in columns.split(", ")]
    return Schema.of(*((name, DataType(dtype)) for name, dtype in pairs))


def _table(name: str, columns: str, key: str) -> SourceDefinition:
    """Return a table; `key` names its first columns."""
    text = f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))"
    width = tuple(range(len(key.split(", "))))
    return SourceDefinition(name, SourceKind.TABLE, _schema(columns), key=width, text=text)


_MEASUREMENT = (
    "ts TIMESTAMP, site TEXT, query TEXT, entity TEXT, kind TEXT, property TEXT, value DOUBLE"
)
SYS_STREAM = SourceDefinition(
    "sys_stream",
    SourceKind.STREAM,
    _schema(_MEASUREMENT),
    time_column=0,
    ttl=SYS_STREAM_SECONDS * 1_000_000,
    text=f"CREATE SOURCE sys_stream ({_MEASUREMENT}) WITH (ttl = '60 s')",
)
"""Measurements of all parts of all engine sites, of the last minute."""

_OPERATOR = "ts TIMESTAMP, site TEXT, query TEXT, entity TEXT, operator TEXT, inputs TEXT"
SYS_OPERATORS = SourceDefinition(
    "sys_operators",
    SourceKind.STREAM,
    _schema(_OPERATOR),
    key=(1, 2, 3),
    time_column=0,
    text=f"CREATE SOURCE sys_operators ({_OPERATOR}, KEY (site, query, entity))",
)
"""The operators that run, with the entities that feed each."""

SYS_QUERIES = _table(
    "sys_queries",
    "query TEXT, name TEXT, status TEXT, origin TEXT, version INTEGER, created TIMESTAMP, "
    "rows INTEGER, text TEXT, run TEXT",
    key="query",
)
"""The running queries; sites know each by its run, which equal queries share."""

SYS_GATEWAYS = _table(
    "sys_gateways",
    "site TEXT, role TEXT, online BOOLEAN, freshness TEXT, epoch INTEGER, since TIMESTAMP, "
    "sensors INTEGER, detail TEXT",
    key="site",
)
"""Gateways, base sites and the static engine."""

SYS_SOURCES = _table(
    "sys_sources", "source TEXT, site TEXT, kind TEXT, columns TEXT", key="source, site"
)
"""Which site has rows of which source; a source that nobody offers has the site ''."""

_LINK = "src TEXT, dst TEXT, cost DOUBLE, source TEXT, gateway TEXT"
SYS_LINKS = SourceDefinition(
    # Without key: the rest of a link's own key, such as a channel, is not in these columns.
    "sys_links",
    SourceKind.TABLE,
    _schema(_LINK),
    text=f"CREATE TABLE sys_links ({_LINK})",
)
"""The links that gateways have announced."""

SYS_ALARMS = _table(
    "sys_alarms",
    "id INTEGER, alarm TEXT, severity TEXT, state TEXT, since TIMESTAMP, raised TIMESTAMP, "
    "unknown TIMESTAMP, acknowledged TIMESTAMP, cleared TIMESTAMP, row TEXT",
    key="id",
)
"""The rows of all alarms, the last cleared ones too; `row` is the row as JSON.

`unknown` is since when a site is away, so that it is not known whether the row is there.
"""

SYS_AUDIT = _table(
    "sys_audit",
    "id INTEGER, ts TIMESTAMP, who TEXT, role TEXT, token TEXT, action TEXT, target TEXT, "
    "outcome TEXT, detail TEXT, address TEXT",
    key="id",
)
"""All that was done or refused, with its outcome; `who` is empty without a sign-in."""

SYS_FACTS = _table(
    "sys_facts",
    "kind TEXT, subject TEXT, part TEXT, quantity TEXT, value DOUBLE, low DOUBLE, high DOUBLE, "
    "confidence DOUBLE, measured TIMESTAMP, origin TEXT",
    key="kind, subject, part, quantity",
)
"""All that has been measured of sources, tables, predicates, recursions and engines."""

SYS_COSTS = _table(
    "sys_costs",
    "cost TEXT, value DOUBLE, low DOUBLE, high DOUBLE, measured TIMESTAMP, origin TEXT",
    key="cost",
)
"""The constants that plans are chosen by; `measured` is NULL for a default."""

SYS_DECISIONS = _table(
    "sys_decisions",
    "id INTEGER, ts TIMESTAMP, queries TEXT, run TEXT, reason TEXT, outcome TEXT, detail TEXT, "
    "plan_before TEXT, plan_after TEXT, bytes_before DOUBLE, bytes_after DOUBLE, "
    "measured_before DOUBLE, measured_after DOUBLE, switch_bytes INTEGER, switch_seconds DOUBLE",
    key="id",
)
"""Plans of running queries that were looked at again, and what came of it; rates are a second."""

SYS_NODES = _table(
    "sys_nodes",
    "node TEXT, run TEXT, fragment TEXT, kind TEXT, computes TEXT, sites TEXT, sources TEXT, "
    "reads TEXT, readers INTEGER, queries INTEGER, resting INTEGER, owner TEXT, kept BOOLEAN, "
    "since TIMESTAMP",
    key="node",
)
"""The nodes of the network of shared computations, and the number of queries that rest on each."""

TABLE_ALARM = AlarmDefinition(
    "sys_table_problems",
    query="stored tables that cannot be read, or have lost nearly all of their rows",
    severity=Severity.WARNING,
)
"""Every federation has this alarm. No query computes its rows: the static engine reports them."""

TABLE_ALARM_SCHEMA = _schema(
    "source TEXT, problem TEXT, rows_served INTEGER, rows_found INTEGER, detail TEXT"
)

SITE_SOURCES = (SYS_STREAM, SYS_OPERATORS)
"""Every engine site has rows of these: its own."""

SYSTEM_TABLES = (
    SYS_QUERIES,
    SYS_GATEWAYS,
    SYS_SOURCES,
    SYS_LINKS,
    SYS_ALARMS,
    SYS_AUDIT,
    SYS_FACTS,
    SYS_COSTS,
    SYS_DECISIONS,
    SYS_NODES,
)
"""The coordinator keeps these."""

SYSTEM_SOURCES = (*SITE_SOURCES, *SYSTEM_TABLES)

_BY_NAME = {definition.name: definition for definition in SYSTEM_SOURCES}
_SITE_NAMES = frozenset(definition.name for definition in SITE_SOURCES)
_TABLE_NAMES = frozenset(definition.name for definition in SYSTEM_TABLES)


def system_source(name: str) -> SourceDefinition | None:
    """Return the system source of a name, or None."""
    return _BY_NAME.get(name.lower())


def is_system(definition: Definition) -> bool:
    """Whether every federation has a definition, and nobody may change it."""
    return _BY_NAME.get(definition.name.lower()) == definition


def is_site_source(name: str) -> bool:
    """Whether every engine site has rows of a source, about itself."""
    return name.lower() in _SITE_NAMES


def is_system_table(name: str) -> bool:
    """Whether the coordinator keeps a table."""
    return name.lower() in _TABLE_NAMES
