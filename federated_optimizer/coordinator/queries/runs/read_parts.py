"""Parts of a run whose rows others read, and parts of the network that nobody would need."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.fed_runs import FedRuns
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from streamsql.algebra.operators import Plan
from streamsql.wire.bundles.trimmed_bundles import trimmed
from streamsql.wire.fragments import Feed, FragmentBundle

Part = tuple[str, str]
"""A fragment of a run: the names of both."""

MOST_READERS = 64
"""Runs that read a run, beyond which it is taken to be needed whoever leaves."""


class Reader(Protocol):
    """A query of a run, as far as it matters who needs which part."""

    @property
    def run(self) -> str:
        """The run."""
        ...

    @property
    def bundle(self) -> FragmentBundle:
        """Its bundle."""
        ...

    @property
    def origin(self) -> Origin:
        """The origin of the query."""
        ...

    @property
    def logical(self) -> Plan | None:
        """Its plan over sources; None: nobody has to know."""
        ...

    @property
    def has_failed(self) -> bool:
        """True if its answer is wrong from now on."""
        ...


class ReadRuns(Protocol):
    """Runs, and who reads them: `SharedRuns`, or those of a benchmark."""

    @property
    def fed(self) -> FedRuns:
        """Runs by the runs whose rows they read."""
        ...

    def leader(self, run: str) -> Reader | None:
        """Return a query of a run; None: nobody reads it."""
        ...

    def readers(self, run: str) -> Sequence[Reader]:
        """Return the queries of a run."""
        ...


def parts_read(runs: ReadRuns, run: str, gone: Collection[str] = ()) -> frozenset[str]:
    """Return the fragments of a run whose rows other runs read, `gone` ones left aside.

    Work: that of its fragments that are read, however many runs read each; and of the readers of
    one of which all but the last have failed, or are gone.
    """
    return frozenset(
        fragment
        for fragment, readers in runs.fed.parts(run).items()
        if any(r not in gone and runs.leader(r) is not None for r in readers)
    )


def may_leave(runs: ReadRuns, query: Reader, more: Collection[str] = ()) -> bool:
    """Return whether a query may leave its run though others read it: only what is delivered.

    `more` are fragments that are about to be read, too.
    """
    parts = parts_read(runs, query.run).union(more)
    if not parts:
        return True
    may_be_node = query.logical is not None and not query.has_failed
    return may_be_node and trimmed(query.bundle, parts) is not None


def holders(runs: SharedRuns, query: RunningQuery) -> tuple[RunningQuery, ...]:
    """Return a query of each run for which the run of a query has to stay as it is."""
    if may_leave(runs, query):
        return ()
    readers = runs.fed_by(query.run)
    results = {fragment.id for fragment in query.bundle.own if not fragment.consumer}
    of_result = tuple(
        reader
        for reader in readers
        if any(f.run == query.run and f.source in results for f in reader.bundle.feeds)
    )
    return of_result or readers


def run_that_ends(runs: ReadRuns, run: str) -> str:
    """Return a run if it ends when its queries leave it; empty: others read what it receives."""
    leader = runs.leader(run)
    return "" if leader and runs.fed.readers(run) and may_leave(runs, leader) else run


def unneeded_without(
    runs: ReadRuns, *left: str, stays: Iterable[Feed] = ()
) -> Mapping[str, frozenset[str]]:
    """Return the fragments that nobody would need if the queries of some runs left, by run.

    These are the runs' own, and those of nodes that only they read, or such nodes. `stays` are
    readings of somebody who would still be there.

    Work: that of the runs that end, and of those that these read.
    """
    kept: dict[str, set[str]] = {}
    for feed in stays:
        kept.setdefault(feed.run, set()).add(feed.source)
    gone: dict[str, frozenset[str]] = {}
    idle = set(left)  # they compute no result any more, and read nothing
    waiting = list(left)
    while waiting:
        name = waiting.pop()
        leader = runs.leader(name)
        if leader is None:
            continue
        needed = parts_read(runs, name, idle) | kept.get(name, set())
        own = {fragment.id: fragment for fragment in leader.bundle.own}
        if name not in left and any(not own[part].consumer for part in needed if part in own):
            continue
        lost = frozenset(own.keys() - needed)
        if gone.get(name) == lost:
            continue  # nothing more than the last time
        gone[name] = lost
        idle.add(name)
        waiting += [feeder for feeder in _nodes_read(runs, leader) if feeder not in waiting]
    return gone


def only_reads(runs: ReadRuns, query: Reader) -> frozenset[Part]:
    """Return the parts of nodes that nobody needs but the run of a query.

    What a node receives is needed, too, by whoever reads its result.
    """
    return frozenset(
        (name, part)
        for name in _nodes_read(runs, query)
        for part in _only_its(runs, name, query.run)
    )


def _only_its(runs: ReadRuns, name: str, run: str) -> list[str]:
    """Return the parts of a node that only one run needs; it reads the node."""
    leader, parts = runs.leader(name), runs.fed.parts(name)
    if leader is None:
        return []
    results = {fragment.id for fragment in leader.bundle.own if not fragment.consumer}
    others = {part for part, readers in parts.items() if any(r != run for r in readers)}
    return [] if results & others else [part for part in parts if part not in others]


def _nodes_read(runs: ReadRuns, query: Reader) -> list[str]:
    """Return the nodes that a query's run reads, and that few others read."""
    found = dict.fromkeys(feed.run for feed in query.bundle.feeds)
    return [
        run
        for run in found
        if all(reader.origin == Origin.NODE for reader in runs.readers(run))
        and len(runs.fed.readers(run)) <= MOST_READERS
    ]
