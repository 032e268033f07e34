"""Whether one run of a query has read at least as much as another one, by the counts of sites.

A cut is a moment at each site. Counts that sites report show that one run's answer holds all that
was before a cut, or that another's holds nothing that came after it. No clocks are compared.

A run may read rows of others, which its base sites give it as they come. Then the channels of these
belong to what it reads, and its cut is one of all their reports.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sites.flows import OUTPUT
from streamsql.wire.fragments import Engine, Fragment
from streamsql.wire.messages import FlowReport


@dataclass(frozen=True, slots=True)
class _Part:
    """Channels of one run that a query reads.

    Attributes:
        query: Reads the run.
        senders: Sites whose channels count.
        receivers: Sites at their ends; all sites of the run itself send its answer, too.
        is_fed: The run is another's.
        is_whole: Its result is read: all its channels count, but for those of the result to us.
    """

    query: RunningQuery
    senders: frozenset[str]
    receivers: frozenset[str]
    is_fed: bool = False
    is_whole: bool = False

    @property
    def sites(self) -> frozenset[str]:
        """All of these sites."""
        return self.senders | self.receivers

    def told(self, site: str) -> int:
        """Return the number of the message in which a site has reported."""
        return self.query.flows.told_by(site)


def is_not_behind(new: RunningQuery, old: RunningQuery) -> bool:
    """Whether the answer of a run surely holds all readings that an older one's holds.

    The reports of the old run are a cut that its answer is not beyond: no channel has brought more
    than its sender had sent. Those of the new run are a cut that its answer has reached: every site
    was idle, and every channel has brought all that its sender had sent. At no site is the cut of
    the new run before that of the old one.

    False means that nobody knows. That is so for runs that read stored tables, or readings that
    base sites take from gateways themselves: these have other counts.
    """
    ours, others = _parts(new), _parts(old)
    if ours is None or others is None or _sites(ours) != _sites(others):
        return False
    if not all(_last(others, site) <= _first(ours, site) for site in _sites(ours)):
        return False
    if not (_in_order(ours, is_reached=True) and _in_order(others, is_reached=False)):
        return False
    if not all(part.query.flows.is_idle(site) for part in ours for site in part.sites):
        return False
    reached = all(n is not None and n >= sent for sent, n in _channels(ours))
    return reached and all(n is not None and n <= sent for sent, n in _channels(others))


def _parts(query: RunningQuery) -> list[_Part] | None:
    """Return what a query reads, its own run first; None: something there has other counts."""
    sites = query.bundle.sites
    found: dict[str, _Part] = {query.bundle.query: _Part(query, sites, sites)}
    waiting = [query]
    while waiting:
        reader = waiting.pop()
        for feed in reader.bundle.feeds:
            feeder = reader.leader_of(feed.run)
            if feeder is None or feeder.bundle.version != feed.version:
                return None
            fragment = reader.bundle.fragment(feed.fragment)
            known = found.get(feed.run)
            if fragment.engine == Engine.BASE:
                if known is None or not known.is_whole:
                    waiting.append(feeder)
                found[feed.run] = _whole(feeder)
            elif known is None or not known.is_whole:
                found[feed.run] = _wider(known or _Part(feeder, frozenset(), frozenset()), fragment)
    parts = list(found.values())
    return parts if all(map(_counts_all, parts)) and not query.read_by_bases() else None


def _whole(feeder: RunningQuery) -> _Part:
    sites = feeder.bundle.sites
    return _Part(feeder, sites, sites, is_fed=True, is_whole=True)


def _wider(part: _Part, fragment: Fragment) -> _Part:
    """Return a part with the channels of one more fragment that is delivered."""
    senders = part.senders.union(fragment.sites)
    receivers = part.receivers.union(fragment.destinations)
    return _Part(part.query, senders, receivers, is_fed=True)


def _counts_all(part: _Part) -> bool:
    """Whether all that is read of a run goes through its channels between engines that step."""
    flows, fragments = part.query.flows, part.query.bundle.fragments
    is_stepped = all(fragment.engine != Engine.STATIC for fragment in fragments)
    is_doubtful = bool((flows.outdated | flows.later) & part.sites)
    is_told = all(part.told(site) > 0 for site in part.sites)
    return is_stepped and is_told and not is_doubtful


def _sites(parts: list[_Part]) -> frozenset[str]:
    return frozenset(site for part in parts for site in part.sites)


def _last(parts: list[_Part], site: str) -> int:
    return max(part.told(site) for part in parts if site in part.sites)


def _first(parts: list[_Part], site: str) -> int:
    return min(part.told(site) for part in parts if site in part.sites)


def _in_order(parts: list[_Part], *, is_reached: bool) -> bool:
    """Whether reports of a run and of those that feed it say something of each other.

    What a feeder had received counts for what the run held then: not later than the run's own
    report if that is reached, and not before it if the answer is not beyond it.
    """
    own, *feeders = parts
    for part in feeders:
        for site in part.receivers & own.sites:
            first, second = (part, own) if is_reached else (own, part)
            if first.told(site) > second.told(site):
                return False
    return True


def _channels(parts: list[_Part]) -> Iterator[tuple[int, int | None]]:
    """Yield what each sender had sent, and what had arrived; None: nobody knows."""
    for part in parts:
        if part.is_fed and not part.is_whole:
            yield from _fed_channels(part)
        else:
            yield from _own_channels(part.query, with_output=not part.is_fed)


def _fed_channels(part: _Part) -> Iterator[tuple[int, int | None]]:
    reports = part.query.flows.reports()
    for sender in part.senders:
        for to in part.receivers:
            report, receiver = reports.get(sender), reports.get(to)
            if report is None or receiver is None or to not in report.sent:
                yield 0, None
            else:
                sent = report.sent[to]
                yield sent, _arrived(sender, report, receiver.received, receiver.lives)


def _own_channels(query: RunningQuery, *, with_output: bool) -> Iterator[tuple[int, int | None]]:
    """Yield it of the channels of a run; `with_output` also of those of its result to us."""
    reports = query.flows.reports()
    result = query.result
    for sender, report in reports.items():
        for to, sent in report.sent.items():
            if to == OUTPUT:
                if not with_output:
                    continue
                yield sent, _arrived(sender, report, result.received(), result.lives())
            elif to in reports:
                receiver = reports[to]
                yield sent, _arrived(sender, report, receiver.received, receiver.lives)
            else:
                yield sent, None
    for to, report in reports.items():
        for sender in report.received:
            if sender not in reports or to not in reports[sender].sent:
                yield 0, None
    for sender in result.received() if with_output else ():
        if sender not in reports or OUTPUT not in reports[sender].sent:
            yield 0, None


def _arrived(
    sender: str, report: FlowReport, received: Mapping[str, int], lives: Mapping[str, int]
) -> int | None:
    """Return what has come of the incarnation of a sender that has reported."""
    return received.get(sender) if lives.get(sender) == report.epoch else None
