"""Reports of a gateway about its endpoints: their connectors, and how they can be browsed."""

import logging
from collections.abc import Mapping
from typing import Any

from gateway.connectors.options import CONNECTOR
from gateway.gateway_settings import GatewaySettings
from streamsql.catalog.connectors import BROWSED_CONNECTORS, MESSAGE_CONNECTORS, ConnectorKind
from streamsql.errors import DeploymentError
from streamsql.wire.site_messages import EndpointState

log = logging.getLogger(__name__)


def endpoint_states(settings: GatewaySettings) -> tuple[EndpointState, ...]:
    """Return what to tell of the endpoints in a gateway's settings.

    The class of a plug-in is loaded for it; ours are not.
    """
    found: dict[str, tuple[bool, bool]] = {}
    for options in settings.endpoints.values():
        kind = str(options[CONNECTOR])
        if kind not in found:
            ours = kind in tuple(ConnectorKind)
            found[kind] = _of_ours(kind) if ours else _of_plug_in(kind, settings)
    return tuple(_state(name, options, found) for name, options in settings.endpoints.items())


def _state(
    name: str, options: Mapping[str, Any], found: Mapping[str, tuple[bool, bool]]
) -> EndpointState:
    kind = str(options[CONNECTOR])
    listens, browses = found[kind]
    return EndpointState(name, kind, listens=listens, browses=browses)


def _of_ours(kind: str) -> tuple[bool, bool]:
    return kind in MESSAGE_CONNECTORS, kind in BROWSED_CONNECTORS


def _of_plug_in(kind: str, settings: GatewaySettings) -> tuple[bool, bool]:
    from gateway.connectors.browsing import Browser  # noqa: PLC0415  (for plug-ins only)
    from gateway.connectors.registry import ConnectorRegistry  # noqa: PLC0415

    registry = ConnectorRegistry(settings.connectors)
    try:
        connector = registry.factory(kind)()
    except DeploymentError as error:
        log.debug("endpoints of %s can be neither listened to nor browsed: %s", kind, error)
        return False, False  # sources that use it say why
    listens = getattr(connector, "hands_over_records", False) is not True
    return listens, isinstance(connector, Browser)
