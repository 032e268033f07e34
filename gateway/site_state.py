"""The state that a site publishes while it is online."""

from typing import Protocol

import msgspec

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.declared.declared_sources import DeclaredSources
from gateway.gateway_settings import GatewaySettings
from gateway.intake.devices import Devices
from gateway.intake.observations import ObservationLane
from gateway.session.clock_exchange import ClockExchange
from gateway.session.connection_problems import ConnectionProblems
from gateway.session.description import sources_of
from gateway.session.identity import Session
from gateway.site.host import SiteHost
from gateway.state.state_keeper import StateKeeper
from host.clocks import wall_clock
from host.mqtt import MessageClient
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.user_functions import INSTALLED
from streamsql.catalog.system import is_site_source
from streamsql.wire.site_messages import EndpointState, SiteRole, SiteState, SourceCount

MAX_DETAIL = 500


class Parts(Protocol):
    """The parts of a gateway that its state tells about."""

    settings: GatewaySettings
    session: Session
    client: MessageClient
    engine: RecordedSite
    host: SiteHost
    devices: Devices
    declared: DeclaredSources
    endpoints: tuple[EndpointState, ...]
    buffer: DiskBuffer
    lane: ObservationLane
    keeper: StateKeeper
    clock: ClockExchange
    connection_problems: ConnectionProblems


def present_state(parts: Parts) -> SiteState:
    """Return what a site says about itself now."""
    host, devices, now = parts.host, parts.devices, wall_clock()
    problems = [
        host.problem,
        parts.buffer.problem,
        parts.keeper.problem,
        parts.declared.problem,
        *devices.problems(),
        *devices.notes(),
        parts.clock.problem(),
    ]
    return SiteState(
        online=True,
        epoch=parts.session.epoch,
        ts=now,
        role=parts.settings.role,
        detail="; ".join(filter(None, problems))[:MAX_DETAIL],
        instance=parts.session.instance,
        started=parts.session.started,
        sources=sources_of(tuple(parts.declared.definitions.values())),
        declared=parts.declared.states(),
        endpoints=parts.endpoints,
        buffer=msgspec.structs.replace(parts.buffer.state(), waiting=parts.lane.waiting),
        connectors=tuple(device.state() for device in devices.all),
        counters={
            "batches_sent": host.batches_sent,
            "batches_received": host.inbox.batches,
            "bad_payloads": host.dead_letters.count,
            "step_defects": host.defects.count,
            "pending": parts.client.pending(),
            "readings": sum(device.readings for device in devices.all),
            "errors": sum(device.errors for device in devices.all),
            "function_failures": INSTALLED.failed,
        },
        settings=parts.engine.settings,
        counted=_counted(parts),
        clock=parts.clock.state(),
        connection=parts.connection_problems.last,
    )


def _counted(parts: Parts) -> dict[str, tuple[int, int]]:
    """Return counts of the sources that are read from devices here, not of those about sites."""
    if parts.settings.role != SiteRole.GATEWAY:
        return {}
    counted = parts.engine.counted().items()
    return {name: counts for name, counts in counted if not is_site_source(name)}


def counted_columns(parts: Parts) -> list[SourceCount]:
    """Return the news of the columns of the same sources, each once."""
    if parts.settings.role != SiteRole.GATEWAY:
        return []
    columns = parts.engine.column_counts(wall_clock()).items()
    return [count for name, count in columns if not is_site_source(name)]
