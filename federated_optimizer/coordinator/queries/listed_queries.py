"""Running queries as lists show them: many of one answer for the price of one."""

from collections.abc import Iterable

from federated_optimizer.coordinator.contract.coordinator_model import QueryInfo
from federated_optimizer.coordinator.queries.answers.run_answers import RunAnswer
from federated_optimizer.coordinator.queries.running_queries import RunningQuery, Standing
from streamsql.wire.fragments import FragmentBundle


def infos_of(queries: Iterable[RunningQuery]) -> tuple[QueryInfo, ...]:
    """Return queries as lists show them, each answer looked at once."""
    known: dict[RunAnswer, Standing] = {}
    found = []
    for query in queries:
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
