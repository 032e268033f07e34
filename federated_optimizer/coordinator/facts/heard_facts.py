"""Facts from what the coordinator hears: states and births of sites, links, running queries."""

from collections import defaultdict
from collections.abc import Iterable

from federated_optimizer.coordinator.facts.heard_counts import CountingQuery, HeardCounts
from federated_optimizer.coordinator.sites.published_links import LinkTable
from federated_optimizer.statistics.fact import (
    Fact,
    Origin,
    Quantity,
    Subject,
    SubjectKind,
    exact,
)
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.smoothed_rates import (
    Reading,
    SmoothedRate,
    rate_between,
    smoothed,
)
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import MICROSECONDS
from streamsql.wire.site_messages import (
    ENGINES,
    FLOOR_US,
    ROWS_A_SECOND,
    Birth,
    SiteRole,
    SiteState,
)

LOOK_MICROSECONDS = 10 * MICROSECONDS
"""Between two looks at links and queries."""
COUNT_MICROSECONDS = 30 * MICROSECONDS
"""Between two readings of a counter: states come more often, and a rate costs ten microseconds."""
CONFIRM_MICROSECONDS = 3_600 * MICROSECONDS
"""Between two notes that the announced sensors are still there."""
SWEEP_MICROSECONDS = 3_600 * MICROSECONDS
"""Between two searches for facts that are too old."""
MAX_COUNTERS = 50_000
"""Counters whose last value is remembered, over all gateways."""
_SURE_SIZE = 0.9
"""Sizes of tables are rounded, and may be estimates of their databases."""
_SURE_TIME = 0.8
"""The plans that were timed are not the ones to come."""


class HeardFacts:
    """Fills the facts.

    State: the last values of counters, and the sensors that births have announced.

    Attributes:
        counts: What sites count of queries.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.counts = HeardCounts(facts)
        self._counters: dict[tuple[str, str, Quantity], Reading] = {}
        self._sensors: dict[str, dict[str, int]] = {}
        self._looked_at: int | None = None
        self._swept_at = -SWEEP_MICROSECONDS
        self._links_seen = -1
        self._linked: set[tuple[str, str]] = set()

    def hear_state(self, site: str, state: SiteState, at: int) -> None:
        """Take the counters of a state that a site, and not the broker in its place, has sent.

        Args:
            site: Its id.
            state: As it was sent.
            at: When it holds, by our clock.
        """
        if not state.online:
            return
        if state.role == SiteRole.STATIC:
            self._hear_times(state, at)
            for name, rows in state.tables.items():
                subject = Subject(SubjectKind.TABLE, name.lower())
                size = (float(rows), float(rows), float(rows))
                self._facts.put(Fact(subject, Quantity.ROWS, *size, at, _SURE_SIZE, Origin.TABLES))
            return
        for source, count in _counts(state).items():
            reading = Reading(count, state.ts, state.started)
            self._count(site, source, Quantity.INSERTS, reading, at)
        for source, (_events, rows) in state.counted.items():
            reading = Reading(rows, state.ts, state.started)
            self._count(site, source.lower(), Quantity.CHANGES, reading, at)
        self._announced(site, at)

    def hear_birth(self, birth: Birth, at: int) -> None:
        """Take the sensors that a gateway announces."""
        site, counts = birth.gateway, dict[str, int]()
        for sensor in birth.sensors:
            name = sensor.stream.lower()
            counts[name] = counts.get(name, 0) + 1
        for gone in self._sensors.get(site, {}).keys() - counts:
            self._facts.discard(Subject(SubjectKind.SOURCE, gone, site), Quantity.SENSORS)
        self._sensors[site] = counts
        self._announced(site, at)

    def forget(self, site: str) -> None:
        """Discard a site that was removed permanently."""
        self._sensors.pop(site, None)
        self._counters = {key: value for key, value in self._counters.items() if key[0] != site}
        self._facts.forget_part(SubjectKind.SOURCE, site)

    def look(
        self,
        queries: Iterable[CountingQuery],
        links: LinkTable,
        catalog: Catalog,
        *,
        now: int,
        moment: int,
    ) -> None:
        """Take what is not told by messages of its own, now and then.

        Args:
            queries: The running ones.
            links: The published ones.
            catalog: Facts about tables that it does not have any more are discarded.
            now: Wall-clock microseconds.
            moment: The same by `monotonic_clock`.
        """
        if self._looked_at is not None and moment - self._looked_at < LOOK_MICROSECONDS:
            return
        self._looked_at = moment
        running = tuple(queries)
        self.counts.recursions(running, now=now, moment=moment)
        self.counts.look(running, now)
        self._hear_links(links, now)
        tables = {table.name.lower() for table in catalog.tables}
        for fact in tuple(self._facts.of_kind(SubjectKind.TABLE)):
            if fact.subject.name not in tables:
                self._facts.discard(fact.subject, fact.quantity)
        if moment >= self._swept_at + SWEEP_MICROSECONDS:
            self._swept_at = moment
            self._facts.discard_old(now)

    def _hear_times(self, state: SiteState, at: int) -> None:
        """Take how long the static engine's evaluations take."""
        for engine in ENGINES:
            subject, counters = Subject(SubjectKind.ENGINE, engine), state.counters
            told = {
                Quantity.FLOOR_SECONDS: (counters.get(engine + FLOOR_US), 1e6),
                Quantity.ROWS_A_SECOND: (counters.get(engine + ROWS_A_SECOND), 1.0),
            }
            for quantity, (count, unit) in told.items():
                if count is not None:
                    value = count / unit
                    timed = (value, value, value, at, _SURE_TIME, Origin.TIMED)
                    self._facts.put(Fact(subject, quantity, *timed))

    def _count(self, site: str, source: str, quantity: Quantity, reading: Reading, at: int) -> None:
        subject = Subject(SubjectKind.SOURCE, source, site)
        key = (site, source, quantity)
        before = self._counters.get(key)
        if before is None and len(self._counters) >= MAX_COUNTERS:
            return
        if before is not None and before.holds_until(reading, COUNT_MICROSECONDS):
            return
        self._counters[key] = reading
        known = self._facts.find(subject, quantity)
        if known is not None and before is None and known.confidence_at(at) >= 0.5:
            return  # measured before we started: better than the mean over the site's life
        found = rate_between(before, reading)
        if found is None:
            return
        past: SmoothedRate | None = None
        if known is not None and before is not None:
            past = SmoothedRate(known.value, known.low, known.high, known.confidence)
        rate = smoothed(past, *found)
        told = (rate.value, rate.low, rate.high, at, rate.mass, Origin.COUNTED)
        self._facts.put(Fact(subject, quantity, *told))

    def _announced(self, site: str, at: int) -> None:
        for source, count in self._sensors.get(site, {}).items():
            subject = Subject(SubjectKind.SOURCE, source, site)
            known = self._facts.find(subject, Quantity.SENSORS)
            is_old = known is None or at - known.at >= CONFIRM_MICROSECONDS
            if known is None or is_old or known.value != count:
                sensors = (Quantity.SENSORS, float(count), at, Origin.ANNOUNCED)
                self._facts.put(exact(subject, *sensors))

    def _hear_links(self, links: LinkTable, now: int) -> None:
        """Count links, and their costs, by relation and gateway, if they have changed."""
        if links.version == self._links_seen:
            return
        self._links_seen = links.version
        found: defaultdict[tuple[str, str], list[float | None]] = defaultdict(list)
        for relation, gateway, cost in links.costs():
            found[relation, gateway].append(cost)
        for relation, gateway in self._linked - found.keys():
            subject = Subject(SubjectKind.SOURCE, relation, gateway)
            self._facts.discard(subject, Quantity.ROWS)
            self._facts.discard(subject, Quantity.LINK_COST)
        self._linked = set(found)
        for (relation, gateway), costs in found.items():
            subject = Subject(SubjectKind.SOURCE, relation, gateway)
            rows = exact(subject, Quantity.ROWS, float(len(costs)), now, Origin.LINKS)
            self._facts.put(rows)
            known = [cost for cost in costs if cost is not None]
            if known:
                low, high = min(known), max(known)
                # The sum of large costs may be no number.
                mean = min(max(sum(cost / len(known) for cost in known), low), high)
                told = (mean, low, high, now, 1.0)
                self._facts.put(Fact(subject, Quantity.LINK_COST, *told, Origin.LINKS))


def _counts(state: SiteState) -> dict[str, float]:
    """Return the readings of each source of a site since it has started, by name in lower case.

    Gateways that do not count them tell what a connector of several sources makes together: equal
    shares are assumed.
    """
    found: dict[str, float] = {}
    for connector in state.connectors:
        for stream in connector.streams:
            name = stream.lower()
            found[name] = found.get(name, 0.0) + connector.readings / len(connector.streams)
    found.update({d.name.lower(): float(d.rows) for d in state.declared if d.endpoint})
    found.update({name.lower(): float(events) for name, (events, _) in state.counted.items()})
    return found
