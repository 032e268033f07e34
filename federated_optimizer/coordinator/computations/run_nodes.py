"""The nodes of one run: which of its fragments other runs may read, and what each is made of.

Fragments that nobody else can read (those of gateways for gateways, and of the base site for its
result) belong to the node that reads them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from federated_optimizer.coordinator.computations.node_words import kind_of_node, words_of
from federated_optimizer.coordinator.contract.network_model import NodeKind
from streamsql.algebra.operators import Plan, RemoteSource, Scan, walk_plan
from streamsql.wire.bundles.trimmed_bundles import is_trimmed
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A node as its bundle makes it.

    Attributes:
        name: "17" or "17/f1".
        fragment: Of the bundle; one of those with the result where there are several.
        reads: Names of the nodes that it reads, in the order of the plan.
        sources: Names of what it scans itself, likewise.
        sites: Where it and what belongs to it is computed.
    """

    name: str
    run: str
    fragment: str
    reads: tuple[str, ...]
    sources: tuple[str, ...]
    sites: tuple[str, ...]


def number_of(run: str) -> str:
    """Return the number of a run's node.

    Examples:
        >>> number_of("q17")
        '17'
    """
    return run[1:] if run[:1] == "q" and run[1:].isdecimal() else run


def node_name(run: str, fragment: Fragment) -> str:
    """Return the name of the node that a fragment of a run is."""
    return f"{number_of(run)}/{fragment.id}" if fragment.consumer else number_of(run)


def shapes_of(bundle: FragmentBundle) -> tuple[NodeShape, ...]:
    """Return the nodes of a bundle: its result first, then fragments that it runs itself."""
    return tuple(_Network(bundle).shapes())


def read_nodes(bundle: FragmentBundle) -> tuple[tuple[Feed, str], ...]:
    """Return the readings of other runs, with the name of the node that each reads."""
    network = _Network(bundle)
    return tuple((feed, str(network.resolve(feed.fragment))) for feed in bundle.feeds)


NOTHING_LEFT = "nothing any more: others read what is delivered for it"
"""What a run computes of which others read only what its gateways deliver."""


def described(bundle: FragmentBundle, fragment: str) -> tuple[NodeKind, str]:
    """Return the kind of a node of a bundle, and what it computes in words."""
    if not bundle.fragment(fragment).consumer and is_trimmed(bundle):
        return NodeKind.ROWS, NOTHING_LEFT
    network = _Network(bundle)
    plan = bundle.fragment(fragment).plan
    return kind_of_node(plan, network.resolve), words_of(plan, network.resolve)


class _Network:
    """A bundle as nodes."""

    def __init__(self, bundle: FragmentBundle) -> None:
        self._bundle = bundle
        self._feeds = {feed.fragment: feed for feed in bundle.feeds}
        self._own = {fragment.id for fragment in bundle.own}
        self._by_id = {fragment.id: fragment for fragment in bundle.fragments}

    def shapes(self) -> Iterator[NodeShape]:
        results = [fragment for fragment in self._bundle.own if not fragment.consumer]
        if results:
            yield self._shape(results)
        for fragment in self._bundle.own:
            if self._is_leaf(fragment):
                yield self._shape([fragment])

    def resolve(self, name: str) -> Plan | str:
        """Return the node that a fragment is or is read from, or the plan of one that is none."""
        feed = self._feeds.get(name)
        fragment = self._by_id.get(name)
        if feed is not None:
            # A result that is fed has no other name there than its run's.
            is_result = fragment is not None and fragment.engine == Engine.BASE
            return number_of(feed.run) if is_result else f"{number_of(feed.run)}/{feed.source}"
        if fragment is None:
            return name
        return node_name(self._bundle.query, fragment) if self._is_leaf(fragment) else fragment.plan

    def _is_leaf(self, fragment: Fragment) -> bool:
        if not fragment.consumer or fragment.engine == Engine.BASE or fragment.id not in self._own:
            return False
        readers = map(self._by_id.__getitem__, self._bundle.readers(fragment.id))
        return any(reader.engine == Engine.BASE for reader in readers)

    def _shape(self, fragments: list[Fragment]) -> NodeShape:
        first = fragments[0]
        reads: dict[str, None] = {}
        sources: dict[str, None] = {}
        sites: dict[str, None] = {}
        seen: set[str] = set()
        waiting = fragments[::-1]
        while waiting:
            fragment = waiting.pop()
            if fragment.id in seen:
                continue
            seen.add(fragment.id)
            sites.update(dict.fromkeys(fragment.sites))
            for node in walk_plan(fragment.plan):
                if isinstance(node, Scan):
                    sources[node.source] = None
                elif isinstance(node, RemoteSource):
                    if isinstance(name := self.resolve(node.fragment), str):
                        reads[name] = None
                    else:
                        waiting.append(self._by_id[node.fragment])
        name = node_name(self._bundle.query, first)
        run = self._bundle.query
        return NodeShape(name, run, first.id, tuple(reads), tuple(sources), tuple(sites))
