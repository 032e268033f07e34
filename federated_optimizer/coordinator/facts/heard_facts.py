"""Facts from what the coordinator hears: states and births of sites, links, counts, queries."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice

from federated_optimizer.coordinator.facts.heard_columns import HeardColumns
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
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import MICROSECONDS
from streamsql.wire.site_messages import (
    ENGINES,
    FLOOR_US,
    ROWS_A_SECOND,
    Birth,
    SiteRole,
    SiteState,
    SourceCount,
)

LOOK_MICROSECONDS = 10 * MICROSECONDS
"""Between two looks at links and queries."""
COUNT_MICROSECONDS = 30 * MICROSECONDS
"""Between two readings of a counter: states come more often, and a rate costs ten microseconds."""
CONFIRM_MICROSECONDS = 3_600 * MICROSECONDS
"""Between two notes that the announced sensors are still there."""
SWEEP_MICROSECONDS = 3_600 * MICROSECONDS
"""Between two searches for facts that are too old."""
FIRST_HOUR = 3_600 * MICROSECONDS
"""Time in which all sites that there are have been heard, after the coordinator's start."""
FIRST_MINUTE = 60 * MICROSECONDS
"""Likewise all links; and in which a site that has started has its connectors."""
MAX_SOURCES = 1_000
"""Sources of a site whose sensors and readings are counted."""
_NAMED = (SubjectKind.SOURCE, SubjectKind.TABLE, SubjectKind.PREDICATE, SubjectKind.COLUMN)
"""Kinds of facts whose names are those of sources and tables."""
_Counted = tuple[str, Quantity]
"""A source in lower case, and the rate of it that a counter gives."""
_SURE_SIZE = 0.9
"""Sizes of tables are rounded, and may be estimates of their databases."""
_SURE_TIME = 0.8
"""The plans that were timed are not the ones to come."""


class HeardFacts:
    """Fills the facts with what is said of the catalog's sources and tables.

    State: the definitions as of the last look; of each site the last values of its counters, the
    sensors that its birth has announced, and the sources that facts say it has.

    Args:
        facts: Those that were saved before tell which of them a site has to confirm.
        catalog: What it does not have is not counted, and facts of it are discarded.

    Attributes:
        counts: What sites count of queries.
    """

    def __init__(self, facts: Facts, catalog: Catalog) -> None:
        self._facts, self._catalog = facts, catalog
        self.counts = HeardCounts(facts)
        self._columns = HeardColumns(facts, self._definition)
        self._defined = _defined(catalog)
        self._counters: dict[str, dict[_Counted, Reading]] = {}
        self._born: dict[str, dict[str, int]] = {}
        self._sensors: dict[str, dict[str, int]] = {}
        self._heard: set[str] = set()
        self._began: int | None = None
        self._looked_at: int | None = None
        self._swept_at: int | None = None
        self._links_seen = -1
        known = tuple(facts.of_kind(SubjectKind.SOURCE))
        self._rated = _by_part(known, Quantity.INSERTS, Quantity.CHANGES)
        self._announced = _by_part(known, Quantity.SENSORS)
        self._linked = {f.subject[1:] for f in known if f.quantity == Quantity.ROWS}

    def hear_state(self, site: str, state: SiteState, at: int) -> None:
        """Take the counters of a state that a site, and not the broker in its place, has sent.

        Args:
            site: Its id.
            state: As it was sent.
            at: When it holds, by our clock.
        """
        self._heard.add(site)
        if not state.online:
            return
        if state.role == SiteRole.STATIC:
            self._hear_times(state, at)
            for name, rows in state.tables.items():
                if not self._is_known(name):
                    continue
                subject = Subject(SubjectKind.TABLE, name.lower())
                size = (float(rows), float(rows), float(rows))
                self._facts.put(Fact(subject, Quantity.ROWS, *size, at, _SURE_SIZE, Origin.TABLES))
            return
        inserts = self._inserts(state)
        before, found = self._counters.get(site, {}), dict[_Counted, Reading]()

        def count(source: str, quantity: Quantity, count: float) -> None:
            key, now = (source, quantity), Reading(count, state.ts, state.started)
            found[key] = self._count(site, key, before.get(key), now, at)

        for source, readings in inserts.items():
            count(source, Quantity.INSERTS, readings)
        for source, (_events, rows) in state.counted.items():
            if source.lower() in inserts:
                count(source.lower(), Quantity.CHANGES, rows)
        self._counters[site] = found
        if state.started and state.ts - state.started >= FIRST_MINUTE:
            for gone in self._rated.get(site, set()) - inserts.keys():
                self._discard(gone, site, Quantity.INSERTS, Quantity.CHANGES)
            self._rated[site] = set()
        self._rated.setdefault(site, set()).update(inserts)
        self._put_sensors(site, at)

    def hear_columns(self, site: str, count: SourceCount, *, stored: bool = False) -> None:
        """Take what a gateway has counted of the columns of one of its sources.

        Args:
            site: Its id.
            count: Of a source; of another thing it is not taken.
            stored: It is the static engine, which counts tables.
        """
        definition = self._definition(count.source)
        if definition is not None and definition.is_table == stored:
            self._columns.hear(site, {count.source: count})

    def hear_birth(self, birth: Birth, at: int) -> None:
        """Take the sensors that a gateway announces."""
        self._heard.add(birth.gateway)
        self._born[birth.gateway] = Counter(sensor.stream.lower() for sensor in birth.sensors)
        self._take_born(birth.gateway, at)

    def forget(self, site: str) -> None:
        """Discard a site that was removed permanently."""
        for known in (self._born, self._sensors, self._announced, self._rated, self._counters):
            known.pop(site, None)
        self._heard.discard(site)
        self._columns.forget(site)
        self._facts.forget_part(SubjectKind.SOURCE, site)
        self._facts.forget_name(SubjectKind.SITE, site)

    def look(
        self,
        queries: Iterable[CountingQuery],
        links: LinkTable,
        *,
        now: int,
        moment: int,
    ) -> None:
        """Take what is not told by messages of its own, now and then.

        Args:
            queries: The running ones.
            links: The published ones.
            now: Wall-clock microseconds.
            moment: The same by `monotonic_clock`.
        """
        if self._looked_at is not None and moment - self._looked_at < LOOK_MICROSECONDS:
            return
        self._looked_at = moment
        self._began = moment if self._began is None else self._began
        self._follow_catalog(now)
        running = tuple(queries)
        self.counts.recursions(running, now=now, moment=moment)
        self.counts.look(running, now)
        self._columns.look(now)
        # Right after the start retained links are still to come.
        if links.version or moment - self._began >= FIRST_MINUTE:
            self._hear_links(links, now)
        if self._swept_at is None or moment - self._swept_at >= SWEEP_MICROSECONDS:
            self._swept_at = moment
            self._facts.discard_old(now)
            if moment - self._began >= FIRST_HOUR:
                self._forget_unheard()

    def _follow_catalog(self, now: int) -> None:
        """Discard facts of what is gone, or was defined anew, since the last look."""
        before, self._defined = self._defined, _defined(self._catalog)
        for kind in _NAMED:
            for name in self._facts.names(kind):
                definition = self._defined.get(name)
                if definition is None or definition != before.get(name, definition):
                    self._facts.forget_name(kind, name)
                    self._columns.forget_source(name)
        if before != self._defined:
            self._links_seen = -1
            for site in self._born:
                self._take_born(site, now)

    def _forget_unheard(self) -> None:
        """Discard facts of sites that have said nothing since we have started."""
        linked = {gateway for _, gateway in self._linked}
        parts = {fact.subject.part for fact in self._facts.of_kind(SubjectKind.SOURCE)}
        for site in parts - self._heard - linked:
            self.forget(site)

    def _inserts(self, state: SiteState) -> dict[str, float]:
        """Return the readings of each source of a site since it has started, by name.

        Gateways that do not count them tell what a connector of several sources makes together:
        equal shares are assumed.
        """
        found: dict[str, float] = {}

        def is_counted(name: str) -> bool:
            return name in found or (len(found) < MAX_SOURCES and self._is_known(name))

        for connector in state.connectors:
            for stream in connector.streams:
                name = stream.lower()
                if is_counted(name):
                    part = connector.readings / len(connector.streams)
                    found[name] = found.get(name, 0.0) + part
        told = {d.name: d.rows for d in state.declared if d.endpoint}
        told.update({name: events for name, (events, _) in state.counted.items()})
        for name, rows in told.items():
            if is_counted(name.lower()):
                found[name.lower()] = float(rows)
        return found

    def _is_known(self, name: str) -> bool:
        """Whether the catalog has a source or table of this name now."""
        return self._definition(name) is not None

    def _definition(self, name: str) -> SourceDefinition | None:
        found = self._catalog.find(name)
        return found if isinstance(found, SourceDefinition) else None

    def _discard(self, source: str, site: str, *quantities: Quantity) -> None:
        for quantity in quantities:
            self._facts.discard(Subject(SubjectKind.SOURCE, source, site), quantity)

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

    def _count(
        self, site: str, counted: _Counted, before: Reading | None, reading: Reading, at: int
    ) -> Reading:
        """Return the reading from which the next one counts."""
        source, quantity = counted
        subject = Subject(SubjectKind.SOURCE, source, site)
        if before is not None and before.holds_until(reading, COUNT_MICROSECONDS):
            return before
        known = self._facts.find(subject, quantity)
        if known is not None and before is None and known.confidence_at(at) >= 0.5:
            return reading  # measured before we started: better than the mean of the site's life
        found = rate_between(before, reading)
        if found is None:
            return reading
        past: SmoothedRate | None = None
        if known is not None and before is not None:
            past = SmoothedRate(known.value, known.low, known.high, known.confidence)
        rate = smoothed(past, *found)
        told = (rate.value, rate.low, rate.high, at, rate.mass, Origin.COUNTED)
        self._facts.put(Fact(subject, quantity, *told))
        return reading

    def _take_born(self, site: str, at: int) -> None:
        """Take the sensors that a site has announced, of sources that there are."""
        born = self._born[site]
        counts = dict(islice(((n, c) for n, c in born.items() if self._is_known(n)), MAX_SOURCES))
        for gone in self._announced.get(site, set()) - counts.keys():
            self._discard(gone, site, Quantity.SENSORS)
        self._announced[site], self._sensors[site] = set(counts), counts
        self._put_sensors(site, at)

    def _put_sensors(self, site: str, at: int) -> None:
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
            if self._is_known(relation):
                found[relation, gateway].append(cost)
        for relation, gateway in self._linked - found.keys():
            self._discard(relation, gateway, Quantity.ROWS, Quantity.LINK_COST)
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


def _defined(catalog: Catalog) -> dict[str, SourceDefinition]:
    return {d.name.lower(): d for d in (*catalog.sources, *catalog.tables)}


def _by_part(facts: Iterable[Fact], *quantities: Quantity) -> dict[str, set[str]]:
    """Return the names of things with facts of these quantities, by the part of the thing."""
    found: dict[str, set[str]] = {}
    for fact in facts:
        if fact.quantity in quantities:
            found.setdefault(fact.subject.part, set()).add(fact.subject.name)
    return found
