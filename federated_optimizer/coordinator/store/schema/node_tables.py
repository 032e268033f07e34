"""Table of the nodes of the network in the catalog's database."""

import sqlalchemy as sa

metadata = sa.MetaData()

nodes = sa.Table(
    "pando_nodes",
    metadata,
    sa.Column("run", sa.String(64), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("bundle", sa.LargeBinary, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""Runs that are kept for their readers alone, with what they compute over sources."""


def add_nodes(connection: sa.Connection) -> None:
    """Create the tables."""
    metadata.create_all(connection)
