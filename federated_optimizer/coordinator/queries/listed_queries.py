"""Running queries as lists show them: many of one answer for the price of one."""

from collections.abc import Callable, Iterable, Sequence

from federated_optimizer.coordinator.contract.coordinator_model import ALL, QueryInfo, Wanted
from federated_optimizer.coordinator.queries.answers.run_answers import RunAnswer
from federated_optimizer.coordinator.queries.running_queries import RunningQuery, Standing
from streamsql.catalog.read_gate import Read
from streamsql.wire.fragments import FragmentBundle


def infos_of(
    queries: Sequence[RunningQuery],
    wanted: Wanted = ALL,
    may_see: Callable[[RunningQuery], bool] | None = None,
) -> tuple[QueryInfo, ...]:
    """Return queries as lists show them, oldest first as they are given.

    `may_see` tells which may be listed; None: all.

    Work: that of those which are listed, each answer looked at once, and of the others a
    comparison each until there are enough.
    """
    known: dict[RunAnswer, Standing] = {}
    found = []
    for query in _chosen(queries, wanted, may_see):
        answer = query.result.answer
        if query.result in answer.stopped:
            found.append(query.info())
            continue
        if answer not in known:
            known[answer] = query.standing()
        found.append(query.info(known[answer]))
    return tuple(found)


def _chosen(
    queries: Sequence[RunningQuery],
    wanted: Wanted,
    may_see: Callable[[RunningQuery], bool] | None,
) -> Sequence[RunningQuery]:
    """Return the queries that are asked for, oldest first; no more is gone through than needed."""
    if wanted is ALL:
        return tuple(filter(may_see, queries)) if may_see is not None else queries
    words, relation = wanted.words.lower().split(), wanted.reads.lower()
    listed: dict[int, bool] = {}  # by identity: equal queries have one schema
    reading: dict[frozenset[Read], bool] = {}
    found: list[RunningQuery] = []
    for query in reversed(queries):
        if len(found) == wanted.most:
            break
        if wanted.shows is not None:
            schema = query.bundle.schema
            if id(schema) not in listed:
                listed[id(schema)] = wanted.shows(schema)
            if not listed[id(schema)]:
                continue
        if relation:
            if query.reads not in reading:
                reading[query.reads] = any(read.relation == relation for read in query.reads)
            if not reading[query.reads]:
                continue
        if words:
            said = f"{query.id} {query.name} {query.text}".lower()
            if not all(word in said for word in words):
                continue
        if may_see is None or may_see(query):
            found.append(query)
    found.reverse()
    return found


def is_outgrown(bundle: FragmentBundle, queries: Iterable[RunningQuery]) -> bool:
    """Return whether gateways are to keep no table for queries that run a bundle."""
    return bundle.outgrown or any(q.outgrown for q in queries if q.run == bundle.query)
