"""A gateway's declared sources with the connectors that read them."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from gateway.connectors.options import CONNECTOR, CORRECT_TIMES
from gateway.declared.declared_sources import Connectors, DeclaredSources, Definitions
from gateway.declared.source_book import SourceBook
from gateway.gateway_settings import GatewaySettings
from gateway.intake.devices import Devices, EndpointPort
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.mapping.assignment import Assigned, assignment
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.site_messages import SiteRole

BOOK = "declared_sources.json"


def declared_sources(  # noqa: PLR0913  (each is one seam)
    settings: GatewaySettings,
    book: SourceBook,
    *,
    engine: RecordedSite,
    devices: Devices,
    kept: Callable[[], Awaitable[None]],
    on_redefined: Callable[[str, Sequence[FragmentBundle]], None],
    on_definitions: Callable[[Definitions], None],
) -> DeclaredSources:
    """Return the sources of a site: what its book has kept, and whatever is ordered later.

    A base site reads no devices; it learns how sources are defined.
    """
    return DeclaredSources(
        settings.gateway,
        _kinds(settings),
        book=book,
        engine=engine,
        make_connectors=partial(_connectors, settings, devices, kept)
        if settings.role == SiteRole.GATEWAY
        else None,
        on_redefined=on_redefined,
        on_definitions=on_definitions,
    )


def kept_sources(settings: GatewaySettings, book: SourceBook) -> Definitions:
    """Return the sources that a site serves by what its book has kept."""
    if settings.role != SiteRole.GATEWAY:
        return {}
    endpoints = _kinds(settings)
    return {
        definition.name: definition
        for definition in book.all()
        if definition.mapping is not None
        and isinstance(assignment(definition.mapping, settings.gateway, endpoints), Assigned)
    }


def _kinds(settings: GatewaySettings) -> dict[str, str]:
    return {name: str(options[CONNECTOR]) for name, options in settings.endpoints.items()}


def _connectors(
    settings: GatewaySettings, devices: Devices, kept: Callable[[], Awaitable[None]]
) -> Connectors:
    """Return the connectors; a gateway without declared sources loads none of this."""
    from gateway.connectors.registry import ConnectorRegistry  # noqa: PLC0415
    from gateway.connectors.running_connectors import RunningConnectors, Runtime  # noqa: PLC0415
    from streamsql.mapping.mapper import Mapper  # noqa: PLC0415

    runtime = Runtime(
        gateway=settings.gateway,
        clock=devices.clock,
        registry=ConnectorRegistry(settings.connectors),
        open_port=partial(_open_port, settings, devices),
        close_port=devices.detach,
        kept=kept,
        make_mapper=Mapper,
        correction=devices.correction,
    )
    return RunningConnectors(settings.endpoints, runtime)


def _open_port(
    settings: GatewaySettings, devices: Devices, endpoint: str, kind: str, streams: tuple[str, ...]
) -> EndpointPort:
    correct_times = bool(settings.endpoints[endpoint].get(CORRECT_TIMES))
    return devices.attach(endpoint, kind, streams, correct_times=correct_times)
