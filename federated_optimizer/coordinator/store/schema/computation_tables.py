"""Table of the computation index in the catalog's database, and the run of each query."""

import sqlalchemy as sa

from streamsql.errors import WireError
from streamsql.wire.codec import decode_packed
from streamsql.wire.fragments import FragmentBundle

metadata = sa.MetaData()

computations = sa.Table(
    "pando_computations",
    metadata,
    sa.Column("run", sa.String(64), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("topology", sa.Text, nullable=False),
    sa.Column("literals", sa.Text),
    sa.Column("disjunctions", sa.Text),
    sa.Column("predicate_sets", sa.Text),
    sa.Column("group_keys", sa.Text),
    sa.Column("inputs", sa.Text),
)
"""A row per run; a column per relation, with its rows as JSON. NULL: nobody has said them yet."""


def add_computations(connection: sa.Connection) -> None:
    """Create the table, and say of each query which run it reads."""
    metadata.create_all(connection)
    known = {column["name"] for column in sa.inspect(connection).get_columns("pando_queries")}
    if "run" not in known:
        connection.execute(
            sa.text("ALTER TABLE pando_queries ADD COLUMN run VARCHAR(64) DEFAULT '' NOT NULL")
        )
    queries = sa.table("pando_queries", sa.column("id"), sa.column("bundle"), sa.column("run"))
    for query, body in connection.execute(sa.select(queries.c.id, queries.c.bundle)).all():
        try:
            run = decode_packed(body, FragmentBundle).query
        except WireError:
            continue  # listed as failed when the catalog is read
        connection.execute(queries.update().where(queries.c.id == query).values(run=run))
