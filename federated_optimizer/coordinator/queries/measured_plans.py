"""Measured rows and rates of running recursions, for the prices of recursions."""

from collections.abc import Iterable, Mapping

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sites.membership import Membership
from federated_optimizer.placement import RecursionFacts, SourceFacts
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import MICROSECONDS
from streamsql.wire.messages import RecursionReport

LEAST_MICROSECONDS = 30 * MICROSECONDS
"""A query that has run for less says nothing about rates."""

LEAST_CHANGES = 20
"""Fewer changes say nothing about how much of the view a change moves."""


def recursion_facts(queries: Iterable[RunningQuery], now: int) -> dict[str, RecursionFacts]:
    """Return what running recursions have counted, by their key."""
    found: dict[str, RecursionFacts] = {}
    for query in queries:
        ran = now - query.deployed
        if ran < LEAST_MICROSECONDS:
            continue
        for plan in query.bundle.recursions:
            reports = [r for _, r in query.flows.recursions(plan.name)]
            facts = facts_of(reports, ran / MICROSECONDS)
            if facts is not None:
                found[plan.key] = facts
    return found


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


def source_facts(catalog: Catalog, membership: Membership) -> Mapping[str, SourceFacts]:
    """Return what births and states tell of sources: their sensors, and readings per second."""
    sensors, readings = membership.sensors(), membership.readings()
    found: dict[str, SourceFacts] = {}
    for source in catalog.sources:
        name = source.name.lower()
        rate = readings.get(name)
        if source.key and sensors.get(name):
            found[name] = SourceFacts(rows=float(sensors[name]))
        elif not source.key and rate and source.ttl is not None:
            found[name] = SourceFacts(rate * source.ttl / MICROSECONDS, 2 * rate)
    return found
