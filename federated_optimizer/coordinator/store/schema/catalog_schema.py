"""Tables of the catalog database, and the steps that bring an older database up to date."""

import logging
from collections.abc import Callable

import sqlalchemy as sa
from msgspec.structs import replace

from federated_optimizer.coordinator.store.schema.computation_tables import add_computations
from federated_optimizer.coordinator.store.schema.former_wrappers import Unmigrated, migrated
from federated_optimizer.coordinator.store.schema.grant_tables import add_grants
from federated_optimizer.coordinator.store.schema.node_tables import add_nodes
from federated_optimizer.coordinator.store.schema.people_tables import add_people
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, encode_json

log = logging.getLogger(__name__)

metadata = sa.MetaData()

schema_version = sa.Table(
    "pando_schema", metadata, sa.Column("version", sa.Integer, nullable=False)
)

coordinator = sa.Table(
    "pando_coordinator",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("next_query", sa.BigInteger, nullable=False),
)

definitions = sa.Table(
    "pando_definitions",
    metadata,
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

queries = sa.Table(
    "pando_queries",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("origin", sa.String(20), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("bundle", sa.LargeBinary, nullable=False),
    sa.Column("run", sa.String(64), nullable=False, server_default=""),
)

alarm_rows = sa.Table(
    "pando_alarm_rows",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("alarm", sa.String(200), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

site_settings = sa.Table(
    "pando_site_settings",
    metadata,
    sa.Column("site", sa.String(64), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

source_versions = sa.Table(
    "pando_source_versions",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
)
"""The newest version of each source that was ever declared: rows of an older one of the same name
may be on their way still, so numbers go on after DROP."""

sink_entries = sa.Table(
    "pando_sink_entries",
    metadata,
    sa.Column("sink", sa.String(200), primary_key=True),
    sa.Column("kind", sa.String(20), primary_key=True),
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""What sinks have to remember over a restart; `sink_memory.py` says what the kinds are."""

audit = sa.Table(
    "pando_audit",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

enrolments = sa.Table(
    "pando_enrolments",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""Gateways that administrators have provisioned; of a token its hash only."""

facts = sa.Table(
    "pando_facts",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""The optimizer's facts; `id` is a hash of what a fact is about."""

decisions = sa.Table(
    "pando_decisions",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""Decisions on the plans of running queries."""


def _create(connection: sa.Connection) -> None:
    metadata.create_all(connection)
    connection.execute(coordinator.insert().values(id=1, epoch=0, next_query=1))


def _add_alarm_rows(connection: sa.Connection) -> None:
    alarm_rows.create(connection, checkfirst=True)


def _add_site_settings(connection: sa.Connection) -> None:
    site_settings.create(connection, checkfirst=True)


def _add_source_versions(connection: sa.Connection) -> None:
    source_versions.create(connection, checkfirst=True)


def _add_sink_entries(connection: sa.Connection) -> None:
    sink_entries.create(connection, checkfirst=True)


def _add_audit(connection: sa.Connection) -> None:
    audit.create(connection, checkfirst=True)


def _add_enrolments(connection: sa.Connection) -> None:
    enrolments.create(connection, checkfirst=True)


def _add_facts(connection: sa.Connection) -> None:
    facts.create(connection, checkfirst=True)


def _add_decisions(connection: sa.Connection) -> None:
    decisions.create(connection, checkfirst=True)


def _migrate_wrappers(connection: sa.Connection) -> None:
    """Let connectors feed the sources of wrappers."""
    found = connection.execute(
        sa.select(definitions.c.name, definitions.c.body).where(definitions.c.kind == "source")
    )
    for name, body in found.all():
        try:
            definition = decode_json(body, SourceDefinition)
        except WireError:
            continue  # named when the catalog is read
        fed = migrated(definition)
        if isinstance(fed, Unmigrated):
            log.warning("source %s: %s", name, fed.reason)
        if not isinstance(fed, SourceDefinition):
            continue
        new = replace(fed, version=_next_version(connection, name))
        log.info("source %s is fed by a connector now: %s", name, new.text)
        change = definitions.update().where(definitions.c.name == name)
        connection.execute(change.values(body=encode_json(new)))


def _next_version(connection: sa.Connection, name: str) -> int:
    table = source_versions
    known = connection.execute(sa.select(table.c.version).where(table.c.name == name)).scalar()
    connection.execute(table.delete().where(table.c.name == name))
    connection.execute(table.insert().values(name=name, version=(known or 0) + 1))
    return (known or 0) + 1


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (
    _create,
    _add_alarm_rows,
    _add_site_settings,
    _add_source_versions,
    _add_sink_entries,
    _migrate_wrappers,
    _add_audit,
    add_people,
    _add_enrolments,
    add_grants,
    _add_facts,
    _add_decisions,
    add_nodes,
    add_computations,
)
"""Step i brings a database of version i to version i + 1; never change one, only append."""
