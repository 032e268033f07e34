"""The network of shared computations as somebody may see it, with what was measured of its nodes.

Operators see all. Others see the nodes on which queries rest that they may read, without the text
of those that tell of other queries; of other nodes and queries they get the numbers.
"""

from collections.abc import Callable, Collection, Iterable
from heapq import nsmallest
from itertools import islice

from federated_optimizer.coordinator.computations.network_index import NetworkIndex
from federated_optimizer.coordinator.contract.network_model import (
    MOST_NODES,
    MOST_QUERIES,
    MOST_READERS,
    Network,
    NetworkNode,
    NodeQuery,
)
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.explaining.measured_fragments import (
    MeasuredFragment,
    measured_fragments,
)
from federated_optimizer.coordinator.explaining.seen_texts import NOT_SHOWN, SeenTexts
from federated_optimizer.coordinator.grants.query_rights import seen_in_network
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights

_NOT_MEASURED = MeasuredFragment()


def network_for(
    queries: Queries, rights: ReadingRights, principal: Principal, most: int = MOST_NODES
) -> Network:
    """Return the network as somebody may see it."""
    runs, seen = queries.runs, seen_in_network(rights, principal, queries.all())
    texts = SeenTexts(runs, rights, principal).of_run
    return shown_network(runs.network, runs.leader, seen, most, texts)


def shown_network(
    index: NetworkIndex,
    leader_of: Callable[[str], RunningQuery | None],
    seen: Iterable[RunningQuery] | None = None,
    most: int = MOST_NODES,
    texts: Callable[[str], bool] | None = None,
) -> Network:
    """Return the network.

    Args:
        index: Of what rests on what.
        leader_of: Returns a query that knows all that has come of a run, or None.
        seen: Those that whoever asks may see; None: all, and all nodes.
        most: Nodes to return, those on which most queries rest first.
        texts: Returns whether they may see what the nodes of a run compute; None: of all.
    """
    index.look()
    may_see: Callable[[str], bool]
    names: Collection[str]
    if seen is None:
        names, may_see = index.names(), _everything
    else:
        readable = {query.id: query.run for query in seen}
        entries = map(index.entry, dict.fromkeys(readable.values()))
        found = (name for entry in entries if entry is not None for name in entry.rests)
        names, may_see = tuple(dict.fromkeys(found)), readable.__contains__
    hidden = len(index.names()) - len(names)
    listed = nsmallest(most, names, key=lambda name: (-index.resting(name), len(name), name))
    shown = _Shown(index, leader_of, frozenset(names), may_see, texts or _everything)
    nodes = tuple(map(shown.node, listed))
    return Network(nodes, index.query_count, hidden, len(names) - len(nodes))


def _everything(_name: str) -> bool:
    return True


class _Shown:
    """Nodes for one principal."""

    def __init__(
        self,
        index: NetworkIndex,
        leader_of: Callable[[str], RunningQuery | None],
        names: frozenset[str],
        may_see: Callable[[str], bool],
        texts: Callable[[str], bool],
    ) -> None:
        self._index = index
        self._leader_of = leader_of
        self._names = names
        self._may_see = may_see
        self._texts = texts
        self._measured: dict[str, dict[str, MeasuredFragment]] = {}

    def node(self, name: str) -> NetworkNode:
        """Return a node that is there."""
        index = self._index
        shape = index.shape(name)
        entry = None if shape is None else index.entry(shape.run)
        if shape is None or entry is None:
            raise KeyError(name)
        kind, computes = index.words(name)
        readers = tuple(read for read in index.readers(name) if read in self._names)
        owner = index.owner(shape.run)
        is_leaf = "/" in name
        direct = () if is_leaf else index.queries(shape.run)
        named = (query for query in direct if self._may_see(query.id))
        leader = self._leader_of(shape.run)
        measured = self._of_run(shape.run, leader).get(shape.fragment, _NOT_MEASURED)
        return NetworkNode(
            name=name,
            run=shape.run,
            fragment=shape.fragment,
            kind=kind,
            computes=computes if self._texts(shape.run) else NOT_SHOWN,
            sites=shape.sites,
            sources=shape.sources,
            reads=tuple(read for read in shape.reads if read in self._names),
            readers=readers[:MOST_READERS],
            more_readers=max(len(readers) - MOST_READERS, 0),
            queries=tuple(NodeQuery(q.id, q.name) for q in islice(named, MOST_QUERIES)),
            direct=0 if is_leaf else entry.count,
            resting=index.resting(name),
            owner=owner.name if owner is not None and self._may_see(owner.id) else "",
            kept=not entry.count,
            since=index.since(shape.run),
            rows=None if is_leaf or leader is None else _rows(leader),
            messages=measured.messages,
            bytes=measured.bytes,
        )

    def _of_run(self, run: str, leader: RunningQuery | None) -> dict[str, MeasuredFragment]:
        if run not in self._measured:
            self._measured[run] = {} if leader is None else measured_fragments(leader)
        return self._measured[run]


def _rows(query: RunningQuery) -> int | None:
    """Return the rows of a result; None: it is not known yet, or is kept where it is computed."""
    if query.bundle.silent or not query.result.is_synchronised:
        return None
    return query.result.answer.rows
