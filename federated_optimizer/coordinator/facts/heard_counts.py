"""Facts from what sites count of running queries: recursions, filters, and rows that were sent."""

from collections.abc import Iterable
from typing import Protocol

from federated_optimizer.coordinator.sites.flows import FlowReports
from federated_optimizer.costs.sent_columns import sent_columns
from federated_optimizer.statistics.default_facts import ENVELOPE_BYTES
from federated_optimizer.statistics.fact import (
    Fact,
    Origin,
    Quantity,
    Subject,
    SubjectKind,
    exact,
    share,
    sureness,
)
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.planning_statistics import RecursionFacts
from federated_optimizer.statistics.predicate_text import predicate_text
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import FragmentBundle, filtered_scan, source_filters
from streamsql.wire.messages import RecursionReport, TrafficReport

LEAST_MICROSECONDS = 30 * MICROSECONDS
"""A query that has run for less says nothing about rates."""
LEAST_CHANGES = 20
"""Fewer changes say nothing about how much of the view a change moves."""
LEAST_SENT = 20
"""Fewer rows say nothing about their size."""


LEAST_BATCHES = 100
"""Fewer batches say nothing about how many have to be repeated."""


class CountingQuery(Protocol):
    """A running query as facts need it."""

    @property
    def deployed(self) -> int:
        """When this version was, by `monotonic_clock`."""

    @property
    def bundle(self) -> FragmentBundle:
        """The running version."""

    @property
    def flows(self) -> FlowReports:
        """Counts of its sites."""


class _Subjects:
    """The subjects of the counts of one bundle.

    Attributes:
        filters: By fragment and number of the filter in it.
        sent: By site that sends rows of one fragment only, with columns of one source.
    """

    def __init__(self, bundle: FragmentBundle) -> None:
        self.bundle = bundle
        self.filters = {
            (fragment.id, number): Subject(
                SubjectKind.PREDICATE,
                scan.source.lower(),
                predicate_text(node.predicate, scan.schema.names),
            )
            for fragment in bundle.fragments
            for number, node in enumerate(source_filters(fragment.plan))
            if (scan := filtered_scan(node)) is not None
        }
        self.sent: dict[str, Subject] = {}
        # Recursions of several sites send rows that are no fragment's.
        for site in () if bundle.recursions else bundle.sites:
            fragments = bundle.at(site)
            columns = sent_columns(fragments[0].plan) if len(fragments) == 1 else None
            if columns is not None:
                self.sent[site] = Subject(SubjectKind.COLUMN, *columns)


_PAUSE = 1_000_000
"""Microseconds for which recursions are not asked again: sites report them once a second."""


class HeardCounts:
    """Fills the facts with counts of queries.

    State: of the last look the subjects of the running queries, and the counts; when recursions
    were last asked.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._subjects: dict[str, _Subjects] = {}
        self._counts: dict[Subject, tuple[int, ...]] = {}
        self._recursions_at = -_PAUSE

    def recursions(self, queries: Iterable[CountingQuery], *, now: int, moment: int) -> None:
        """Take what recursions have counted, if that was not done a moment ago.

        Each registration asks for it, and all queries are looked at.

        Args:
            queries: The running ones.
            now: Wall-clock microseconds.
            moment: The same by `monotonic_clock`.
        """
        if 0 <= moment - self._recursions_at < _PAUSE:
            return
        self._recursions_at = moment
        for query in queries:
            ran = moment - query.deployed
            if ran < LEAST_MICROSECONDS:
                continue
            for recursion in query.bundle.recursions:
                reports = [r for _, r in query.flows.recursions(recursion.name)]
                counted = facts_of(reports, ran / MICROSECONDS)
                if counted is not None:
                    self._put_recursion(recursion.key, counted, now)

    def look(self, queries: Iterable[CountingQuery], now: int) -> None:
        """Take what filters have read, and what was sent, over all queries and sites."""
        known, self._subjects = self._subjects, {}
        read: dict[Subject, tuple[int, ...]] = {}
        sent: dict[Subject, tuple[int, ...]] = {}
        batches: dict[Subject, tuple[int, ...]] = {}
        for query in queries:
            bundle = query.bundle
            if bundle.query in self._subjects:
                continue  # another query reads the same run, and has the same counts
            reports, traffic = tuple(query.flows.filters()), query.flows.traffic()
            if not reports and not traffic:
                continue
            about = known.get(bundle.query)
            if about is None or about.bundle is not bundle:
                about = _Subjects(bundle)
            self._subjects[bundle.query] = about
            for report in reports:
                subject = about.filters.get((report.fragment, report.number))
                _add(read, subject, (report.rows_in, report.rows_out))
            for site, cost in traffic.items():
                _add(sent, about.sent.get(site), (cost.rows, cost.batches, cost.bytes))
                _add(batches, Subject(SubjectKind.SITE, site), _since_mark(query.flows, site, cost))
        for subject, counts in read.items():
            if self._counts.get(subject) != counts and counts[1] <= counts[0] > 0:
                passed = (Quantity.SELECTIVITY, counts[1], counts[0], now, Origin.COUNTED)
                self._facts.learn(share(subject, *passed))
        for subject, counts in sent.items():
            if self._counts.get(subject) != counts and counts[0] >= LEAST_SENT:
                self._facts.learn(_row_bytes(subject, counts, now))
        for subject, counts in batches.items():
            if self._counts.get(subject) != counts and counts[1] >= LEAST_BATCHES:
                once, all_ = counts
                told = (Quantity.DELIVERED, once, all_, now, Origin.COUNTED)
                self._facts.put(share(subject, *told))
        self._counts = read | sent | batches

    def _put_recursion(self, key: str, counted: RecursionFacts, now: int) -> None:
        subject = Subject(SubjectKind.RECURSION, key)
        told = {
            Quantity.ROWS: counted.base_rows,
            Quantity.VIEW_ROWS: counted.view_rows,
            Quantity.CHANGES: counted.changes,
            Quantity.VIEW_CHANGES: counted.view_changes,
        }
        for quantity, value in told.items():
            self._facts.put(exact(subject, quantity, value, now, Origin.COUNTED))


def _add(
    to: dict[Subject, tuple[int, ...]], subject: Subject | None, counts: tuple[int, ...]
) -> None:
    if subject is not None:
        before = to.get(subject, (0,) * len(counts))
        to[subject] = tuple(a + b for a, b in zip(before, counts, strict=True))


def _since_mark(flows: FlowReports, site: str, now: TrafficReport) -> tuple[int, int]:
    """Return the batches of a site that were no repetitions, and all, of the last minutes.

    The first rows of a query are repetitions, too: they were sent before the mark.
    """
    mark = flows.marked(site)
    if mark is None:
        return (0, 0)
    before = mark[1].traffic
    sent = max(now.batches - before.batches, 0)
    return (max(sent - max(now.snapshots - before.snapshots, 0), 0), sent)


def _row_bytes(subject: Subject, counts: tuple[int, ...], now: int) -> Fact:
    """Return the bytes of a row as it was sent: the least without its share of the message.

    Counts are those of rows, batches and bytes.
    """
    rows, batches, size = counts
    value = size / rows
    low = max((size - ENVELOPE_BYTES.value * batches) / rows, min(1.0, value))
    sure = sureness(rows)
    return Fact(subject, Quantity.ROW_BYTES, value, low, value, now, sure, Origin.COUNTED)


def facts_of(reports: Iterable[RecursionReport], seconds: float) -> RecursionFacts | None:
    """Return the sum of what sites have counted of one recursion in a time; None if nothing."""
    leaf_rows = view_rows = changes = moved = 0
    for report in reports:
        leaf_rows, view_rows = leaf_rows + report.leaf_rows, view_rows + report.view_rows
        changes += report.leaf_changes
        moved += report.view_changes
    if not changes:
        return None
    # What is there now has come once; only the rest was motion.
    motion = max(changes - leaf_rows, 0)
    per_change = max(moved - view_rows, 0) / motion if motion >= LEAST_CHANGES else 0.0
    return RecursionFacts(float(leaf_rows), float(view_rows), motion / seconds, per_change)
