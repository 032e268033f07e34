"""Figures of a gateway or base site for Prometheus."""

from collections.abc import Iterator

import msgspec

from gateway.site_state import Parts
from host.metrics.families import Sample, counter, gauge
from host.metrics.service_figures import service_figures

READINGS = counter("pando_gateway_readings_total", "Readings taken from a connector.")
ERRORS = counter("pando_gateway_errors_total", "Readings and polls of a connector that failed.")
ROWS = counter("pando_gateway_source_rows_total", "Rows made for a declared source.")
REFUSED = counter(
    "pando_gateway_source_refused_total", "Payloads, rows and values refused for a source."
)
SERVED = gauge("pando_gateway_source_served", "Whether a declared source gets its rows here.")
STORED = gauge("pando_gateway_buffer_packs", "Packs of readings in the buffer on disk.")
STORED_BYTES = gauge("pando_gateway_buffer_bytes", "Bytes of the buffer on disk.")
WAITING = gauge("pando_gateway_buffer_waiting_packs", "Packs that were not sent yet.")
DROPPED = counter(
    "pando_gateway_buffer_dropped_total", "Readings dropped because the buffer was full."
)
QUERIES = gauge("pando_gateway_queries", "Queries that run at the site.")
EVENTS = gauge("pando_gateway_pending_events", "Readings that wait for the next step.")
STEPS = counter("pando_gateway_steps_total", "Steps of the engine.")
STEP_SECONDS = counter("pando_gateway_step_seconds_total", "Time spent in steps of the engine.")
DEFECTS = counter("pando_gateway_step_defects_total", "Steps that ended with a defect.")
SENT = counter("pando_gateway_batches_sent_total", "Batches of rows sent.")
RECEIVED = counter("pando_gateway_batches_received_total", "Batches of rows received.")
CHANNEL_ROWS = gauge("pando_gateway_channel_rows", "Rows through channels of running queries.")
CLOCK = gauge(
    "pando_gateway_clock_offset_seconds", "Time by which the coordinator's clock is ahead."
)


def gateway_figures(parts: Parts) -> Iterator[Sample]:
    """Yield the figures of a site's process."""
    settings, host, engine = parts.settings, parts.host, parts.engine
    yield from service_figures(
        settings.site, settings.gateway, settings.role, parts.client, host.dead_letters.count
    )
    yield from _readings(parts)
    yield from _buffer(parts)
    yield QUERIES.at(len(engine.queries))
    yield EVENTS.at(engine.pending_events)
    yield STEPS.at(host.steps)
    yield STEP_SECONDS.at(host.worked_seconds)
    yield DEFECTS.at(host.defects.count)
    yield SENT.at(host.batches_sent)
    yield RECEIVED.at(host.inbox.batches)
    for direction, channels in (("out", host.traffic.to), ("in", host.traffic.by)):
        yield CHANNEL_ROWS.at(sum(each.rows for each in channels.values()), direction=direction)
    offset = parts.clock.state().offset_ms
    if offset is not None:
        yield CLOCK.at(offset / 1_000)


def _readings(parts: Parts) -> Iterator[Sample]:
    for device in parts.devices.all:
        state = device.state()
        yield READINGS.at(state.readings, connector=state.name, kind=state.kind)
        yield ERRORS.at(state.errors, connector=state.name, kind=state.kind)
    for source in parts.declared.states():
        yield ROWS.at(source.rows, source=source.name)
        yield REFUSED.at(source.bad, source=source.name)
        yield SERVED.at(not source.problem, source=source.name)


def _buffer(parts: Parts) -> Iterator[Sample]:
    buffer = msgspec.structs.replace(parts.buffer.state(), waiting=parts.lane.waiting)
    yield STORED.at(buffer.stored)
    yield STORED_BYTES.at(buffer.bytes)
    yield WAITING.at(buffer.waiting)
    yield DROPPED.at(buffer.dropped)
