"""Networks of the same queries at sites in one process: how they are made, run and shown."""

import argparse
import gc
import json
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from federated_optimizer.network.topology import Topology
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.testing_network import Change
from federated_optimizer.testing_network import Network as Runs
from gateway.__main__ import COLLECTIONS
from stream_engine.simulation.network import Network
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta
from streamsql.syntax import parse_script, parse_statement
from streamsql.syntax.statements import CreateSource, Query

BASE = "base"

Figures = dict[str, float | str]


class QueriesAtSites:
    """Gateways and a base site, with queries that were registered one after the other.

    Attributes:
        sites: That run them.
        runs: The network of what they run.
        queries: The runs whose results the queries show, in the order of registration.

    Args:
        schema: Statements that create the sources; every gateway has each of them.
        gateways: Their names.
        sharing: The rules by which queries share.
    """

    def __init__(
        self,
        schema: str,
        gateways: Sequence[str],
        sharing: Sharing,
        planning: Callable[[Topology], Planning] = Planning,
    ) -> None:
        self._catalog = Catalog(())
        for statement in parse_script(schema):
            if isinstance(statement, CreateSource):
                self._catalog.define(define(statement, self._catalog))
        names = frozenset(source.name for source in self._catalog.sources)
        self._gateways = gateways
        self.sites = Network((*gateways, BASE))
        self.runs = Runs(planning(Topology(dict.fromkeys(gateways, names))), sharing)
        self.queries: list[str] = []
        self._declared: set[Scan] = set()

    def register(self, texts: Iterable[str], *, silent: bool = False) -> list[Change]:
        """Register queries, let sites run them until all is at rest, and return what changed.

        Nobody but other queries gets the rows of silent ones.
        """
        made = []
        for text in texts:
            bound = self._bound(text)
            self._declare(bound)
            change = self.runs.register(bound)
            self.queries.append(self.runs.reads[change.query])
            for bundle in change.deploy:
                self.sites.install(replace(bundle, silent=silent))
            made.append(change)
        self.sites.settle()
        return made

    def answers(self) -> list[Delta]:
        """Return the rows of all queries."""
        return [self.sites.result(query) for query in self.queries]

    def rows_kept(self) -> int:
        """Return the rows that operators of the base keep."""
        return self.sites.state_rows()[BASE]

    def _declare(self, bound: BoundQuery) -> None:
        scans = dict.fromkeys(node for node in walk_plan(bound.plan) if isinstance(node, Scan))
        for scan in scans.keys() - self._declared:
            self._declared.add(scan)
            for gateway in self._gateways:
                self.sites.declare(gateway, scan)

    def _bound(self, text: str) -> BoundQuery:
        statement = parse_statement(text)
        if not isinstance(statement, Query):
            raise AssertionError(text)
        return bind_query(statement, self._catalog)


def compare_and_print(
    title: str,
    quick: str,
    compare: Callable[[bool, int], list[Figures]],
    show: Callable[[list[Figures]], None],
) -> int:
    """Measure as the command line asks, and print figures as a table or as JSON.

    Args:
        title: Of the benchmark, for the command line's help.
        quick: How much is measured with `--quick`, in words.
        compare: Measures; it gets whether that is quick, and the seed.
        show: Prints a table.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    found = compare(options.quick, options.seed)
    if options.json:
        print(json.dumps({"quick": options.quick, "seed": options.seed, "found": found}))
    else:
        show(found)
    return 0
