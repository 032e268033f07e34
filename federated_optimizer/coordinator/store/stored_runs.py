"""Queries and nodes in the catalog's database: what changes together is one transaction."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import sqlalchemy as sa

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from federated_optimizer.coordinator.store.schema.computation_tables import computations
from federated_optimizer.coordinator.store.schema.node_tables import nodes
from federated_optimizer.coordinator.store.stored_computations import write_computations
from streamsql.algebra.operators import Plan
from streamsql.catalog.read_gate import Read
from streamsql.data.schema import Schema
from streamsql.errors import UnsupportedError, WireError
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import FragmentBundle

log = logging.getLogger(__name__)

_AT_ONCE = 500
"""Values that databases take in one list."""
_INSERT_QUERIES = tables.queries.insert()


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A running query as it survives a restart of the coordinator.

    Attributes:
        unreadable: Why its bundle cannot be read; it is an empty one then.
        logical: What others may read of its run, over sources; None: nothing, or nobody knows.
            It is written into the computation index only.
    """

    id: str
    name: str
    text: str
    origin: Origin
    created: int
    bundle: FragmentBundle
    unreadable: UnsupportedError | None = None
    logical: Plan | None = None


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node of the network as it survives a restart of the coordinator.

    Attributes:
        bundle: Under the name of its run.
        plan: What it computes, over sources.
        reads: The relations that somebody has to be allowed to read for its rows.
        whole_changes: Whether its plan lets the changes of one reading arrive together.
        tells: As of `RunningQuery`.
    """

    bundle: FragmentBundle
    plan: Plan
    reads: frozenset[Read]
    created: int
    whole_changes: bool = False
    tells: frozenset[Read] = frozenset()

    @property
    def run(self) -> str:
        """The name of its run."""
        return self.bundle.query


@dataclass(frozen=True, slots=True)
class RunChanges:
    """Queries and nodes that are stored or removed in one transaction.

    Attributes:
        queries: To be stored, in place of those of the same id.
        dropped: Ids of queries to be removed.
        nodes: To be stored, in place of those of the same run.
        ended: Runs of nodes to be removed.
        are_new: Whether the queries have never been stored, so that nothing is in their place.
    """

    queries: tuple[StoredQuery, ...] = ()
    dropped: tuple[str, ...] = ()
    nodes: tuple[StoredNode, ...] = ()
    ended: tuple[str, ...] = ()
    are_new: bool = False

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.queries or self.dropped or self.nodes or self.ended)


class _Body(msgspec.Struct, frozen=True):
    """The computation of a node, as it is stored."""

    plan: Plan
    reads: tuple[Read, ...]
    whole_changes: bool
    tells: tuple[Read, ...] = ()


def write_runs(connection: sa.Connection, changes: RunChanges) -> None:
    """Store and remove queries and nodes within a transaction."""
    former = () if changes.are_new else tuple(query.id for query in changes.queries)
    gone = (*changes.dropped, *former)
    left = _runs_of(connection, gone)
    _remove(connection, tables.queries.c.id, gone)
    _remove(connection, nodes.c.run, (*changes.ended, *(node.run for node in changes.nodes)))
    if changes.queries:
        connection.execute(_INSERT_QUERIES, [_query_row(q) for q in changes.queries])
    if changes.nodes:
        connection.execute(nodes.insert(), [_node_row(node) for node in changes.nodes])
    queries = [(query.bundle, query.logical) for query in changes.queries]
    new = {query.id for query in changes.queries if changes.are_new}
    computed = (*queries, *((n.bundle, n.plan) for n in changes.nodes))
    write_computations(connection, computed, new=new)
    unread = {*left, *changes.ended} - {bundle.query for bundle, _ in queries}
    _remove(connection, computations.c.run, tuple(unread - _read(connection, unread)))


def _runs_of(connection: sa.Connection, queries: tuple[str, ...]) -> set[str]:
    """Return the runs that queries read, as they are stored."""
    table = tables.queries
    found: set[str] = set()
    for begin in range(0, len(queries), _AT_ONCE):
        part = table.c.id.in_(queries[begin : begin + _AT_ONCE])
        found.update(connection.scalars(sa.select(table.c.run).where(part)))
    return found


def _read(connection: sa.Connection, runs: Collection[str]) -> set[str]:
    """Return those of some runs that a stored query reads, or that are nodes."""
    asked = tuple(runs)
    found: set[str] = set()
    for begin in range(0, len(asked), _AT_ONCE):
        part = asked[begin : begin + _AT_ONCE]
        for column in (tables.queries.c.run, nodes.c.run):
            found.update(connection.scalars(sa.select(column).where(column.in_(part))))
    return found


def _remove(connection: sa.Connection, column: sa.Column[str], values: tuple[str, ...]) -> None:
    for begin in range(0, len(values), _AT_ONCE):
        part = values[begin : begin + _AT_ONCE]
        connection.execute(column.table.delete().where(column.in_(part)))


def _query_row(query: StoredQuery) -> dict[str, object]:
    return {
        "id": query.id,
        "name": query.name,
        "text": query.text,
        "origin": query.origin,
        "version": query.bundle.version,
        "created": query.created,
        "bundle": encode_packed(query.bundle),
        "run": query.bundle.query,
    }


def _node_row(node: StoredNode) -> dict[str, object]:
    return {
        "run": node.run,
        "version": node.bundle.version,
        "created": node.created,
        "bundle": encode_packed(node.bundle),
        "body": encode_packed(_body(node)),
    }


def _body(node: StoredNode) -> _Body:
    reads, tells = (tuple(sorted(each)) for each in (node.reads, node.tells))
    return _Body(node.plan, reads, node.whole_changes, tells)


def queries_in(
    rows: Iterable[sa.Row[Any]], read: Callable[[str, Callable[[], Origin]], Origin]
) -> Iterator[StoredQuery]:
    """Yield the queries of rows of the catalog; a bundle that cannot be read stops no other.

    `read` decodes something of a name, or says that the catalog cannot be read.

    Raises:
        DeploymentError: The origin of one is none.
    """
    for row in rows:
        origin = read(f"query {row.id!r}", partial(Origin, row.origin))
        bundle, unreadable = _decoded_bundle(row.id, row.bundle)
        query = (row.id, row.name, row.text, origin, row.created, bundle)
        yield StoredQuery(*query, unreadable)


def nodes_in(rows: Iterable[sa.Row[Any]]) -> Iterator[StoredNode]:
    """Yield the nodes of rows of the catalog; one that cannot be read is left out."""
    for row in rows:
        try:
            body = decode_packed(row.body, _Body)
            bundle = decode_packed(row.bundle, FragmentBundle)
            told = (row.created, body.whole_changes, frozenset(body.tells))
            yield StoredNode(bundle, body.plan, frozenset(body.reads), *told)
        except WireError as error:
            # Its readers compute themselves what they have read of it.
            log.warning("node %s in the catalog is left out: %s", row.run, error.message)


def _decoded_bundle(query: str, body: bytes) -> tuple[FragmentBundle, UnsupportedError | None]:
    try:
        return decode_packed(body, FragmentBundle), None
    except WireError as error:
        # Its run is one of its own: others may read the run that was stored.
        return FragmentBundle(f"{query}-unreadable", 0, (), Schema(())), UnsupportedError(
            f"its plan in the catalog cannot be read: {error.message}",
            hint="drop it and start it again, or go back to the release that started it",
        )
