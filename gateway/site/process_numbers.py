"""Counters of a site's process outside its engine, for `sys_stream`."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from gateway.site.traffic import ChannelCounts, Traffic
from host.mqtt.dead_letters import DeadLetters
from host.process_memory import resident_bytes
from stream_engine.site.measured_values import Measured
from stream_engine.site.site_report import channel_to
from streamsql.wire.site_messages import BufferState, ConnectorState

_MEGABYTE = 1_000_000
PROCESS = -1
"""The life of what a process counts: the engine counts in others, which are versions of plans."""


class Host(Protocol):
    """The site's host as the counters need it."""

    traffic: Traffic
    dead_letters: DeadLetters
    steps: int
    worked_seconds: float

    @property
    def site(self) -> str:
        """The site's id."""


def measured_host(host: Host) -> Iterator[Measured]:
    """Yield what the host of a site has counted: its steps, and what went through channels."""
    site = host.site
    memory = resident_bytes()
    yield Measured(
        "",
        "site",
        site,
        life=PROCESS,
        counters={"worked_ms": host.worked_seconds * 1_000},
        totals={"_host_steps": host.steps},
        gauges={} if memory is None else {"memory_mb": memory / _MEGABYTE},
        ratios={"step_ms": ("worked_ms", "_host_steps")},
    )
    for (query, to), counts in host.traffic.to.items():
        yield _channel(query, channel_to(to), counts)
    for (query, sender), counts in host.traffic.by.items():
        yield _channel(query, f"from {sender}", counts)


def measured_process(host: Host, pending: int, buffer: BufferState) -> Iterator[Measured]:
    """Yield what a gateway's process has counted."""
    yield Measured(
        "",
        "gateway",
        host.site,
        totals={"bad_payloads": host.dead_letters.count},
        gauges={
            "messages_pending": pending,
            "buffer_stored": buffer.stored,
            "buffer_bytes": buffer.bytes,
            "buffer_dropped": buffer.dropped,
        },
    )


def measured_connectors(connectors: Sequence[ConnectorState]) -> Iterator[Measured]:
    """Yield what connectors have counted."""
    for connector in connectors:
        readings = {"readings": connector.readings}
        errors = {"errors": connector.errors}
        yield Measured("", "connector", connector.name, counters=readings, totals=errors)


def _channel(query: str, entity: str, counts: ChannelCounts) -> Measured:
    return Measured(
        query,
        "channel",
        entity,
        life=PROCESS,
        counters={"batches": counts.batches, "rows": counts.rows, "bytes": counts.bytes},
        totals={"resyncs": counts.resyncs} if entity.startswith("from ") else {},
    )
