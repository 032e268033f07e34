"""Running queries as lists show them: many of one answer for the price of one."""

from collections.abc import Iterable

from federated_optimizer.coordinator.contract.coordinator_model import QueryInfo, Shows
from federated_optimizer.coordinator.queries.answers.run_answers import RunAnswer
from federated_optimizer.coordinator.queries.running_queries import RunningQuery, Standing
from streamsql.wire.fragments import FragmentBundle


def infos_of(queries: Iterable[RunningQuery], shows: Shows = None) -> tuple[QueryInfo, ...]:
    """Return queries as lists show them, each answer looked at once.

    Args:
        queries: Those of which some are listed.
        shows: Tells of a schema whether queries are listed that have it; None: all are.
    """
    known: dict[RunAnswer, Standing] = {}
    listed: dict[int, bool] = {}  # by identity: equal queries have one schema
    found = []
    for query in queries:
        if shows is not None:
            schema = query.bundle.schema
            if id(schema) not in listed:
                listed[id(schema)] = shows(schema)
            if not listed[id(schema)]:
                continue
        answer = query.result.answer
        if query.result in answer.stopped:
            found.append(query.info())
            continue
        if answer not in known:
            known[answer] = query.standing()
        found.append(query.info(known[answer]))
    return tuple(found)


def is_outgrown(bundle: FragmentBundle, queries: Iterable[RunningQuery]) -> bool:
    """Return whether gateways are to keep no table for queries that run a bundle."""
    return bundle.outgrown or any(q.outgrown for q in queries if q.run == bundle.query)
