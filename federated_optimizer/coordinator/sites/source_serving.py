"""Which gateways serve a declared source, and why rows of others are missing."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from federated_optimizer.coordinator.contract.coordinator_model import SiteInfo
from host.clocks import monotonic_clock
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.connectors import ConnectorKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.assignment import Assigned, Unserved, assignment
from streamsql.mapping.source_mapping import SourceMapping
from streamsql.syntax.cursor import nearest
from streamsql.wire.site_messages import SiteRole

OFFLINE = "is offline"
MAX_NAMED = 20
"""Endpoints that a warning names."""
PATIENCE = 30_000_000
"""Microseconds in which a gateway that is there takes a definition over and reports it."""
_OLDER = "it may run an older release"


@dataclass(frozen=True, slots=True)
class MissingRows:
    """Why rows of a declared source are missing.

    Attributes:
        is_awaited: A gateway that is there has not reported the catalog's definition. Nobody knows
            what it sends until then, so no answer is settled.
    """

    reason: str
    is_awaited: bool = False


@dataclass(slots=True)
class Serving:
    """Gateways of a declared source, by how they serve it.

    Attributes:
        serving: Those that serve it.
        missing: Why rows are missing, by gateway; under "" why nobody serves it.
    """

    serving: list[str] = field(default_factory=list)
    missing: dict[str, MissingRows] = field(default_factory=dict)


class AwaitedDefinitions:
    """Since when gateways have owed a report on the catalog's definition of a source.

    Args:
        clock: Microseconds that only grow.
    """

    def __init__(self, clock: Callable[[], int] = monotonic_clock) -> None:
        self._clock = clock
        self._since: dict[tuple[str, int, str], int] = {}
        self._is_late: set[tuple[str, int, str]] = set()

    def note(self, awaited: Iterable[tuple[str, int, str]]) -> None:
        """Note what is awaited now: source, version of its definition, and gateway."""
        now = self._clock()
        self._since = {each: self._since.get(each, now) for each in awaited}
        self._is_late &= self._since.keys()

    def look(self) -> bool:
        """Return whether something has become late since the last look."""
        ago = self._clock() - PATIENCE
        late = {each for each, since in self._since.items() if since <= ago}
        is_new, self._is_late = late != self._is_late, late
        return is_new

    def late(self) -> dict[str, frozenset[str]]:
        """Return the sources whose reports are late, by gateway."""
        found: dict[str, set[str]] = {}
        for source, _version, site in self._is_late:
            found.setdefault(site, set()).add(source)
        return {site: frozenset(sources) for site, sources in found.items()}


def serving_of(
    source: SourceDefinition, mapping: SourceMapping, sites: Iterable[SiteInfo]
) -> Serving:
    """Return who serves a declared source."""
    known = tuple(sites)
    found = Serving()
    for site in known:
        match _problem(source, site):
            case MissingRows() as missing:
                found.missing[site.site] = missing
            case True:
                found.serving.append(site.site)
            case False:
                pass
    for gateway in sorted(set(mapping.gateways) - {site.site for site in known}):
        found.missing[gateway] = MissingRows("has never reported")
    if not found.serving and not found.missing:
        where = f"endpoint {mapping.endpoint}" if mapping.endpoint else "an endpoint"
        found.missing[""] = MissingRows(f"no gateway has {where} of connector {mapping.connector}")
    return found


def missing_rows(catalog: Catalog, sites: Iterable[SiteInfo]) -> dict[str, dict[str, MissingRows]]:
    """Return why rows of declared sources are missing, by source and gateway.

    Gateways that are offline are left out: that is said of every query that has to do with them.
    """
    known = tuple(sites)
    found = {}
    for source in catalog.sources:
        if source.mapping is not None:
            missing = serving_of(source, source.mapping, known).missing
            found[source.name.lower()] = {
                site: gap for site, gap in missing.items() if gap.reason != OFFLINE
            }
    return found


def awaited_in(
    catalog: Catalog, missing: Mapping[str, Mapping[str, MissingRows]]
) -> Collection[tuple[str, int, str]]:
    """Return of which definitions reports of gateways are awaited; see `AwaitedDefinitions`."""
    return [
        (source.name, source.version, site)
        for source in catalog.sources
        for site, gap in missing.get(source.name.lower(), {}).items()
        if gap.is_awaited
    ]


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
    kinds = {kind for its in gateways.values() for kind in its.values()}
    return (
        f"no gateway has {where} of connector {mapping.connector} yet{there}; queries over it wait "
        f"for a gateway that has{_meant(mapping.connector, kinds)}",
    )


def _meant(connector: str, kinds: Collection[str]) -> str:
    """Return which connector a name may mean that is neither ours nor that of an endpoint."""
    ours = tuple(ConnectorKind)
    if connector in kinds or connector in ours:
        return ""
    close = nearest(connector, (*ours, *sorted(kinds)), 0.75)
    return f"; did you mean connector {close}?" if close else ""


def _problem(source: SourceDefinition, site: SiteInfo) -> MissingRows | bool:
    """Return why rows of a gateway are missing; else whether it serves the source."""
    state = site.figures or site.state
    told = next((d for d in state.declared if d.name == source.name), None) if state else None
    if told is None:
        return _untold(source, site)
    if not site.online:
        return MissingRows(OFFLINE)
    if told.problem:
        return MissingRows(told.problem)
    if told.version != source.version:
        late = f"; {_OLDER}" if source.name in site.late_sources else ""
        reason = f"serves version {told.version}, not {source.version}{late}"
        return MissingRows(reason, is_awaited=True)
    return True


def _untold(source: SourceDefinition, site: SiteInfo) -> MissingRows | bool:
    """Return the same of a gateway whose state does not name the source, perhaps not yet."""
    state = site.figures or site.state
    if state is None or source.mapping is None or not site.online:
        return False
    endpoints = {each.name: each.connector for each in state.endpoints}
    match assignment(source.mapping, site.site, endpoints):
        case Assigned():
            is_late = source.name in site.late_sources
            reason = f"has not reported it; {_OLDER}" if is_late else "has not reported it yet"
            return MissingRows(reason, is_awaited=True)
        case Unserved(reason=reason):
            return MissingRows(reason)
        case None:
            return False
