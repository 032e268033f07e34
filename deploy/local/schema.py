"""The relations of a site as definitions, from its script of CREATE statements."""

from pathlib import Path

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import is_system
from streamsql.syntax import parse_script
from streamsql.syntax.statements import CreateSource, CreateView

SCHEMAS = Path(__file__).resolve().parent.parent / "schema"


def catalog_of(script: str) -> Catalog:
    """Return the catalog that a script of CREATE statements makes.

    Raises:
        QueryError: A statement is wrong.
    """
    catalog = Catalog()
    for statement in parse_script(script):
        if isinstance(statement, CreateSource | CreateView):
            catalog.define(define(statement, catalog))
    return catalog


def streams_of(script: str) -> tuple[SourceDefinition, ...]:
    """Return the streams and link streams a script defines: not the system's, which need none."""
    return tuple(source for source in catalog_of(script).sources if not is_system(source))
