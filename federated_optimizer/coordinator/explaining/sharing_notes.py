"""EXPLAIN of what is run once: which queries read a run or a fragment, or why only one does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from federated_optimizer.coordinator.computations.run_nodes import number_of
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.shared_runs import SharedRuns
from streamsql.algebra.expressions import conjuncts
from streamsql.algebra.operators import Filter, Project, walk_plan
from streamsql.wire.fragments import Engine, FragmentBundle

MAX_NAMES = 20


@dataclass(frozen=True, slots=True)
class Sharers:
    """Other queries with which something is run once.

    Attributes:
        names: Of those that whoever asks may see.
        hidden: Number of the others.
    """

    names: tuple[str, ...] = ()
    hidden: int = 0

    def text(self, kind: str) -> str:
        """Return them as words; `kind` is what kind of queries they are."""
        count = len(self.names) + self.hidden
        counted = f"{count} {kind} {'query' if count == 1 else 'queries'}"
        names = ", ".join(self.names[:MAX_NAMES]) + ", …" * (len(self.names) > MAX_NAMES)
        hidden = f"{counted}, {self.hidden} of which you may not see" if self.hidden else counted
        return f"{hidden}: {names}" if names else hidden

    def data(self) -> dict[str, object]:
        """Return them as plain data."""
        return {"queries": list(self.names), "hidden": self.hidden}


@dataclass(frozen=True, slots=True)
class ReadNode:
    """A node whose rows a query reads.

    Attributes:
        fragment: That stands for it.
        node: Its number; empty: it would be made for the query.
        queries: Number of the other queries that rest on it.
        adds: The operators of the query over such rows, in words.
    """

    fragment: str
    node: str
    queries: int
    adds: str

    def __str__(self) -> str:
        """The node as a line of EXPLAIN."""
        if not self.node:
            return f"Fragment {self.fragment} reads a node that is made for it; {self.adds}"
        others = f"{self.queries} {'query' if self.queries == 1 else 'queries'}"
        return f"Fragment {self.fragment} reads node {self.node}, shared with {others}; {self.adds}"


@dataclass(frozen=True, slots=True)
class SharingNote:
    """Notes on the work that sites do once for a query and others.

    Attributes:
        alone: Why nothing is, in words; else empty.
        equal: The other queries of its run.
        fragments: Those of other runs with an equal fragment, by fragment.
        nodes: That it reads.
    """

    alone: str = ""
    equal: Sharers = Sharers()
    fragments: tuple[tuple[str, Sharers], ...] = ()
    nodes: tuple[ReadNode, ...] = ()

    def __str__(self) -> str:
        """The note as lines of EXPLAIN."""
        if self.alone:
            return f"Not shared with equal queries: {self.alone}"
        shared = "Shared with equal queries; no other one runs"
        if self.equal != Sharers():
            shared = f"Shared with {self.equal.text('equal')}"
        parts = (f"Fragment {name} runs once with {s.text('other')}" for name, s in self.fragments)
        return "\n".join((shared, *map(str, self.nodes), *parts))

    def data(self) -> dict[str, object]:
        """Return the note as plain data."""
        fragments = {name: sharers.data() for name, sharers in self.fragments}
        nodes = {
            each.fragment: {"node": each.node, "queries": each.queries, "adds": each.adds}
            for each in self.nodes
        }
        return {"alone": self.alone, **self.equal.data(), "fragments": fragments, "nodes": nodes}


class Sharing:
    """Who shares what, as somebody may see it.

    Args:
        runs: All that sites run.
        seen: The queries that whoever asks may see.
    """

    def __init__(self, runs: SharedRuns, seen: Iterable[RunningQuery]) -> None:
        self._runs = runs
        self._seen = frozenset(query.id for query in seen)

    def of_plan(self, planned: Planned) -> SharingNote:
        """Return the note on a query that would be started."""
        alike = self._runs.alike(planned)
        if alike is not None:
            return self._note(planned, self._runs.live(alike.run), alike.run)
        return self._note(planned, (), "")

    def of_running(self, query: RunningQuery) -> SharingNote:
        """Return the note on a query that runs."""
        return self._note(planned_of(query), self._runs.sharers(query), query.run)

    def _note(self, planned: Planned, equal: Sequence[RunningQuery], run: str) -> SharingNote:
        nodes = self._nodes(planned.bundle, run)
        read = {node.fragment for node in nodes}
        parts: Mapping[str, Sequence[RunningQuery]] = self._runs.part_sharers(planned, run)
        fragments = tuple(
            (f, self._sharers(queries)) for f, queries in parts.items() if f not in read
        )
        return SharingNote(planned.alone, self._sharers(equal), fragments, nodes)

    def _nodes(self, bundle: FragmentBundle, run: str) -> tuple[ReadNode, ...]:
        adds = added_words(bundle)
        found = []
        for feed in bundle.feeds:
            if bundle.fragment(feed.fragment).engine == Engine.BASE:
                is_there = self._runs.leader(feed.run) is not None
                node = number_of(feed.run) if is_there else ""
                count = len(self._runs.resting_queries(feed.run, but=run))
                found.append(ReadNode(feed.fragment, node, count, adds))
        return tuple(found)

    def _sharers(self, queries: Sequence[RunningQuery]) -> Sharers:
        names = tuple(query.name for query in queries if query.id in self._seen)
        return Sharers(names, len(queries) - len(names))


def added_words(bundle: FragmentBundle) -> str:
    """Return the operators that a bundle adds to what it reads of others, in words."""
    nodes = [node for fragment in bundle.own for node in walk_plan(fragment.plan)]
    filters = sum(len(conjuncts(n.predicate)) for n in nodes if isinstance(n, Filter))
    others = sum(bool(n.inputs) and not isinstance(n, Filter | Project) for n in nodes)
    words = [
        f"{count} {kind}{'' if count == 1 else 's'}"
        for count, kind in ((filters, "filter"), (others, "operator"))
        if count
    ]
    return "adds " + (" and ".join(words) or "nothing")
