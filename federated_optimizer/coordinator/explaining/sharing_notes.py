"""EXPLAIN of what is run once: which queries read a run or a fragment, or why only one does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from federated_optimizer.coordinator.computations.added_operators import (
    added_operators,
    added_words,
)
from federated_optimizer.coordinator.computations.run_nodes import read_nodes
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.explaining.seen_texts import SeenTexts
from federated_optimizer.coordinator.grants.query_rights import may_read
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.shared_runs import SharedRuns
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights
from streamsql.wire.fragments import FragmentBundle

MAX_NAMES = 20

NOTHING_SHARED = (
    "Shares nothing yet: no running query is equal, or has rows at the base that it needs"
)


@dataclass(frozen=True, slots=True)
class Sharers:
    """Other queries with which something is run once.

    Attributes:
        names: Of those that whoever asks may see.
        hidden: Number of the others.
    """

    names: tuple[str, ...] = ()
    hidden: int = 0

    @property
    def count(self) -> int:
        """Number of all of them."""
        return len(self.names) + self.hidden

    def text(self, kind: str) -> str:
        """Return them as words; `kind` is what kind of queries they are."""
        counted = f"{self.count} {kind} {_queries(self.count)}"
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
        sharers: The other queries that rest on it.
        adds: The operators of the query over such rows, in words; empty: another line has them.
    """

    fragment: str
    node: str
    sharers: Sharers
    adds: str

    def __str__(self) -> str:
        """The node as a line of EXPLAIN."""
        adds = f"; {self.adds}" if self.adds else ""
        if not self.node:
            return f"Fragment {self.fragment} reads a node that is made for it{adds}"
        others = "which no other query reads yet"
        if self.sharers.count:
            others = f"shared with {self.sharers.count} {_queries(self.sharers.count)}"
        said = f"Fragment {self.fragment} reads node {self.node}, {others}{adds}"
        if not self.sharers.names:
            return said
        return f"{said}\n  node {self.node}: {self.sharers.text('other')}"

    def data(self) -> dict[str, object]:
        """Return the node as plain data."""
        shown = {"queries": self.sharers.count, "names": list(self.sharers.names)}
        return {"node": self.node, **shown, "adds": self.adds}


def _queries(count: int) -> str:
    return "query" if count == 1 else "queries"


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
        shared = f"Shared with {self.equal.text('equal')}"
        if self.equal == Sharers():
            shared = "No equal query runs" if self.nodes or self.fragments else NOTHING_SHARED
        parts = (f"Fragment {name} runs once with {s.text('other')}" for name, s in self.fragments)
        return "\n".join((shared, *map(str, self.nodes), *parts))

    def data(self) -> dict[str, object]:
        """Return the note as plain data."""
        fragments = {name: sharers.data() for name, sharers in self.fragments}
        nodes = {each.fragment: each.data() for each in self.nodes}
        return {"alone": self.alone, **self.equal.data(), "fragments": fragments, "nodes": nodes}


class Sharing:
    """Who shares what, as somebody may see it.

    Args:
        runs: All that sites run.
        rights: Of everybody.
        principal: Who asks.

    Attributes:
        texts: Of nodes, as far as whoever asks may see them.
    """

    def __init__(self, runs: SharedRuns, rights: ReadingRights, principal: Principal) -> None:
        self._runs = runs
        self._may_see = may_read(rights, principal)
        self.texts = SeenTexts(runs, rights, principal)

    def of_plan(self, planned: Planned) -> SharingNote:
        """Return the note on a query that would be started."""
        alike = self._runs.alike(planned)
        if alike is not None:
            return self._note(planned, self._runs.live(alike.run), alike.run)
        return self._note(planned, (), "")

    def of_running(self, query: RunningQuery) -> SharingNote:
        """Return the note on a query that runs."""
        return self._note(planned_of(query), self._runs.sharers(query), query.run, query)

    def only_running(self, bundle: FragmentBundle) -> FragmentBundle:
        """Return a bundle that reads runs alone that are there."""
        feeds = tuple(f for f in bundle.feeds if self._runs.leader(f.run) is not None)
        return msgspec.structs.replace(bundle, feeds=feeds)

    def _note(
        self,
        planned: Planned,
        equal: Sequence[RunningQuery],
        run: str,
        query: RunningQuery | None = None,
    ) -> SharingNote:
        nodes = self._nodes(planned.bundle, query)
        read = {node.fragment for node in nodes}
        parts: Mapping[str, Sequence[RunningQuery]] = self._runs.part_sharers(planned, run)
        fragments = tuple(
            (f, self._sharers(queries)) for f, queries in parts.items() if f not in read
        )
        return SharingNote(planned.alone, self._sharers(equal), fragments, nodes)

    def _nodes(self, bundle: FragmentBundle, query: RunningQuery | None) -> tuple[ReadNode, ...]:
        adds = f"adds {added_words(added_operators(bundle))}"
        self._runs.network.look()
        found: list[ReadNode] = []
        for feed, name in read_nodes(bundle):
            node = name if self._runs.leader(feed.run) is not None else ""
            said = "" if found else adds  # what the query adds is said once
            found.append(ReadNode(feed.fragment, node, self._resting(name, query), said))
        return tuple(found)

    def _resting(self, name: str, query: RunningQuery | None) -> Sharers:
        """Return the other queries that rest on a node."""
        resting = self._runs.network.queries_on(name)
        others = (q for q in resting if isinstance(q, RunningQuery) and q is not query)
        return self._sharers(tuple(others))

    def _sharers(self, queries: Sequence[RunningQuery]) -> Sharers:
        names = tuple(query.name for query in queries if self._may_see(query))
        return Sharers(names, len(queries) - len(names))
