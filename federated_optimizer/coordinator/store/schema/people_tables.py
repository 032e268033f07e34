"""Tables of people in the catalog database: accounts, sessions, API tokens.

Times are microseconds since 1970 UTC. Of a session and a token only the SHA-256 of its secret is
kept, of a password its argon2 hash: who reads a backup can sign in with none of them.
"""

import sqlalchemy as sa

metadata = sa.MetaData()

revision = sa.Table(
    "pando_people_revision",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
)
"""One row, counted up by every change, so that a console notices those of other processes."""

accounts = sa.Table(
    "pando_accounts",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False),
    sa.Column("password", sa.String(200), nullable=False),
    sa.Column("provider", sa.String(200), nullable=False),
    sa.Column("subject", sa.String(255), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("last_sign_in", sa.BigInteger, nullable=True),
)

sessions = sa.Table(
    "pando_sessions",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("account", sa.String(64), nullable=False, index=True),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("last_used", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False),
)

api_tokens = sa.Table(
    "pando_api_tokens",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
    sa.Column("account", sa.String(64), nullable=False, index=True),
    sa.Column("label", sa.String(100), nullable=False),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=True),
    sa.Column("last_used", sa.BigInteger, nullable=True),
    sa.Column("sources", sa.Text, nullable=True),
)
"""`sources` is a JSON list of names, or NULL for all that the account may read."""


def add_people(connection: sa.Connection) -> None:
    """Create the tables where they are missing."""
    metadata.create_all(connection)
    if connection.execute(sa.select(revision.c.id)).first() is None:
        connection.execute(revision.insert().values(id=1, revision=0))
