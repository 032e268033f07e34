"""Nodes of the network: runs that no user's query reads, kept for the runs that read their rows.

A node is read by a hidden query (`Origin.NODE`), so that it is deployed, planned again and repaired
like any run. It is not in lists, and counts for nobody.
"""

from collections.abc import Iterable, Mapping

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sites.flows import FlowReports
from federated_optimizer.coordinator.store.stored_runs import StoredNode
from streamsql.wire.bundles.trimmed_bundles import nothing_of, trimmed
from streamsql.wire.fragments import Engine, FragmentBundle


def node_id(run: str) -> str:
    """Return the id of the hidden query of a run: of run q17 it is node 17."""
    return f"node {run.removeprefix('q')}"


class NetworkNodes:
    """The nodes that are kept, by the name of their run.

    A run is left to a node by its last stored query if other runs read its rows. It is one until
    nobody reads them, or until a stored query reads the run again. Where others read only what is
    delivered for it, it computes no result any more: it is trimmed, in the middle of its channels.

    Args:
        shared: Clock and settings.
        runs: All runs; a node is a reader of its own.

    Attributes:
        stale: Runs of nodes that the catalog still has, though a query reads them.
    """

    def __init__(self, shared: SharedParts, runs: SharedRuns) -> None:
        self._shared = shared
        self._runs = runs
        self._kept: dict[str, RunningQuery] = {}
        self.stale: tuple[str, ...] = ()
        self._perhaps_unread: dict[str, None] = {}
        self._perhaps_trimmed: dict[str, None] = {}

    def all(self) -> tuple[RunningQuery, ...]:
        """Return the hidden queries of the nodes."""
        return tuple(self._kept.values())

    def find(self, query_id: str) -> RunningQuery | None:
        """Return a node by the id of its hidden query."""
        prefix, _, number = query_id.partition(" ")
        return self._kept.get(f"q{number}") if prefix == "node" else None

    def of(self, run: str) -> RunningQuery | None:
        """Return the node that a run is, or None."""
        return self._kept.get(run)

    # --- which are needed ---------------------------------------------------------------------

    def left_by(self, queries: Iterable[RunningQuery]) -> tuple[StoredNode, ...]:
        """Return the nodes that have to be kept when queries leave their runs."""
        leaving = {query.id: query for query in queries}
        runs = dict.fromkeys(query.run for query in leaving.values())
        return tuple(
            stored_node(query, query.bundle)
            for run in runs
            if run not in self._kept and (query := self._last_of(run, leaving)) is not None
        )

    def _last_of(self, run: str, leaving: Mapping[str, RunningQuery]) -> RunningQuery | None:
        """Return a query that leaves a run to a node; None: it is still read, or by nobody."""
        live = [query for query in self._runs.live(run) if not self._runs.is_tried(query)]
        if not live or any(query.id not in leaving for query in live):
            return None
        query = live[0]
        if query.has_failed or query.logical is None or not self._runs.fed.readers(run):
            return None
        return query

    def unneeded(self) -> list[RunningQuery]:
        """Return the nodes that nobody reads, or only such nodes, and those whose run has a query.

        Work: that of the runs that have changed since nothing was found.
        """
        self._look()
        found: dict[str, RunningQuery] = {}
        gone: set[str] = set()
        waiting = list(self._perhaps_unread)
        while waiting:
            run = waiting.pop()
            node = self._kept.get(run)
            if node is None or run in found:
                continue
            if self._has_query(run):
                found[run] = node  # the run goes on, so what it reads is read
            elif all(reader in gone for reader in self._runs.fed.readers(run)):
                found[run] = node
                gone.add(run)
                waiting.extend(self._runs.fed.feeders(run))
        if not found:
            self._perhaps_unread.clear()
        return list(found.values())

    def trimmable(self) -> list[StoredNode]:
        """Return what is left of nodes whose result nobody reads: leaves that others read.

        Work: that of the runs that have changed since nothing was found.
        """
        self._look()
        nodes = (self._kept[run] for run in self._perhaps_trimmed if run in self._kept)
        found = [*filter(None, map(self._without_unread, nodes))]
        if not found:
            self._perhaps_trimmed.clear()
        return found

    def _look(self) -> None:
        changed = dict.fromkeys(self._runs.fed.take_changed())
        self._perhaps_unread.update(changed)
        self._perhaps_trimmed.update(changed)

    def _without_unread(self, node: RunningQuery) -> StoredNode | None:
        bundle = node.bundle
        if len(self._runs.readers(node.run)) > 1 or node.has_failed:
            return None
        leaves = {leaf.id for leaf in bundle.own if leaf.consumer and leaf.engine != Engine.BASE}
        read: set[str] = set()
        readers = map(self._runs.leader, self._runs.fed.readers(node.run))
        for feed in (feed for reader in readers if reader for feed in reader.bundle.feeds):
            if feed.run != node.run:
                continue
            # Who reads another version will read this one, or none; nobody knows yet.
            if feed.version != bundle.version or feed.source not in leaves:
                return None
            read.add(feed.source)
        left = trimmed(bundle, read) if read else None
        if left is None or left == bundle:
            return None
        plan = nothing_of(fragment.plan for fragment in left.fragments if fragment.consumer)
        return StoredNode(left, plan, node.reads, node.created, node.whole_changes, node.tells)

    def _has_query(self, run: str) -> bool:
        """Return whether a query that outlives a restart reads a run, too."""
        hidden = (Origin.SESSION, Origin.NODE)
        return any(query.origin not in hidden for query in self._runs.live(run))

    # --- keeping them -------------------------------------------------------------------------

    def keep(self, run: str) -> RunningQuery | None:
        """Read a run for nobody but its readers, before its last query leaves it."""
        leader = self._runs.leader(run)
        if leader is None or run in self._kept:
            return None
        node = self._made(stored_node(leader, leader.bundle))
        node.warnings = leader.warnings
        node.join(leader, self._shared.settings.host)
        node.differing, node.missing = dict(leader.differing), dict(leader.missing)
        self._enter(node)
        return node

    def start(self, stored: StoredNode, *, recovered: bool = False) -> RunningQuery:
        """Take up a node whose fragments are with its sites; recovered, there was one before."""
        node = self._made(stored, recovered=recovered)
        node.begin_to_read_others()
        self._enter(node)
        return node

    def _enter(self, node: RunningQuery) -> None:
        self._kept[node.run] = node
        self._runs.enter(node)

    def _made(self, stored: StoredNode, *, recovered: bool = False) -> RunningQuery:
        name, bundle = node_id(stored.run), stored.bundle
        clock, behind = self._shared.clock, self._shared.settings.max_behind
        return RunningQuery(
            id=name,
            name=name,
            text=bundle.text,
            origin=Origin.NODE,
            created=stored.created,
            bundle=bundle,
            result=QueryResult(
                bundle, clock=clock, max_behind=behind, query=name, recovered=recovered
            ),
            membership=self._shared.membership,
            reads=stored.reads,
            leader_of=self._runs.leader,
            flows=FlowReports(found=recovered),
            logical=stored.plan,
            whole_changes=stored.whole_changes,
            tells=stored.tells,
        )

    def trim(self, nodes: Iterable[StoredNode]) -> None:
        """Let nodes only deliver what is read of them; their readers notice nothing."""
        for stored in nodes:
            node = self._kept[stored.run]
            former = node.bundle
            self._runs.leave(node)
            node.bundle, node.logical = stored.bundle, stored.plan
            node.result.redeploy(stored.bundle)
            node.begin_to_read_others()
            self._runs.enter(node)
            self._shared.deployment.publish(stored.bundle, previous=former)

    def end(self, node: RunningQuery) -> None:
        """Stop reading a run for its readers."""
        del self._kept[node.run]
        self._runs.leave(node)
        node.result.leave()


def stored_node(query: RunningQuery, bundle: FragmentBundle) -> StoredNode:
    """Return a query's run as a node with a bundle, which may be its next one."""
    assert query.logical is not None  # noqa: S101  (a run without one is left to no node)
    told = (query.reads, query.created, query.whole_changes, query.tells)
    return StoredNode(bundle, query.logical, *told)
