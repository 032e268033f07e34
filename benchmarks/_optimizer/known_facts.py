"""Statistics that a running federation would have counted of the readings."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from benchmarks._optimizer.worlds import START, STATIC, Readings, World
from federated_optimizer.coordinator.facts.heard_columns import HeardColumns
from federated_optimizer.coordinator.facts.planned_facts import KnownColumns, TextBytes
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.planning_statistics import (
    Homes,
    Passing,
    SourceFacts,
    Statistics,
)
from federated_optimizer.statistics.predicate_text import predicate_text
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS
from federated_optimizer.statistics.wires import Wires
from static_engine.sources.values.conversion import batch_of_values
from static_engine.tables.table_counts import counts_of
from stream_engine.site.site_sources import SiteSources
from streamsql.algebra.expressions import conjuncts
from streamsql.algebra.operators import Filter, Plan, walk_plan
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import MICROSECONDS, Value
from streamsql.wire.fragments import filtered_scan


def known_facts(world: World, ready: Plan, readings: Readings) -> Statistics:
    """Return facts of sources, columns, filters and nodes, and how far sites are apart."""
    counted, now = _counts_of_columns(world, readings), readings[-1][0]
    sources = {name: _counted(world, name, readings) for name in sorted(world.heard)}
    for name, table in world.tables.items():
        sources[name] = SourceFacts(float(len(table)))
    return Statistics(
        sources=sources,
        passing=_passing(ready, readings),
        homes=_homes(world, readings),
        columns=KnownColumns(counted, now),
        text_bytes=TextBytes(counted),
        wires=Wires(hops=world.distances),
        # Evaluations take no time of the simulation, as the static engine would have timed.
        speeds=replace(
            DEFAULT_SPEEDS,
            local=replace(DEFAULT_SPEEDS.local, floor=0.0),
            spark=replace(DEFAULT_SPEEDS.spark, floor=0.0),
        ),
    )


def _counted(world: World, name: str, readings: Readings) -> SourceFacts:
    """Return the rows that hold at the end, and the changes a second."""
    source = world.source(name)
    begin, end = readings[0][0], readings[-1][0]
    held: dict[tuple[Value, ...], int] = {}
    changes = 0
    for number, (time, _, read, event) in enumerate(readings):
        if read.lower() != name:
            continue
        key = tuple(event.row[k] for k in source.key) or (number,)
        was = key in held and time - held[key] < (source.ttl or end)
        changes += was + (not event.delete)
        held.pop(key, None)
        if not event.delete:
            held[key] = time
    rows = sum(end - time < (source.ttl or end) for time in held.values())
    if not source.key:
        changes *= 2  # what comes goes again
    return SourceFacts(float(rows), changes * MICROSECONDS / (end - begin))


def _passing(ready: Plan, readings: Readings) -> Mapping[tuple[str, str], Passing]:
    found = {}
    for node in walk_plan(ready):
        scan = filtered_scan(node) if isinstance(node, Filter) else None
        if not isinstance(node, Filter) or scan is None:
            continue
        rows = [
            event.row
            for _, _, name, event in readings
            if name.lower() == scan.source.lower() and not event.delete
        ]
        for predicate in (node.predicate, *conjuncts(node.predicate)):
            passes = compile_expression(predicate)
            if rows:
                share = max(sum(passes(row) is True for row in rows) / len(rows), 1e-4)
                key = (scan.source.lower(), predicate_text(predicate, scan.schema.names))
                found[key] = Passing(share, share, share)
    return found


def _counts_of_columns(world: World, readings: Readings) -> Facts:
    """Return what gateways and the static engine count of columns, as the coordinator has it."""
    known, now = Facts(), readings[-1][0]
    heard = HeardColumns(known, world.source)
    for site in world.gateways:
        sources = SiteSources(site)
        for name in world.heard:
            sources.declare(world.source(name).scan(), START)
        for time, gateway, name, event in readings:
            if gateway == site:
                sources.ingest(world.source(name).name, [event], "")
                sources.advance(time)
                heard.hear(site, sources.columns.report(time))
    for name, rows in world.tables.items():
        table = world.source(name)
        data = pa.table(batch_of_values(table, rows, 1, name))
        count = counts_of(table, data, len(rows))
        heard.hear(STATIC, {table.name: count} if count else {})
    heard.look(now)
    return known


def _homes(world: World, readings: Readings) -> Homes:
    owner = world.links.owner
    ends = {event.row[:2] for _, _, name, event in readings if name.lower() == "link"}
    if not ends:
        return Homes()
    local = sum(owner.get(str(a)) == owner.get(str(b)) for a, b in ends) / len(ends)
    return Homes(dict(owner), local)
