"""Tables of the catalog database, and the steps that bring an older database up to date."""

from collections.abc import Callable

import sqlalchemy as sa

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


def _create(connection: sa.Connection) -> None:
    metadata.create_all(connection)
    connection.execute(coordinator.insert().values(id=1, epoch=0, next_query=1))


def _add_alarm_rows(connection: sa.Connection) -> None:
    alarm_rows.create(connection, checkfirst=True)


def _add_site_settings(connection: sa.Connection) -> None:
    site_settings.create(connection, checkfirst=True)


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (
    _create,
    _add_alarm_rows,
    _add_site_settings,
)
"""Step i brings a database of version i to version i + 1; never change one, only append."""
