"""The sites that a query can be placed on, and which rows stay together at a gateway."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from streamsql.algebra.operators import Plan, Scan, SourceKind
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.system import is_site_source, is_system_table

ENGINE_SITE = "engine site"
"""The co-location group of the columns that name the site a row tells of; no column is so called,
so no source of a user can be in it."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The sites of a federation as the optimizer sees them. Source names are in lower case.

    Attributes:
        gateways: Gateway id to the sources it has rows of.
        bases: Base sites; recursion and joins across gateways are spread over them, the first
            one gathers results.
        static: The static engine's site.
        coordinator: The site that keeps the system's tables.
        colocation: (source, column) to a group name. Rows whose values in columns of one group
            are equal come from the same gateway, whatever the source; NULL counts as a value.
        absent: Gateways that have been away for so long that recursions, and joins of rows of
            different gateways, are computed without them.
    """

    gateways: Mapping[str, frozenset[str]]
    bases: tuple[str, ...] = ("base",)
    static: str = "static"
    coordinator: str = "coordinator"
    colocation: Mapping[tuple[str, str], str] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse a federation without a base site."""
        if not self.bases:
            raise ValueError("a federation needs at least one base site")

    @property
    def engines(self) -> tuple[str, ...]:
        """All engine sites, sorted."""
        return tuple(sorted({*self.gateways, *self.bases}))

    def keeper(self, table: str) -> str:
        """Return the site that has a table."""
        return self.coordinator if is_system_table(table) else self.static

    def group(self, source: str, column: str) -> str | None:
        """Return the co-location group of a column, or None."""
        if is_site_source(source):
            return ENGINE_SITE if column.lower() == "site" else None
        return self.colocation.get((source.lower(), column.lower()))

    def owners(self, source: str) -> tuple[str, ...]:
        """Return the gateways that have rows of a source, sorted.

        Of what engine sites tell about themselves every one has some, base sites too.
        """
        if is_site_source(source):
            return self.engines
        name = source.lower()
        return tuple(sorted(g for g, sources in self.gateways.items() if name in sources))


def colocation_of(definitions: Iterable[Definition]) -> dict[tuple[str, str], str]:
    """Read the option `colocate = 'column, …'` of sources.

    Columns of the same name in different sources form one group. A name that is no column of the
    source is ignored here; the statement that defines the source is where it is reported.

    Examples:
        >>> from streamsql.algebra.operators import SourceKind
        >>> from streamsql.data.schema import Schema
        >>> from streamsql.data.types import DataType
        >>> seat = SourceDefinition(
        ...     "seat",
        ...     SourceKind.STREAM,
        ...     Schema.of(("rid", DataType.TEXT)),
        ...     options=(("colocate", "rid"),),
        ... )
        >>> colocation_of([seat])
        {('seat', 'rid'): 'rid'}
    """
    found: dict[tuple[str, str], str] = {}
    for definition in definitions:
        if not isinstance(definition, SourceDefinition):
            continue
        colocated = definition.option("colocate")
        if not colocated:  # as with most
            continue
        columns = {name.lower() for name in definition.schema.names}
        for name in colocated.split(","):
            column = name.strip().lower()
            if column in columns:
                found[definition.name.lower(), column] = column
    return found


def is_of_devices(node: Plan) -> TypeGuard[Scan]:
    """Return whether a node reads what only some gateways have."""
    if not isinstance(node, Scan) or node.kind == SourceKind.TABLE:
        return False
    return not is_site_source(node.source)
