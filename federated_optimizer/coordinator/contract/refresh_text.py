"""Views of `REFRESH AT` in words: when they are refreshed, when they were, and what went wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from federated_optimizer.coordinator.contract.coordinator_model import SiteInfo
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import timestamp_text
from streamsql.wire.site_messages import RefreshState

WHOLE = "a refresh recomputes the whole view; COST WEIGHTS are stored but have no effect yet"
"""What plans of such views have in common, for EXPLAIN."""


@dataclass(frozen=True, slots=True)
class Refreshes:
    """Refreshes of all views.

    Attributes:
        states: What the static engine says, by view; those it does not know yet are missing.
        zone: The time zone of the times of day.
    """

    states: Mapping[str, RefreshState] = field(default_factory=dict)
    zone: str = "UTC"


def refreshes_of(sites: Iterable[SiteInfo], zone: str) -> Refreshes:
    """Return what the static engine, one of the sites, tells."""
    told = [site.state.views for site in sites if site.state is not None]
    return Refreshes({state.view: state for states in told for state in states}, zone)


def refresh_facts(definition: SourceDefinition, known: Refreshes) -> tuple[str, ...]:
    """Return what is known of a view's refreshes, the times of day first."""
    if definition.refresh is None:
        return ()
    told = [f"refreshed at {definition.refresh.text}, time zone {known.zone}"]
    state = known.states.get(definition.name)
    if state is None:
        return (*told, "the static engine has not reported it")
    if state.last is None:
        told.append("not filled yet")
    else:
        rows = "1 row" if state.rows == 1 else f"{state.rows} rows"
        took = f" in {state.seconds:.3g} s" if state.seconds is not None else ""
        told.append(f"last refresh {timestamp_text(state.last)}: {rows}{took}")
    if state.next is not None:
        told.append(f"next refresh {timestamp_text(state.next)}")
    if state.problem:
        when = f" {timestamp_text(state.failed)}" if state.failed is not None else ""
        told.append(f"failed{when}: {state.problem}")
    return tuple(told)
