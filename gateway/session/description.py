"""Description of a site by itself: birth and state."""

import logging
from collections.abc import Callable, Sequence

from gateway.gateway_settings import GatewaySettings
from gateway.session.identity import Session
from host.clocks import wall_clock
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from streamsql.wire.site_messages import (
    Birth,
    ConnectorState,
    SensorDescription,
    SiteState,
    SourceRows,
)
from streamsql.wire.source_shapes import shape_of

log = logging.getLogger(__name__)

MAX_BIRTH_ROWS = 20_000
CAPABILITIES = ("filter", "project", "window", "join", "aggregate", "fixpoint")


def birth_of(  # noqa: PLR0913  (what a birth consists of)
    settings: GatewaySettings,
    session: Session,
    *,
    definitions: Sequence[SourceDefinition],
    connectors: Sequence[ConnectorState],
    sensors: Sequence[SensorDescription],
    rooms: Sequence[str],
    rows: Callable[[str], list[Row]],
) -> Birth:
    """Return everything a site has; `rows` returns the current rows of a source."""
    left = MAX_BIRTH_ROWS
    current: list[SourceRows] = []
    for definition in definitions:
        if definition.key:
            present = rows(definition.name)
            if len(present) > left:
                log.warning(
                    "the birth names %d of %d rows of %s", left, len(present), definition.name
                )
            current.append(SourceRows(definition.name, tuple(present[:left])))
            left -= len(current[-1].rows)
    return Birth(
        gateway=settings.gateway,
        epoch=session.epoch,
        seq=0,
        ts=wall_clock(),
        role=settings.role,
        sensors=tuple(sensors),
        connectors=tuple(connectors),
        sources=sources_of(definitions),
        rooms=tuple(rooms),
        current=tuple(current),
        capabilities=CAPABILITIES,
        shapes=tuple(shape_of(definition.scan()) for definition in definitions),
    )


def ended_state(
    settings: GatewaySettings,
    session: Session,
    reason: str,
    definitions: Sequence[SourceDefinition],
) -> SiteState:
    """Return the state of a site that is away, "lost" or "stopped": its will, or its last word."""
    return SiteState(
        online=False,
        epoch=session.epoch,
        ts=session.started,
        role=settings.role,
        reason=reason,
        instance=session.instance,
        started=session.started,
        sources=sources_of(definitions),
    )


def sources_of(definitions: Sequence[SourceDefinition]) -> tuple[str, ...]:
    """Return the names of a site's sources."""
    return tuple(definition.name for definition in definitions)
