"""Queries and nodes that ran before a restart of the coordinator are taken up again."""

from collections.abc import Iterable

from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.store.stored_runs import StoredNode, StoredQuery


def recover_all(
    queries: Queries, stored: Iterable[StoredQuery], nodes: Iterable[StoredNode]
) -> None:
    """Take up what ran before, whose fragments are with their sites.

    A coordinator that ended amid a change may have stored a node and a query of one run: then
    nobody needs the node.
    """
    stored = tuple(stored)
    read = {query.bundle.query for query in stored}
    nodes = tuple(nodes)
    queries.nodes.stale = tuple(node.run for node in nodes if node.run in read)
    for node in (node for node in nodes if node.run not in read):
        queries.planner.sites.remember(node.bundle)
        queries.nodes.start(node, recovered=True).compare(queries.differing, queries.missing)
    for query in stored:
        queries.planner.sites.remember(query.bundle)
        _recover(queries, query)


def _recover(queries: Queries, stored: StoredQuery) -> None:
    """Take up one query.

    A coordinator that ended amid a redeployment has stored some queries of a run with a former
    version: the newest counts. One whose bundle cannot be read is listed as failed.
    """
    bundle = stored.bundle
    readers = queries.runs.readers(bundle.query)
    outdated = [reader for reader in readers if reader.bundle.version < bundle.version]
    queries.catch_up(outdated, bundle)
    bundle = readers[0].bundle if readers else bundle
    query = queries.start(
        queries.planner.recovered(stored.text, bundle),
        id=stored.id,
        text=stored.text,
        name=stored.name,
        origin=stored.origin,
        created=stored.created,
        recovered=True,
        deploy=False,
    )
    if stored.unreadable is not None:
        queries.fail(query, stored.unreadable)
