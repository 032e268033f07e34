"""Who has what: the sites a query can be placed on, and which rows stay together at a gateway."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streamsql.catalog.definitions import Definition, SourceDefinition


@dataclass(frozen=True, slots=True)
class Topology:
    """The sites of a federation as the optimizer sees them. Source names are in lower case.

    Attributes:
        gateways: Gateway id to the sources it has rows of.
        bases: Base sites; recursion and joins across gateways are spread over them, the first
            one gathers results.
        static: The static engine's site.
        colocation: (source, column) to a group name. Rows whose values in columns of one group
            are equal come from the same gateway, whatever the source; NULL counts as a value.
        absent: Gateways that have been away for so long that recursions do without them.
    """

    gateways: Mapping[str, frozenset[str]]
    bases: tuple[str, ...] = ("base",)
    static: str = "static"
    colocation: Mapping[tuple[str, str], str] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse a federation without a base site."""
        if not self.bases:
            raise ValueError("a federation needs at least one base site")

    @staticmethod
    def partitioned(
        n: int,
        *,
        sources: Iterable[str] = (),
        colocation: Mapping[tuple[str, str], str] | None = None,
    ) -> "Topology":
        """Return n simulated sites that are gateways and bases at once and own every source.

        Tables belong to the first site. Rows of a source read by a base fragment itself (see
        `direct_scans`) must all be given to the first site.

        Examples:
            >>> Topology.partitioned(2, sources=["link"]).bases
            ('site-0', 'site-1')
        """
        sites = tuple(f"site-{i}" for i in range(n))
        owned = frozenset(name.lower() for name in sources)
        return Topology(
            gateways=dict.fromkeys(sites, owned),
            bases=sites,
            static=sites[0],
            colocation=colocation or {},
        )

    def owners(self, source: str) -> tuple[str, ...]:
        """Return the gateways that have rows of a source, sorted."""
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
        for name in (definition.option("colocate") or "").split(","):
            column = name.strip().lower()
            if column in {c.lower() for c in definition.schema.names}:
                found[definition.name.lower(), column] = column
    return found
