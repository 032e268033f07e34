"""What a site says about itself: birth and state."""

import logging
from collections.abc import Callable, Iterable, Sequence

from gateway.session.identity import Session
from gateway.settings import GatewaySettings
from host.clocks import wall_clock
from streamsql.data.types import Row
from streamsql.wire.site_messages import (
    Birth,
    BufferState,
    ClockState,
    SiteState,
    SourceRows,
    WrapperState,
)
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.source_shapes import shape_of

log = logging.getLogger(__name__)

MAX_BIRTH_ROWS = 20_000
MAX_DETAIL = 500
CAPABILITIES = ("filter", "project", "window", "join", "aggregate", "fixpoint")


def birth_of(
    settings: GatewaySettings,
    session: Session,
    *,
    wrappers: Sequence[WrapperState],
    rows: Callable[[str], list[Row]],
) -> Birth:
    """Return everything a site has.

    Args:
        settings: Its settings.
        session: Its present life.
        wrappers: How its wrappers are doing.
        rows: Returns the current rows of a source.
    """
    left = MAX_BIRTH_ROWS
    current: list[SourceRows] = []
    for definition in settings.sources:
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
        sensors=settings.sensors,
        wrappers=tuple(wrappers),
        sources=_sources(settings),
        rooms=settings.rooms,
        current=tuple(current),
        capabilities=CAPABILITIES,
        shapes=tuple(shape_of(definition.scan()) for definition in settings.sources),
    )


def state_of(  # noqa: PLR0913  (each comes from elsewhere)
    settings: GatewaySettings,
    session: Session,
    *,
    problems: Iterable[str],
    buffer: BufferState,
    wrappers: Sequence[WrapperState],
    counters: dict[str, int],
    engine: SiteSettings,
    clock: ClockState,
) -> SiteState:
    """Return the state of a site that is online."""
    return SiteState(
        online=True,
        epoch=session.epoch,
        ts=wall_clock(),
        role=settings.role,
        detail="; ".join(problem for problem in problems if problem)[:MAX_DETAIL],
        instance=session.instance,
        buffer=buffer,
        counters=counters,
        started=session.started,
        wrappers=tuple(wrappers),
        settings=engine,
        clock=clock,
        sources=_sources(settings),
    )


def ended_state(settings: GatewaySettings, session: Session, reason: str) -> SiteState:
    """Return the state of a site that is not there: its will, or its last word.

    Args:
        settings: Its settings.
        session: Its present life.
        reason: "lost" or "stopped".
    """
    return SiteState(
        online=False,
        epoch=session.epoch,
        ts=session.started,
        role=settings.role,
        reason=reason,
        instance=session.instance,
        started=session.started,
        sources=_sources(settings),
    )


def _sources(settings: GatewaySettings) -> tuple[str, ...]:
    return tuple(definition.name for definition in settings.sources)
