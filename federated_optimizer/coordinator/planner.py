"""From a statement's text to a bundle, with the catalog and the sites as they are now."""

from dataclasses import dataclass

from federated_optimizer.coordinator.membership import Membership
from federated_optimizer.placement import Topology, colocation_of
from federated_optimizer.planning import plan
from streamsql.algebra.operators import Scan, SourceKind, walk_plan
from streamsql.binder import BoundQuery, bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.errors import InternalError
from streamsql.syntax import Query, Subscribe, parse_statement
from streamsql.syntax.statements import Statement
from streamsql.wire.fragments import Engine, FragmentBundle


@dataclass(frozen=True, slots=True)
class Planned:
    """A bundle and what its author should know."""

    bundle: FragmentBundle
    warnings: tuple[str, ...]


class Planner:
    """Binds and places queries.

    It remembers which gateway had which source, from births and from bundles of before a restart:
    a gateway that is away, or whose birth has not arrived yet, keeps its part of a plan.
    """

    def __init__(
        self, catalog: Catalog, membership: Membership, *, bases: tuple[str, ...], static: str
    ) -> None:
        self._catalog = catalog
        self._membership = membership
        self._bases = bases
        self._static = static
        self._remembered: dict[str, set[str]] = {}

    def remember(self, bundle: FragmentBundle) -> None:
        """Take the gateways of a bundle as owners of the streams it reads there."""
        for fragment in bundle.fragments:
            if fragment.engine == Engine.GATEWAY:
                for node in walk_plan(fragment.plan):
                    if isinstance(node, Scan) and node.kind != SourceKind.TABLE:
                        for site in fragment.sites:
                            self._remembered.setdefault(site, set()).add(node.source.lower())

    def forget(self, site: str) -> None:
        """Drop a site that was removed for good."""
        self._remembered.pop(site, None)

    def topology(self) -> Topology:
        """Return the sites as known now."""
        for site, sources in self._membership.sources().items():
            self._remembered.setdefault(site, set()).update(sources)
        others = self._membership.with_role("base")
        bases = self._bases + tuple(site for site in others if site not in self._bases)
        return Topology(
            gateways={site: frozenset(names) for site, names in self._remembered.items()},
            bases=bases,
            static=self._static,
            colocation=colocation_of(self._catalog),
        )

    def bind(self, statement: Statement) -> BoundQuery:
        """Return the bound query of a SELECT or SUBSCRIBE.

        Raises:
            QueryError: It is wrong.
        """
        return bind_query(query_of(statement), self._catalog)

    def place(
        self, bound: BoundQuery, *, query: str, version: int = 1, text: str = ""
    ) -> FragmentBundle:
        """Return the bundle of a bound query."""
        return plan(bound, self.topology(), query=query, version=version, text=text)

    def planned(self, text: str, *, query: str, version: int) -> Planned:
        """Return bundle and warnings of a query's text.

        Raises:
            QueryError: It is wrong, perhaps only since the catalog has changed.
        """
        bound = self.bind(parse_statement(text))
        bundle = self.place(bound, query=query, version=version, text=text)
        return Planned(bundle, tuple(bound.warnings))


def query_of(statement: Statement) -> Query:
    """Return the query inside a SELECT or SUBSCRIBE."""
    match statement:
        case Query():
            return statement
        case Subscribe(inner=inner):
            return inner
        case _:
            raise InternalError(f"{type(statement).__name__} is not a query")
