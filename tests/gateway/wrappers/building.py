"""The sources of the sample building, as its schema defines them."""

from functools import cache
from pathlib import Path

from streamsql.catalog.definitions import SourceDefinition
from tests.streamsql.from_text import catalog_of

SCHEMA = Path(__file__).parents[3] / "deploy" / "schema" / "building.sql"


@cache
def building_sources() -> dict[str, SourceDefinition]:
    """Return the streams of `deploy/schema/building.sql` by name."""
    catalog = catalog_of(SCHEMA.read_text(encoding="utf-8"))
    return {source.name: source for source in catalog.sources}
