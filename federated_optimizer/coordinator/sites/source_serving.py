"""Which gateways serve a declared source, and why rows of others are missing."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from federated_optimizer.coordinator.contract.coordinator_model import SiteInfo
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.assignment import Assigned, Unserved, assignment
from streamsql.mapping.source_mapping import SourceMapping
from streamsql.wire.site_messages import SiteRole

OFFLINE = "is offline"
MAX_NAMED = 20
"""Endpoints that a warning names."""


@dataclass(slots=True)
class Serving:
    """How gateways stand to a declared source.

    Attributes:
        serving: Those that serve it.
        missing: Why rows are missing, by gateway; under "" why nobody serves it.
    """

    serving: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


def serving_of(
    source: SourceDefinition, mapping: SourceMapping, sites: Iterable[SiteInfo]
) -> Serving:
    """Return who serves a declared source."""
    known = tuple(sites)
    found = Serving()
    for site in known:
        problem = _problem(source, site)
        if problem:
            found.missing[site.site] = problem
        elif problem is not None:
            found.serving.append(site.site)
    for gateway in sorted(set(mapping.gateways) - {site.site for site in known}):
        found.missing[gateway] = "has never reported"
    if not found.serving and not found.missing:
        where = f"endpoint {mapping.endpoint}" if mapping.endpoint else "an endpoint"
        found.missing[""] = f"no gateway has {where} of connector {mapping.connector}"
    return found


def missing_rows(catalog: Catalog, sites: Iterable[SiteInfo]) -> dict[str, dict[str, str]]:
    """Return why rows of declared sources are missing, by source and gateway.

    Gateways that are offline are left out: that is said of every query that has to do with them.
    """
    known = tuple(sites)
    found = {}
    for source in catalog.sources:
        if source.mapping is not None:
            missing = serving_of(source, source.mapping, known).missing
            found[source.name.lower()] = {
                site: reason for site, reason in missing.items() if reason != OFFLINE
            }
    return found


def creation_warnings(mapping: SourceMapping, sites: Iterable[SiteInfo]) -> tuple[str, ...]:
    """Return why gateways cannot serve a source that is declared now, or why none will."""
    gateways = {
        site.site: {each.name: each.connector for each in site.figures.endpoints}
        for site in sites
        if site.role == SiteRole.GATEWAY and site.figures is not None
    }
    found = {name: assignment(mapping, name, its) for name, its in gateways.items()}
    unserved = tuple(
        f"gateway {name} cannot serve it: {each.reason}"
        for name, each in found.items()
        if isinstance(each, Unserved)
    )
    if any(isinstance(each, Assigned) for each in found.values()) or unserved:
        return unserved
    where = f"endpoint {mapping.endpoint}" if mapping.endpoint else "an endpoint"
    known = sorted({f"{name} ({kind})" for its in gateways.values() for name, kind in its.items()})
    there = f"; there are {', '.join(known[:MAX_NAMED])}" if known else ""
    return (
        f"no gateway has {where} of connector {mapping.connector} yet{there}; queries over it wait "
        "for a gateway that has",
    )


def _problem(source: SourceDefinition, site: SiteInfo) -> str | None:
    """Return why rows of a gateway are missing; empty: they are not; None: it is for others."""
    state = site.figures or site.state
    told = next((d for d in state.declared if d.name == source.name), None) if state else None
    if told is None:
        return _untold(source, site)
    if not site.online:
        return OFFLINE
    if told.problem:
        return told.problem
    if told.version != source.version:
        return f"serves version {told.version}, not {source.version}"
    return ""


def _untold(source: SourceDefinition, site: SiteInfo) -> str | None:
    """Return the same of a gateway whose state does not name the source, perhaps not yet."""
    state = site.figures or site.state
    if state is None or source.mapping is None or not site.online:
        return None
    endpoints = {each.name: each.connector for each in state.endpoints}
    match assignment(source.mapping, site.site, endpoints):
        case Assigned():
            return "has not reported it yet"
        case Unserved(reason=reason):
            return reason
        case None:
            return None
