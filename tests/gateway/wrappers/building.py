"""The sources of the sample building, as its schema defines them."""

from functools import cache
from pathlib import Path

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.syntax import parse_script

SCHEMA = Path(__file__).parents[3] / "deploy" / "schema" / "building.sql"


@cache
def building_sources() -> dict[str, SourceDefinition]:
    """Return the streams of `deploy/schema/building.sql` by name."""
    catalog = Catalog()
    for statement in parse_script(SCHEMA.read_text(encoding="utf-8")):
        catalog.define(define(statement, catalog))  # type: ignore[arg-type]
    return {source.name: source for source in catalog.sources}
