"""Ways to extend a running network by a query: the configurations that are compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from federated_optimizer import Topology, plan
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.syntax import Query, parse_statement
from streamsql.wire.fragments import FragmentBundle

OFF = "off"


@dataclass(frozen=True, slots=True)
class Registered:
    """What a new query adds to the network.

    Attributes:
        bundles: To install, in this order.
        run: The name of the run whose rows are the answer.
    """

    bundles: tuple[FragmentBundle, ...]
    run: str


class Registry(Protocol):
    """What knows the queries that run."""

    def register(self, text: str) -> Registered:
        """Return what a query's text adds to the network."""
        ...


class Unshared:
    """Each query has fragments of its own."""

    def __init__(self, catalog: Catalog, topology: Topology) -> None:
        self._catalog, self._topology = catalog, topology
        self._count = 0

    def register(self, text: str) -> Registered:
        """Return the whole plan of a query."""
        statement = parse_statement(text)
        if not isinstance(statement, Query):
            raise TypeError(f"{text!r} is no query")
        self._count += 1
        name = f"q{self._count}"
        bound = bind_query(statement, self._catalog)
        return Registered((plan(bound, self._topology, query=name),), name)


CONFIGURATIONS: Mapping[str, Callable[[Catalog, Topology], Registry]] = {OFF: Unshared}
"""By name."""
