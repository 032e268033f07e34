"""A gateway's declared sources with the connectors that read them."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from gateway.declared.declared_sources import Connectors, DeclaredSources, Definitions
from gateway.declared.source_book import SourceBook
from gateway.intake.devices import Devices
from gateway.settings import CONNECTOR, GatewaySettings
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.wire.fragments import FragmentBundle

BOOK = "declared_sources.json"


def declared_sources(  # noqa: PLR0913  (each is one seam)
    settings: GatewaySettings,
    folder: Path,
    *,
    engine: RecordedSite,
    devices: Devices,
    kept: Callable[[], Awaitable[None]],
    on_redefined: Callable[[str, Sequence[FragmentBundle]], None],
    on_definitions: Callable[[Definitions], None],
) -> DeclaredSources:
    """Return the sources of a site: what its folder has kept, and whatever is ordered later.

    A base site reads no devices; it learns how sources are defined.
    """
    return DeclaredSources(
        settings.gateway,
        settings.sources,
        {name: str(options[CONNECTOR]) for name, options in settings.endpoints.items()},
        book=SourceBook(folder / BOOK),
        engine=engine,
        make_connectors=partial(_connectors, settings, devices, kept)
        if settings.role == "gateway"
        else None,
        on_redefined=on_redefined,
        on_definitions=on_definitions,
    )


def _connectors(
    settings: GatewaySettings, devices: Devices, kept: Callable[[], Awaitable[None]]
) -> Connectors:
    """Return the connectors; a gateway without declared sources loads none of this."""
    from gateway.connectors.registry import ConnectorRegistry  # noqa: PLC0415
    from gateway.connectors.running import RunningConnectors, Runtime  # noqa: PLC0415
    from streamsql.mapping.mapper import Mapper  # noqa: PLC0415

    runtime = Runtime(
        gateway=settings.gateway,
        clock=devices.clock,
        registry=ConnectorRegistry(settings.connectors),
        open_port=devices.attach,
        close_port=devices.detach,
        kept=kept,
        make_mapper=Mapper,
    )
    return RunningConnectors(settings.endpoints, runtime)
