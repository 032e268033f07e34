"""Sites without what they say of sources that may not be read."""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import SiteInfo
from streamsql.wire.site_messages import ConnectorState, SiteState


def shown_site(site: SiteInfo, may_read: Callable[[str], bool]) -> SiteInfo:
    """Return a site as somebody may see it who does not run the federation.

    The problems of a source quote its payloads, and so do those of the connectors that read it.

    Args:
        site: As it is.
        may_read: Whether a source may be read, by its name.
    """
    return replace(
        site,
        sources=tuple(name for name in site.sources if may_read(name)),
        connectors=_shown_connectors(site.connectors, may_read),
        state=None if site.state is None else _shown_state(site.state, may_read),
        figures=None if site.figures is None else _shown_state(site.figures, may_read),
        differences=(),
    )


def _shown_state(state: SiteState, may_read: Callable[[str], bool]) -> SiteState:
    hidden = any(not may_read(each.table) for each in state.table_problems)
    return msgspec.structs.replace(
        state,
        detail="" if hidden else state.detail,  # it quotes them
        connectors=_shown_connectors(state.connectors, may_read),
        sources=tuple(name for name in state.sources if may_read(name)),
        declared=tuple(each for each in state.declared if may_read(each.name)),
        table_problems=tuple(each for each in state.table_problems if may_read(each.table)),
    )


def _shown_connectors(
    connectors: tuple[ConnectorState, ...], may_read: Callable[[str], bool]
) -> tuple[ConnectorState, ...]:
    return tuple(
        connector
        if connector.streams and all(map(may_read, connector.streams))
        else msgspec.structs.replace(
            connector, streams=tuple(filter(may_read, connector.streams)), last_error="", note=""
        )
        for connector in connectors
    )
