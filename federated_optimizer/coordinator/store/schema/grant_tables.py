"""Tables of grants, makers and quotas in the catalog's database."""

import sqlalchemy as sa

metadata = sa.MetaData()

grants = sa.Table(
    "pando_grants",
    metadata,
    sa.Column("relation", sa.String(200), primary_key=True),
    sa.Column("kind", sa.String(20), primary_key=True),
    sa.Column("grantee", sa.String(200), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

makers = sa.Table(
    "pando_makers",
    metadata,
    sa.Column("kind", sa.String(20), primary_key=True),
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("maker", sa.String(200), nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)
"""Who made a definition or started a query; what is not here, the federation itself did."""

quotas = sa.Table(
    "pando_quotas",
    metadata,
    sa.Column("account", sa.String(200), primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)


def add_grants(connection: sa.Connection) -> None:
    """Create the tables."""
    metadata.create_all(connection)
