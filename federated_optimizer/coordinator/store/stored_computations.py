"""The computation index in the catalog's database: what runs compute, and what they read.

A run has one row, with a column per relation: a registration writes one row, however many
conditions and parts it has. `network check` compares the rows with the runs.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec
import sqlalchemy as sa

from federated_optimizer.coordinator.computations.run_nodes import shapes_of
from federated_optimizer.coordinator.store.schema.computation_tables import computations
from federated_optimizer.sharing.part_relations import part_relations
from streamsql.algebra.operators import Plan
from streamsql.wire.bundles.trimmed_bundles import is_trimmed
from streamsql.wire.fragments import FragmentBundle

PARTS = ("literals", "disjunctions", "predicate_sets", "group_keys", "inputs")
"""Relations of what a run computes; see `sharing.part_relations`."""

_INSERT = computations.insert()

Row = dict[str, str | int | None]
"""A run's row, without its name."""

Computed = tuple[FragmentBundle, Plan | None]
"""A run's bundle, and what its result is, over sources; None: nobody may read it, or knows."""


def computation_row(bundle: FragmentBundle, logical: Plan | None) -> Row:
    """Return what the index says of a run; without a logical plan its parts are None."""
    topology = [
        (node.name, relation, name)
        for node in shapes_of(bundle)
        for relation, names in (("node", node.reads), ("source", node.sources))
        for name in names
    ]
    row: Row = {"version": bundle.version, "topology": _text(sorted(topology))}
    if logical is None:
        return row | dict.fromkeys(PARTS)
    found = part_relations(bundle, logical)
    relations = (*found.conditions, found.group_keys, found.inputs)
    return row | {name: _text(rows) for name, rows in zip(PARTS, relations, strict=True)}


def _text(rows: object) -> str:
    return msgspec.json.encode(rows).decode()


def write_computations(
    connection: sa.Connection, runs: Iterable[Computed], *, new: Collection[str] = ()
) -> None:
    """Write what runs compute, unless it is there in their version, within a transaction.

    Args:
        connection: Of the transaction.
        runs: Those that are deployed.
        new: Names that no run has had before: there are no rows of them.
    """
    wanted: dict[str, Computed] = {}
    for bundle, logical in runs:
        known = wanted.get(bundle.query, (bundle, None))[1]
        wanted[bundle.query] = (bundle, known if logical is None else logical)
    if not wanted:
        return
    table = computations
    there = _versions(connection, wanted.keys() - set(new))
    added = []
    for run, (bundle, logical) in wanted.items():
        version, told = there.get(run, (None, False))
        # A run that is trimmed keeps its version, and computes less than before.
        is_known = version == bundle.version and (told or logical is None)
        if is_known and not is_trimmed(bundle):
            continue
        row = computation_row(bundle, logical)
        if run not in there:
            added.append({"run": run, **row})
            continue
        # What a run computes stays the same while nobody says it anew: only its place is other.
        changed = row if logical is not None else {k: row[k] for k in ("version", "topology")}
        connection.execute(table.update().where(table.c.run == run).values(**changed))
    if added:
        connection.execute(_INSERT, added)


def _versions(connection: sa.Connection, runs: Collection[str]) -> dict[str, tuple[int, bool]]:
    """Return versions of stored runs, and whether it is known what each computes."""
    if not runs:
        return {}
    table = computations
    versions = sa.select(table.c.run, table.c.version, table.c.literals.is_not(None)).where(
        table.c.run.in_(tuple(runs))
    )
    return {run: (version, told) for run, version, told in connection.execute(versions)}


def stored_computations(connection: sa.Connection) -> dict[str, Row]:
    """Return the rows of all runs, by run."""
    found = connection.execute(sa.select(computations)).mappings()
    return {row["run"]: {k: v for k, v in row.items() if k != "run"} for row in found}


def replace_computations(
    connection: sa.Connection, rows: Mapping[str, Row], runs: Iterable[str]
) -> None:
    """Write the rows of some runs as they ought to be, within a transaction.

    Args:
        connection: Of the transaction.
        rows: Of all runs; a run that has none loses its row.
        runs: Those that are written.
    """
    table = computations
    for run in runs:
        connection.execute(table.delete().where(table.c.run == run))
        if run in rows:
            connection.execute(table.insert().values(run=run, **rows[run]))


def read_rows(text: str | int | None) -> list[list[str]] | None:
    """Return the rows of a relation; None: the text is none of one."""
    try:
        return msgspec.json.decode(str(text), type=list[list[str]])
    except msgspec.DecodeError:
        return None
