"""Whether one run of a query has read at least as much as another one, by the counts of sites.

A cut is a moment at each site. Counts that sites report show that one run's answer holds all that
was before a cut, or that another's holds nothing that came after it. No clocks are compared.
"""

from collections.abc import Iterator, Mapping

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sites.flows import OUTPUT
from streamsql.wire.fragments import Engine
from streamsql.wire.messages import FlowReport


def is_not_behind(new: RunningQuery, old: RunningQuery) -> bool:
    """Whether the answer of a run surely holds all readings that an older one's holds.

    The reports of the old run are a cut that its answer is not beyond: no channel has brought more
    than its sender had sent. Those of the new run are a cut that its answer has reached: every site
    was idle, and every channel has brought all that its sender had sent. At no site is the cut of
    the new run before that of the old one.

    False means that nobody knows. That is so for runs that read other runs, stored tables, or
    readings that base sites take from gateways themselves: these have other counts.
    """
    sites = new.bundle.sites
    if set(sites) != set(old.bundle.sites) or not (_counts_all(new) and _counts_all(old)):
        return False
    if not all(0 < old.flows.told_by(site) <= new.flows.told_by(site) for site in sites):
        return False
    if not all(map(new.flows.is_idle, sites)):
        return False
    reached = all(n is not None and n >= sent for sent, n in _channels(new))
    return reached and all(n is not None and n <= sent for sent, n in _channels(old))


def _counts_all(query: RunningQuery) -> bool:
    """Whether all that a run reads goes through its own channels between engines that step."""
    fragments = query.bundle.fragments
    is_stepped = all(fragment.engine != Engine.STATIC for fragment in fragments)
    is_fed = bool(query.bundle.feeds or query.flows.outdated or query.flows.later)
    return is_stepped and not is_fed and not query.read_by_bases()


def _channels(query: RunningQuery) -> Iterator[tuple[int, int | None]]:
    """Yield what each sender of a run had sent, and what had arrived; None: nobody knows."""
    reports = query.flows.reports()
    result = query.result
    for sender, report in reports.items():
        for to, sent in report.sent.items():
            if to == OUTPUT:
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
    for sender in result.received():
        if sender not in reports or OUTPUT not in reports[sender].sent:
            yield 0, None


def _arrived(
    sender: str, report: FlowReport, received: Mapping[str, int], lives: Mapping[str, int]
) -> int | None:
    """Return what has come of the incarnation of a sender that has reported."""
    return received.get(sender) if lives.get(sender) == report.epoch else None
