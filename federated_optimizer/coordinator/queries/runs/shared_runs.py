"""Runs and the queries that read them: sites compute a bundle once for all equal queries.

A run is named after the first query that it was deployed for. The name stays when that query is
gone: numbers of queries are never given twice.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from federated_optimizer.coordinator.computations.network_index import NetworkIndex
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.planned_queries import Planned, planned_of
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.answer_index import AnswerIndex
from federated_optimizer.coordinator.queries.runs.doubtful_feeds import DoubtfulFeeds
from federated_optimizer.coordinator.queries.runs.fed_runs import FedRuns
from federated_optimizer.coordinator.queries.runs.newest_runs import NewestRuns
from federated_optimizer.coordinator.queries.runs.queries_by_text import QueriesByText
from federated_optimizer.coordinator.queries.runs.run_reads import RunReads
from federated_optimizer.network.run_ages import age_of
from federated_optimizer.network.shareable import (
    fingerprint,
    fragment_prints,
    may_give,
    run_or_read,
)
from streamsql.algebra.operators import RemoteSource
from streamsql.wire.bundles.closure_prints import closure_print, is_kept
from streamsql.wire.fragments import Engine, Feed, FragmentBundle
from streamsql.wire.site_messages import SiteRole

K = TypeVar("K")
T = TypeVar("T")

_ROLES = {Engine.GATEWAY: SiteRole.GATEWAY, Engine.BASE: SiteRole.BASE}
_NOTHING: Mapping[str, Feed] = {}


class SharedRuns:
    """Index of the running queries by their run, and of the runs by what they compute.

    Args:
        host: The coordinator. A query that it has stopped itself reads nothing any more.

    Attributes:
        changes: Grows whenever somebody begins or ends to read a run, or a run begins to fail or
            is well again: only then other runs may be read than are.
        answers: What queries show of their runs.
        entered: Runs that somebody has begun to read since this was last emptied.
        touched: Runs whose bundle or readers may have changed, until somebody empties it.
        network: Which node of what runs rests on which.
        newest: The newest runs that read a source.
        fed: Runs by the runs whose rows they read.
        doubtful: Runs that may be fed otherwise than they are.
        by_text: The queries by their text.
        reads: The runs for which the coordinator has work of its own.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self.changes = 0
        self.entered: set[str] = set()
        self.touched: dict[str, None] = {}
        self._readers: dict[str, dict[str, RunningQuery]] = {}
        self._live: dict[str, dict[str, RunningQuery]] = {}  # those that we have not stopped
        self.answers = AnswerIndex(self._readers)
        self._alike: dict[str, dict[str, None]] = {}  # runs by fingerprint
        self._prints: dict[str, str] = {}
        self._parts: dict[str, dict[str, str]] = {}  # fragments by fingerprint and run
        self._given: dict[str, dict[str, str]] = {}  # those that their run gives to others
        self._part_prints: dict[str, dict[str, str]] = {}  # fingerprints by run and fragment
        self._tried: dict[str, RunningQuery] = {}
        self.fed = FedRuns()
        self.doubtful = DoubtfulFeeds(self._parts, self._given, self._part_prints)
        self.network = NetworkIndex(self)
        self.newest = NewestRuns(self)
        self.by_text = QueriesByText()
        self.reads = RunReads(host)

    def names(self) -> Collection[str]:
        """Return the runs, in any order."""
        return self._readers.keys()

    def all(self) -> tuple[str, ...]:
        """Return the runs, oldest first."""
        return tuple(sorted(self._readers, key=age_of))

    def everyone(self) -> tuple[RunningQuery, ...]:
        """Return all queries, and what reads runs on trial: all that sites compute for us."""
        return tuple(q for readers in self._readers.values() for q in readers.values())

    def leaders(self, runs: Iterable[str] | None = None) -> Iterator[RunningQuery]:
        """Yield a query of each run, or of some, that knows all that has come of it."""
        return filter(None, map(self.leader, self._readers if runs is None else runs))

    def sites(self) -> dict[str, SiteRole]:
        """Return the gateways and base sites that run something for us."""
        return {
            site: _ROLES[fragment.engine]
            for run in self._readers
            if (leader := self.leader(run)) is not None
            for fragment in leader.bundle.fragments
            if fragment.engine in _ROLES
            for site in fragment.sites
        }

    def tried(self) -> tuple[RunningQuery, ...]:
        """Return what reads runs that are only tried: nobody sees these answers yet."""
        return tuple(self._tried.values())

    def is_tried(self, query: RunningQuery) -> bool:
        """Whether a query reads a run on trial only."""
        return query.id in self._tried

    def try_out(self, trial: RunningQuery) -> None:
        """Let a run be read on trial: it is filled beside another one that it may follow."""
        self._tried[trial.id] = trial
        self.enter(trial)

    def end_trial(self, trial: RunningQuery) -> None:
        """Note that the trial of a run is over, whatever has come of it."""
        self.leave(trial)
        trial.result.leave()
        del self._tried[trial.id]
        self.network.note(trial.run)

    def readers(self, run: str) -> tuple[RunningQuery, ...]:
        """Return the queries of a run, those that were stopped for a reason of ours too."""
        return tuple(self._readers.get(run, {}).values())

    def live(self, run: str) -> tuple[RunningQuery, ...]:
        """Return the queries that read a run."""
        return tuple(self._live.get(run, {}).values())

    def shown(self, run: str) -> tuple[RunningQuery, ...]:
        """Return what reads a run, without what is only tried."""
        return tuple(query for query in self.live(run) if query.id not in self._tried)

    def leader(self, run: str) -> RunningQuery | None:
        """Return a query that knows all that has come of a run, or None."""
        return next(iter(self._live.get(run, {}).values()), None)

    def alike(self, planned: Planned) -> RunningQuery | None:
        """Return a query of the oldest run that computes what is planned; None: there is none.

        No run counts that a site has stopped, nor one that publishes no result.
        """
        if planned.alone:
            return None
        name = fingerprint(planned.bundle)
        return self._oldest((*self._published(name), *self._with_result(planned.bundle)))

    def _published(self, name: str) -> Iterator[str]:
        for run in self._alike.get(name, ()):
            leader = self.leader(run)
            if leader is not None and not leader.bundle.silent:
                yield run

    def _with_result(self, bundle: FragmentBundle) -> Iterator[str]:
        """Yield the runs that publish what a bundle only hands on."""
        results = [fragment for fragment in bundle.fragments if not fragment.consumer]
        if len(results) != 1 or not isinstance(results[0].plan, RemoteSource):
            return
        copy = bundle.fragment(results[0].plan.fragment)
        if copy.sites != results[0].sites or not is_kept(copy):
            return
        for run in self._given.get(closure_print(bundle, copy.id), ()):
            leader = self.leader(run)
            if leader is None or leader.bundle.silent:
                continue
            theirs = leader.bundle
            shown = (theirs.schema, theirs.emit, theirs.units)
            if shown == (bundle.schema, bundle.emit, bundle.units):
                yield run

    def older_equal(self, run: str) -> RunningQuery | None:
        """Return a query of the oldest run that computes what a run does; None: it is that run.

        There are two where one was on trial when a query began to read the other, or on trial, too.
        """
        name = self._prints.get(run)
        found = None if name is None else self._oldest(self._published(name))
        return None if found is None or found.run == run else found

    def _oldest(self, runs: Iterable[str]) -> RunningQuery | None:
        # Nobody builds on a run that is only tried, nor on a node that cannot be planned again.
        for query in filter(None, map(self.leader, sorted(runs, key=age_of))):
            is_outdated = query.origin == Origin.NODE and query.outdated
            if not (query.has_failed or query.id in self._tried or is_outdated):
                return query
        return None

    def feeds_of(
        self, bundle: FragmentBundle, run: str, given: Mapping[str, Feed] = _NOTHING
    ) -> tuple[Feed, ...]:
        """Return the fragments of a bundle that older runs than a named one have at their sites.

        Args:
            bundle: One that may be shared.
            run: The name that it will have.
            given: By closure print what runs give that are about to be deployed.
        """
        return self._feeds(bundle, fragment_prints(bundle), run, given=given)

    def _feeds(
        self,
        bundle: FragmentBundle,
        prints: Mapping[str, str],
        run: str,
        but: Collection[str] = (),
        given: Mapping[str, Feed] = _NOTHING,
    ) -> tuple[Feed, ...]:
        """Return the readings of others, from the result down: what is read needs nothing below."""
        found: dict[str, Feed | None] = {}
        waiting = [fragment for fragment in bundle.fragments if not fragment.consumer]
        while waiting:
            for name in waiting.pop().inputs:
                if name in found:
                    continue
                printed = prints.get(name, "")
                feed = self._feed(printed, run, but) or given.get(printed)
                found[name] = feed and msgspec.structs.replace(feed, fragment=name)
                if feed is None:
                    waiting.append(bundle.fragment(name))
        return tuple(sorted(filter(None, found.values()), key=lambda feed: feed.fragment))

    def _feed(self, printed: str, run: str, but: Collection[str]) -> Feed | None:
        given = self._given.get(printed, {})
        older = (other for other in given if other not in but and age_of(other) < age_of(run))
        owner = self._oldest(older)
        if owner is None:
            return None
        return Feed("", owner.run, owner.bundle.version, given[owner.run])

    def gives(self, printed: str) -> bool:
        """Whether a run has what a closure print names for others."""
        return self._oldest(self._given.get(printed, ())) is not None

    def bundle_for(self, planned: Planned, run: str) -> FragmentBundle:
        """Return the bundle of a run that computes what is planned, or the planned one as `run`."""
        alike = self.alike(planned)
        return self.named(planned, run) if alike is None else alike.bundle

    def named(
        self,
        planned: Planned,
        run: str,
        given: Mapping[str, Feed] = _NOTHING,
        but: Collection[str] = (),
    ) -> FragmentBundle:
        """Return the planned bundle as `run`, which reads what others have, `but` some runs."""
        bundle = planned.bundle
        prints = {} if planned.alone else fragment_prints(bundle)
        feeds = self._feeds(bundle, prints, run, but, given)
        return msgspec.structs.replace(bundle, query=run, feeds=feeds)

    def fed_but_by(self, planned: Planned, run: str, left: str) -> FragmentBundle:
        """Return the planned bundle as `run`, which reads nothing of the run that is left."""
        return self.named(planned, run, but=(left,))

    def fed_otherwise(self, run: str) -> dict[str, Planned]:
        """Return new plans of a run's queries if it has to read other runs than it does."""
        leader = self.leader(run)
        # On trial it runs everything itself that only the run has which it follows.
        if leader is None or leader.has_failed or leader.id in self._tried:
            return {}
        bundle = leader.bundle
        feeds = self._feeds(bundle, self._part_prints.get(run, {}), run)
        if set(feeds) == set(bundle.feeds):
            return {}
        newer = msgspec.structs.replace(bundle, version=bundle.version + 1)
        return {query.id: replace(planned_of(query), bundle=newer) for query in self.live(run)}

    def sharers(self, query: RunningQuery) -> tuple[RunningQuery, ...]:
        """Return the other queries that read the run of a query."""
        return tuple(other for other in self.seen(query.run) if other is not query)

    def seen(self, run: str) -> Iterator[RunningQuery]:
        """Yield the queries of a run that somebody has asked for."""
        for query in self._live.get(run, {}).values():
            if query.id not in self._tried and query.origin != Origin.NODE:
                yield query

    def fed_by(self, run: str) -> tuple[RunningQuery, ...]:
        """Return a query of each other run that reads rows of a run at its sites."""
        readers = sorted(self.fed.readers(run), key=age_of)
        return tuple(filter(None, map(self.leader, readers)))

    def reads_results(self, run: str) -> bool:
        """Whether a run reads results of others, and not only what gateways and tables deliver."""
        leader = self.leader(run)
        if leader is None:
            return False
        bundle = leader.bundle
        return any(bundle.fragment(f.fragment).engine == Engine.BASE for f in bundle.feeds)

    def resting_on(self, run: str) -> set[str]:
        """Return a run, and those that read it or read one of these."""
        return self.fed.resting_on(run)

    def part_sharers(self, planned: Planned, run: str) -> dict[str, tuple[RunningQuery, ...]]:
        """Return, by fragment, the queries of other runs that read equal fragments."""
        found = {}
        bundle = planned.bundle
        near = run_or_read(bundle)
        for name, printed in {} if planned.alone else fragment_prints(bundle).items():
            if name not in near:
                continue  # below a fragment that is read
            copied = {} if bundle.fragment(name).consumer else self._given.get(printed, {})
            # Two results of other names are equal by chance; neither run reads the other.
            runs = [other for other in self._parts.get(printed, {}) if other not in {run, *copied}]
            queries = tuple(query for other in runs for query in self.seen(other))
            if queries:
                found[name] = queries
        return found

    def enter(self, query: RunningQuery) -> None:
        """Note that a query reads the run that its bundle names."""
        self.changes += 1
        run, leader = query.run, self.leader(query.run)
        self.entered.add(run)
        self.touched[run] = None
        self._readers.setdefault(run, {})[query.id] = query
        if self._host not in query.problems:
            self._live.setdefault(run, {})[query.id] = query
            self.reads.put(run, query.bundle)
        self.answers.enter(query)
        self.fed.put(run, query.bundle.feeds)
        self.network.note(run)
        if query.id not in self._tried:
            self.by_text.add(query)
        if run not in self._prints and not query.alone:
            name = self._prints[run] = fingerprint(query.bundle)
            self._alike.setdefault(name, {})[run] = None
            parts = self._part_prints[run] = fragment_prints(query.bundle)
            own = {fragment.id: fragment for fragment in query.bundle.own}
            for fragment, printed in parts.items():
                self._parts.setdefault(printed, {}).setdefault(run, fragment)
                if fragment in own and may_give(own[fragment]):
                    self._given.setdefault(printed, {}).setdefault(run, fragment)
        if self.leader(run) is not leader:
            self.doubtful.note(run)

    def note(self, run: str) -> None:
        """Note that a run has begun to fail, or is well again."""
        self.changes += 1
        self.fed.note(run)
        self.doubtful.note(run)

    def is_stopped(self, query: RunningQuery) -> bool:
        """Return whether a query was stopped by us: it reads no run and is only listed."""
        return query.id not in self._live.get(query.run, {})

    def stopped(self, query: RunningQuery) -> None:
        """Note that we have stopped a query: it is listed, and reads its run no more."""
        self._live.get(query.run, {}).pop(query.id, None)
        if self.leader(query.run) is None:
            self.reads.discard(query.run)
        self.note(query.run)

    def leave(self, query: RunningQuery) -> None:
        """Note that a query reads its run no more; call it before its bundle is another one."""
        self.changes += 1
        run, leader = query.run, self.leader(query.run)
        self.touched[run] = None
        self.fed.note(run)
        readers = self._readers.get(run, {})
        readers.pop(query.id, None)
        self._live.get(run, {}).pop(query.id, None)
        if self.leader(run) is not leader:
            self.doubtful.note(run)  # while it is known what it has given
        self.network.note(run)
        self.by_text.discard(query)
        if self.leader(run) is None:
            self._unknown(run)
            self.reads.discard(run)
            self.fed.put(run, ())
        if not readers:
            self._readers.pop(run, None)
            self._live.pop(run, None)
            self.answers.forget(run)

    def _unknown(self, run: str) -> None:
        """Let no query find a run any more: it has another plan, or ends."""
        name = self._prints.pop(run, None)
        if name is not None:
            _drop(self._alike, name, run)
        for printed in set(self._part_prints.pop(run, {}).values()):
            _drop(self._parts, printed, run)
            if run in self._given.get(printed, {}):
                _drop(self._given, printed, run)


def _drop(index: dict[K, dict[str, T]], name: K, run: str) -> None:
    del index[name][run]
    if not index[name]:
        del index[name]
