"""Sources to read, from their statements: what a peer says of itself."""

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.syntax import CreateSource, parse_script


def definitions_of(text: str) -> list[SourceDefinition]:
    """Return the sources that CREATE SOURCE statements create, in their order.

    Raises:
        FederationError: A statement is wrong.
        ValueError: One creates no source, or one that no connector feeds.
    """
    catalog = Catalog()
    found: list[SourceDefinition] = []
    for statement in parse_script(text):
        defined = define(statement, catalog) if isinstance(statement, CreateSource) else None
        if not isinstance(defined, SourceDefinition) or defined.mapping is None:
            raise ValueError(
                f"{statement.text[:60]!r} creates no source that a connector feeds: write "
                "CREATE SOURCE … WITH (connector = '…')"
            )
        catalog.define(defined)
        found.append(defined)
    return found
