"""Index of the network: what rests on what. It is kept up to date by what changes.

State: the nodes of each run, who reads a node, on which nodes the queries of a run rest, and how
many queries that are. Work: O(nodes below a run) when queries come to it or leave it; when its
plan changes, also O(those of the runs above it). Nothing is done before somebody looks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from federated_optimizer.coordinator.computations.run_nodes import (
    NodeShape,
    described,
    shapes_of,
)
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.network_model import NodeKind
from streamsql.wire.fragments import FragmentBundle

MOST_NOTED = 20_000
"""Changed runs that are remembered until somebody looks; after more all are looked at again."""


class Reader(Protocol):
    """A query of a run, or what keeps the run for others."""

    @property
    def id(self) -> str:
        """The id of the query."""

    @property
    def name(self) -> str:
        """The name of the query."""

    @property
    def origin(self) -> Origin:
        """For whom it runs."""

    @property
    def created(self) -> int:
        """When it was started, in microseconds since 1970."""

    @property
    def bundle(self) -> FragmentBundle:
        """The bundle of its run."""


class Runs(Protocol):
    """All that sites run."""

    def all(self) -> tuple[str, ...]:
        """Return the runs, oldest first."""

    def shown(self, run: str) -> Sequence[Reader]:
        """Return what reads a run, without what is only tried."""


@dataclass(slots=True)
class RunEntry:
    """A run as it was when somebody looked last.

    Attributes:
        readers: Its queries, and what keeps it for others.
        count: Number of its queries alone.
        since: When the oldest of its readers was started.
        rests: Names of all nodes on which its queries rest, its own among them.
        words: Kind and words of its nodes that somebody has asked for.
    """

    bundle: FragmentBundle
    nodes: tuple[NodeShape, ...]
    readers: Sequence[Reader] = ()
    count: int = 0
    since: int = 0
    rests: frozenset[str] = frozenset()
    words: dict[str, tuple[NodeKind, str]] = field(default_factory=dict)


class NetworkIndex:
    """Nodes by name, with what changes of them noted for whoever keeps rows of them."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._noted: dict[str, None] = {}
        self._all_noted = True
        self._entries: dict[str, RunEntry] = {}
        self._shapes: dict[str, NodeShape] = {}
        self._readers: dict[str, dict[str, None]] = {}  # nodes by the node that they read
        self._resting: dict[str, int] = {}
        self._rest_on: dict[str, dict[str, None]] = {}  # runs by the nodes that they rest on
        self._changed: dict[str, None] | None = None  # None: any may have

    # --- what happens ------------------------------------------------------------------------

    def note(self, run: str) -> None:
        """Note that a run's plan or readers may have changed."""
        self._noted[run] = None
        if len(self._noted) > MOST_NOTED:
            self._noted.clear()
            self._all_noted = True

    def look(self) -> None:
        """Take up all that was noted."""
        noted = self._noted
        if self._all_noted:
            noted = dict.fromkeys((*self._entries, *self._runs.all()))
        self._noted, self._all_noted = {}, False
        if noted:
            self._take_up(tuple(noted))

    def take_changed(self) -> tuple[str, ...] | None:
        """Return the names of nodes that have come, gone or changed since it was last asked.

        None: any of them may have.
        """
        self.look()
        changed, self._changed = self._changed, {}
        return None if changed is None else tuple(changed)

    def _touch(self, names: Iterable[str]) -> None:
        if self._changed is not None:
            self._changed.update(dict.fromkeys(names))
            if len(self._changed) > MOST_NOTED:  # nobody has asked for long
                self._changed = None

    def _take_up(self, runs: Iterable[str]) -> None:
        rebuilt: dict[str, Sequence[Reader]] = {}
        names: dict[str, None] = {}
        for run in runs:
            readers = self._runs.shown(run)
            entry = self._entries.get(run)
            bundle = readers[0].bundle if readers else None
            if entry is not None and entry.bundle is bundle:
                self._count(entry, readers)
            elif entry is not None or bundle is not None:
                names.update(dict.fromkeys(self._replace(run, bundle)))
                rebuilt[run] = readers
        for run in (*rebuilt, *self._above(names)):
            self._rest(run)
        for run, readers in rebuilt.items():
            if run in self._entries:
                self._count(self._entries[run], readers)

    def _count(self, entry: RunEntry, readers: Sequence[Reader]) -> None:
        """Note the readers of a run whose plan is as before."""
        count = sum(not is_kept(reader) for reader in readers)
        self._add(entry.rests, count - entry.count)
        entry.readers, entry.count = readers, count
        entry.since = min((reader.created for reader in readers), default=0)
        self._touch(node.name for node in entry.nodes)

    def _add(self, nodes: Collection[str], count: int) -> None:
        if not count:
            return
        self._touch(nodes)
        for name in nodes:
            self._resting[name] = self._resting.get(name, 0) + count
            if not self._resting[name]:
                del self._resting[name]

    def _replace(self, run: str, bundle: FragmentBundle | None) -> tuple[str, ...]:
        """Put the nodes of another plan in place of a run's; return the names of all of them.

        What they rest on is found later.
        """
        before = self._entries.pop(run, None)
        gone = () if before is None else before.nodes
        if before is not None:
            self._set_rests(run, before, frozenset())
        for node in gone:
            del self._shapes[node.name]
            for read in node.reads:
                self._unread(read, node.name)
        come = () if bundle is None else shapes_of(bundle)
        if bundle is not None:
            self._entries[run] = RunEntry(bundle, come)
        for node in come:
            self._shapes[node.name] = node
            for read in node.reads:
                self._readers.setdefault(read, {})[node.name] = None
            self._touch(node.reads)
        names = tuple(dict.fromkeys(node.name for node in (*gone, *come)))
        self._touch(names)
        return names

    def _unread(self, read: str, reader: str) -> None:
        readers = self._readers[read]
        readers.pop(reader, None)
        if not readers:
            del self._readers[read]
        self._touch((read,))

    def _above(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the runs that read nodes of these names, directly or through other runs."""
        found: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            for reader in self._readers.get(waiting.pop(), ()):
                run = self._shapes[reader].run
                if run not in found:
                    found[run] = None
                    waiting.extend(node.name for node in self._entries[run].nodes)
        return tuple(found)

    def _rest(self, run: str) -> None:
        """Find again on which nodes the queries of a run rest."""
        entry = self._entries.get(run)
        if entry is None:
            return
        found: dict[str, None] = {}
        waiting = [node.name for node in entry.nodes[:1]]
        while waiting:
            name = waiting.pop()
            shape = self._shapes.get(name)
            if name not in found and shape is not None:
                found[name] = None
                waiting.extend(shape.reads)
        self._set_rests(run, entry, frozenset(found))

    def _set_rests(self, run: str, entry: RunEntry, rests: frozenset[str]) -> None:
        self._add(entry.rests - rests, -entry.count)
        self._add(rests - entry.rests, entry.count)
        for name in entry.rests - rests:
            self._rest_on[name].pop(run)
            if not self._rest_on[name]:
                del self._rest_on[name]
        for name in rests - entry.rests:
            self._rest_on.setdefault(name, {})[run] = None
        entry.rests = rests

    # --- what there is; call `look` first ----------------------------------------------------

    @property
    def query_count(self) -> int:
        """Number of queries that rest on nodes."""
        return sum(entry.count for entry in self._entries.values())

    def names(self) -> Collection[str]:
        """Return the names of all nodes."""
        return self._shapes.keys()

    def shape(self, name: str) -> NodeShape | None:
        """Return a node, or None."""
        return self._shapes.get(name)

    def entry(self, run: str) -> RunEntry | None:
        """Return a run, or None."""
        return self._entries.get(run)

    def words(self, name: str) -> tuple[NodeKind, str]:
        """Return the kind of a node that is there, and what it computes."""
        shape = self._shapes[name]
        entry = self._entries[shape.run]
        if name not in entry.words:
            entry.words[name] = described(entry.bundle, shape.fragment)
        return entry.words[name]

    def readers(self, name: str) -> tuple[str, ...]:
        """Return the nodes that read a node."""
        return tuple(self._readers.get(name, ()))

    def resting(self, name: str) -> int:
        """Return the number of queries that rest on a node."""
        return self._resting.get(name, 0)

    def queries_on(self, name: str) -> Iterator[Reader]:
        """Yield the queries that rest on a node, run after run."""
        for run in self._rest_on.get(name, ()):
            yield from self.queries(run)

    def queries(self, run: str) -> Iterator[Reader]:
        """Yield the queries of a run, without what keeps it for others."""
        entry = self._entries.get(run)
        if entry is not None:
            yield from (reader for reader in entry.readers if not is_kept(reader))

    def owner(self, run: str) -> Reader | None:
        """Return the query that a run was started for, or the oldest left; None: it is kept."""
        return next(self.queries(run), None)

    def since(self, run: str) -> int:
        """Return when the oldest reader of a run that is there was started."""
        return self._entries[run].since

    def counts(self) -> Mapping[str, int]:
        """Return the number of queries that rest on each node."""
        return self._resting


def is_kept(reader: Reader) -> bool:
    """Return whether a query only keeps a run for others: nobody has asked for its rows."""
    return reader.origin == Origin.NODE
