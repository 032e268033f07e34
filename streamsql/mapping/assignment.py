"""Which endpoint of a gateway serves a declared source, if any."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamsql.mapping.source_mapping import SourceMapping

Endpoints = Mapping[str, str]
"""A gateway's endpoints by name, each with the kind of its connector."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A source is served here, through an endpoint."""

    endpoint: str


@dataclass(frozen=True, slots=True)
class Unserved:
    """A source concerns this gateway, which cannot serve it."""

    reason: str


def assignment(
    mapping: SourceMapping, gateway: str, endpoints: Endpoints
) -> Assigned | Unserved | None:
    """Return how a gateway stands to a source; None: the source is for others.

    A source that names gateways is for those. Else it is for every gateway that has its endpoint,
    or, where it names none, an endpoint of its connector.
    """
    if mapping.gateways and gateway not in mapping.gateways:
        return None
    named = bool(mapping.gateways)
    if mapping.endpoint:
        return _by_name(mapping.endpoint, mapping.connector, endpoints, named=named)
    fitting = [name for name, kind in endpoints.items() if kind == mapping.connector]
    if len(fitting) == 1:
        return Assigned(fitting[0])
    if fitting:
        return Unserved(
            f"it names no endpoint, and {len(fitting)} here are of connector "
            f"{mapping.connector}: {', '.join(sorted(fitting)[:10])}"
        )
    return Unserved(f"no endpoint here is of connector {mapping.connector}") if named else None


def _by_name(
    name: str, connector: str, endpoints: Endpoints, *, named: bool
) -> Assigned | Unserved | None:
    found = endpoints.get(name)
    if found is None:
        if not named:
            return None
        known = ", ".join(sorted(endpoints)[:10]) or "none"
        return Unserved(f"endpoint {name!r:.60} is unknown here; there are: {known}")
    if found != connector:
        return Unserved(f"endpoint {name} is of connector {found:.60} here, not {connector}")
    return Assigned(name)
