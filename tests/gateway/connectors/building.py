"""The sources of the sample building, as its schema defines them, and connectors that feed them."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.reading import Memory
from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.mapper import Mapper
from tests.streamsql.from_text import catalog_of

SCHEMA = Path(__file__).parents[3] / "deploy" / "schema" / "building.sql"


@cache
def building_sources() -> dict[str, SourceDefinition]:
    """Return the streams of `deploy/schema/building.sql` by name."""
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"))
    return {source.name: source for source in catalog.sources}


def context_for(  # noqa: PLR0913  (what a connector is given)
    sources: Iterable[SourceDefinition],
    endpoint: Mapping[str, object],
    *,
    clock: Callable[[], int],
    emit: Any,
    problem: Callable[[str], None],
    memory: Memory | None = None,
    **changes: Any,
) -> ConnectorContext:
    """Return what a connector of these sources is given."""
    declared = [
        DeclaredSource(each, Mapper(each), clock, {"gateway": "gw-1"}, problem) for each in sources
    ]
    return ConnectorContext(
        gateway="gw-1",
        endpoint_name="here",
        endpoint=endpoint,
        sources=declared,
        clock=clock,
        emit=emit,
        problem=problem,
        memory=memory,
        **changes,
    )


def fed_by(connector: str) -> list[SourceDefinition]:
    """Return the building's sources of a connector."""
    found = building_sources().values()
    return [each for each in found if each.mapping and each.mapping.connector == connector]
