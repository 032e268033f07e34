"""For benchmarks and laws: a network of runs without sites, by the rules of registration.

It counts who reads what: a run goes when no query and no other run reads it, and is trimmed where
others read only what it receives. A node that is widened is deployed again under its name, and all
that reads it after it.
"""

from dataclasses import dataclass, field, replace

import msgspec

from federated_optimizer.network.run_ages import age_of, is_older
from federated_optimizer.network.shareable import fragment_prints, may_give, why_alone
from federated_optimizer.registering.registration import register
from federated_optimizer.registering.registration_terms import Planning, Registration, Sharing
from federated_optimizer.sharing.computation_index import ComputationIndex
from federated_optimizer.sharing.run_offers import offers_of
from federated_optimizer.testing_bundles import Arrived, Readings, received
from streamsql.algebra.operators import Plan
from streamsql.binder import BoundQuery
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.wire.bundles.trimmed_bundles import is_trimmed, trimmed
from streamsql.wire.fragments import Feed, FragmentBundle


@dataclass(slots=True)
class NetworkRun:
    """A run.

    Attributes:
        bundle: As deployed last.
        logical: What its result is, over sources.
        bound: The query that it was made for; a node's plan is `logical`.
        queries: That read its result.
        is_node: True if it was made for others to read.
    """

    bundle: FragmentBundle
    logical: Plan
    bound: BoundQuery
    queries: set[str] = field(default_factory=set)
    is_node: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """The work of a registration, of a deregistration or of a move.

    Attributes:
        query: Its name.
        deploy: Bundles, in this order; one takes the place of what runs under its name, which goes
            on where it is trimmed to the same version.
        withdraw: Runs that end, readers before those that they read.
        registration: Of a new query.
    """

    query: str
    deploy: tuple[FragmentBundle, ...] = ()
    withdraw: tuple[str, ...] = ()
    registration: Registration | None = None


class Network:
    """Runs, and the queries that read them.

    Attributes:
        runs: By name.
        reads: The run of each query.
        sharing: The rules, with the index.
    """

    def __init__(self, planning: Planning, sharing: Sharing | None = None) -> None:
        self.runs: dict[str, NetworkRun] = {}
        self.reads: dict[str, str] = {}
        self.sharing = sharing or Sharing(ComputationIndex())
        self._planning = planning
        self._count = 0
        self._prints: dict[str, dict[str, str]] = {}  # fragments by fingerprint and run
        self._printed: dict[str, list[str]] = {}

    def register(self, bound: BoundQuery, text: str = "") -> Change:
        """Add a query; its name is that of its run, or of the next one if it reads another's."""
        planning = replace(self._planning, text=text)
        found = register(bound, self.sharing, planning, self.next_run)
        if found.equal:
            query = self.next_run()
            self.runs[found.equal].queries.add(query)
            self.reads[query] = found.equal
            return Change(query, registration=found)
        deploy: list[FragmentBundle] = []
        given: dict[tuple[str, int], int] = {}
        # One that counts from its own start on reads no node, so none is made for it.
        for node in () if why_alone(found.bundle) else found.nodes:
            bundle = self._fed(self._numbered(node.bundle, given))
            self._enter(bundle, node.plan, bound, is_node=True)
            deploy.append(bundle)
            deploy += self._replanned_after(node.bundle.query) if node.widens else ()
        bundle = self._fed(self._numbered(found.bundle, given))
        self._enter(bundle, found.logical, bound)
        self.runs[bundle.query].queries.add(bundle.query)
        self.reads[bundle.query] = bundle.query
        return Change(bundle.query, (*deploy, bundle), registration=found)

    def deregister(self, query: str) -> Change:
        """Remove a query, and the runs that nobody reads any more."""
        self.runs[self.reads.pop(query)].queries.discard(query)
        return Change(query, *self._left())

    def elsewhere(self, bundle: FragmentBundle, left: str) -> FragmentBundle:
        """Return a bundle as a new run of the queries of another one, which ends if it can."""
        run = self.next_run()
        bundle = msgspec.structs.replace(bundle, query=run, version=1)
        return self._fed(bundle, but="" if left in self.parts_read() else left)

    def move(self, run: str, bundle: FragmentBundle) -> Change:
        """Let the queries of a run read a new one; what they leave is trimmed, or ends."""
        old = self.runs[run]
        self._enter(bundle, old.logical, old.bound)
        self.runs[bundle.query].queries |= old.queries
        self.reads |= dict.fromkeys(old.queries, bundle.query)
        old.queries.clear()
        deploy, gone = self._left()
        return Change(bundle.query, (bundle, *deploy), gone)

    def _left(self) -> tuple[tuple[FragmentBundle, ...], tuple[str, ...]]:
        """End or trim what nobody needs; return what is deployed for that, and what ends."""
        gone: list[str] = []
        deploy: dict[str, FragmentBundle] = {}
        while unread := self._unread():
            for name in unread:
                old, read = self.runs[name], self.parts_read().get(name)
                rest = trimmed(old.bundle, read) if read else None
                if rest is not None:
                    self._enter(rest, old.logical, old.bound, is_node=True)
                    deploy[name] = rest
                    continue
                left = sorted(self.readers(name) - set(unread))
                del self.runs[name]
                self._forget_prints(name)
                self.sharing.index.remove(name)
                gone.append(name)
                deploy |= {b.query: b for each in left for b in self._replanned_from(each)}
        return tuple(b for run, b in deploy.items() if run in self.runs), tuple(gone)

    def result(self, query: str) -> FragmentBundle:
        """Return the bundle whose result a query shows."""
        return self.runs[self.reads[query]].bundle

    def readers(self, run: str) -> set[str]:
        """Return the runs that read rows of a run."""
        return {
            name
            for name, other in self.runs.items()
            if any(feed.run == run for feed in other.bundle.feeds)
        }

    def parts_read(self) -> dict[str, set[str]]:
        """Return the fragments of runs that others read, by run."""
        found: dict[str, set[str]] = {}
        for other in self.runs.values():
            for feed in other.bundle.feeds:
                found.setdefault(feed.run, set()).add(feed.source)
        return found

    def _unread(self) -> list[str]:
        """Return the runs of which nobody needs all that they have."""
        read = self.parts_read()
        return [
            name
            for name, run in self.runs.items()
            if not run.queries and not _is_needed(run.bundle, read.get(name, set()))
        ]

    def next_run(self) -> str:
        """Return a name of a run that is greater than all before."""
        self._count += 1
        return f"q{self._count}"

    def _numbered(
        self, bundle: FragmentBundle, given: dict[tuple[str, int], int]
    ) -> FragmentBundle:
        """Return a bundle with its version, and those of what it reads, and note the former.

        A node may have been planned again since, because another one that it reads was widened.

        Args:
            bundle: As it was planned.
            given: Versions by run and the version that was planned.
        """
        run, planned = bundle.query, bundle.version
        old = self.runs.get(run)
        version = planned if old is None else max(planned, old.bundle.version + 1)
        given[run, planned] = version
        feeds = (
            msgspec.structs.replace(f, version=given.get((f.run, f.version), f.version))
            for f in bundle.feeds
        )
        return msgspec.structs.replace(bundle, version=version, feeds=tuple(feeds))

    def _enter(
        self, bundle: FragmentBundle, logical: Plan, bound: BoundQuery, *, is_node: bool = False
    ) -> None:
        name = bundle.query
        queries = self.runs[name].queries if name in self.runs else set[str]()
        self.runs[name] = NetworkRun(bundle, logical, bound, queries, is_node)
        self.sharing.index.remove(name)
        self._forget_prints(name)
        if bound.shared and not why_alone(bundle):
            self._note_prints(bundle)
            known, reads = self._planning.statistics, bound.reads
            for offer in offers_of(bundle, logical, reads=reads, is_node=is_node, statistics=known):
                self.sharing.index.add(offer)

    def _replanned_from(self, run: str) -> list[FragmentBundle]:
        """Plan a run again, and all that reads it after it; return the bundles."""
        old = self.runs[run]
        bundle = self._replanned(run, old)
        self._enter(bundle, old.logical, old.bound, is_node=old.is_node)
        return [bundle, *self._replanned_after(run)]

    def _replanned_after(self, run: str) -> list[FragmentBundle]:
        """Plan all that reads a run again, each after what it reads; return the bundles."""
        changed = {run}
        deploy: list[FragmentBundle] = []
        for name in sorted(self.runs, key=age_of):
            old = self.runs[name]
            if name == run or not any(feed.run in changed for feed in old.bundle.feeds):
                continue
            changed.add(name)
            bundle = self._replanned(name, old)
            self._enter(bundle, old.logical, old.bound, is_node=old.is_node)
            deploy.append(bundle)
        return deploy

    def _replanned(self, name: str, old: NetworkRun) -> FragmentBundle:
        self.sharing.index.remove(name)
        sharing = replace(
            self.sharing,
            allowed=lambda offer: is_older(offer.run, name) and self.sharing.allowed(offer),
            makes_nodes=False,
        )
        planning = replace(
            self._planning,
            version=old.bundle.version + 1,
            text=old.bundle.text,
            replanned=True,
            reads=old.bundle.results_read,
        )
        bound = old.bound
        if old.is_node:
            bound = replace(bound, plan=old.logical, schema=old.logical.schema)
        found = register(bound, sharing, planning, lambda: name)
        return self._fed(found.bundle)

    def _fed(self, bundle: FragmentBundle, but: str = "") -> FragmentBundle:
        """Return a bundle whose equal fragments are read where older runs receive them.

        `but` is a run of which nothing more is read.
        """
        if why_alone(bundle):
            return msgspec.structs.replace(bundle, feeds=())
        # A node that was widened for it has changed the versions of what reads the node.
        feeds = [
            self._rooted(f) for f in bundle.feeds if self.runs[f.run].bundle.version == f.version
        ]
        bundle = msgspec.structs.replace(bundle, feeds=tuple(feeds))
        own = {fragment.id for fragment in bundle.own}
        for fragment, printed in fragment_prints(bundle).items():
            is_result = not bundle.fragment(fragment).consumer
            if fragment not in own or is_result:
                continue
            owner = self._owner(printed, bundle.query, but)
            if owner is not None:
                feeds.append(Feed(fragment, owner[0].query, owner[0].version, owner[1]))
        return msgspec.structs.replace(bundle, feeds=tuple(feeds))

    def _rooted(self, feed: Feed) -> Feed:
        """Return the reading of the run that receives the rows: one that is fed hands nothing on.

        What a new node delivers is offered to the query that it is made for before it is known
        that an older run receives the same rows.
        """
        owner = self.runs[feed.run].bundle
        above = next((f for f in owner.feeds if f.fragment == feed.source), None)
        if above is None:
            return feed
        return self._rooted(Feed(feed.fragment, above.run, above.version, above.source))

    def _owner(self, printed: str, run: str, but: str) -> tuple[FragmentBundle, str] | None:
        for name, fragment in self._prints.get(printed, {}).items():
            if name != but and is_older(name, run):
                return self.runs[name].bundle, fragment
        return None

    def _note_prints(self, bundle: FragmentBundle) -> None:
        """Note the fragments that a run has for others."""
        own = {fragment.id for fragment in bundle.own}
        for fragment, printed in fragment_prints(bundle).items():
            if fragment in own and may_give(bundle.fragment(fragment)):
                self._prints.setdefault(printed, {})[bundle.query] = fragment
                self._printed.setdefault(bundle.query, []).append(printed)

    def _forget_prints(self, run: str) -> None:
        for printed in self._printed.pop(run, ()):
            self._prints[printed].pop(run, None)


def _is_needed(bundle: FragmentBundle, read: set[str]) -> bool:
    """Return whether all of a run is needed of which fragments are read."""
    if any(not bundle.fragment(name).consumer for name in read):
        return True
    return is_trimmed(bundle) and read == {f.id for f in bundle.fragments if f.consumer}


def answers(network: Network, readings: Readings, now: int) -> dict[str, Delta]:
    """Return the result of every query: each run from scratch over what it and others receive."""
    results: dict[str, Delta] = {}
    arrived: dict[str, Arrived] = {}
    for name in sorted(network.runs, key=age_of):
        bundle = network.runs[name].bundle
        fed = {feed.fragment: _sent(arrived, network, feed) for feed in bundle.feeds}
        results[name], arrived[name] = received(bundle, readings, now, fed)
    return {query: results[run] for query, run in network.reads.items()}


def _sent(arrived: dict[str, Arrived], network: Network, feed: Feed) -> dict[str, list[Row]]:
    """Return the rows of a feed by site.

    Raises:
        AssertionError: The other run has another version, or does not run the fragment.
    """
    owner = network.runs[feed.run].bundle
    assert owner.version == feed.version, (owner.query, owner.version, feed)  # noqa: S101
    assert feed.source not in {f.fragment for f in owner.feeds}  # noqa: S101
    rows = arrived[feed.run]
    return {site: found for (fragment, site), found in rows.items() if fragment == feed.source}
