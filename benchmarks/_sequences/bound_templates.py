"""The templates, bound and planned alone once for all sequences."""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import msgspec

from benchmarks._sequences.aggregate_queries import DEFINITIONS, MODULES
from benchmarks._sequences.overlapping_queries import SOURCES, TEMPLATES
from benchmarks._sequences.templates import Template
from federated_optimizer.canonical import exact_cache
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import plan, search_of
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.metrics import Metric
from streamsql.algebra.operators import RemoteSource, Scan, walk_plan
from streamsql.algebra.user_functions import INSTALLED
from streamsql.binder import BoundQuery, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.syntax import parse_script, parse_statement
from streamsql.syntax.statements import CreateFunction, CreateSource, Query
from streamsql.wire.fragments import Engine, FragmentBundle

MOST_SEARCHES = 2_000

_SEARCHES: dict[Hashable, Search] = {}


@dataclass(frozen=True, eq=False)
class BoundTemplate:
    """A template and all that does not depend on a sequence.

    Attributes:
        template: Its texts.
        bound: The query.
        sources: That it reads.
    """

    template: Template
    bound: BoundQuery
    sources: frozenset[str]
    _alone: dict[Hashable, FragmentBundle] = field(default_factory=dict)

    def alone(self, topology: Topology, query: str) -> FragmentBundle:
        """Return the plan of a query of its own."""
        found = self._alone.get(_sites(topology))
        if found is None:
            text = self.template.text
            found = plan(self.bound, topology, query="alone", text=text)
            self._alone[_sites(topology)] = found
        return msgspec.structs.replace(found, query=query)


@cache
def bound_templates() -> Mapping[str, BoundTemplate]:
    """Return the templates by their texts."""
    catalog = Catalog(())
    with aggregates_of_users():
        for statement in parse_script(SOURCES + DEFINITIONS):
            assert isinstance(statement, CreateSource | CreateFunction)  # noqa: S101  (our own text)
            catalog.define(define(statement, catalog))
        return {template.text: _bound(template, catalog) for template in TEMPLATES}


@contextmanager
def aggregates_of_users() -> Iterator[None]:
    """Let the aggregates of templates run inside."""
    before = INSTALLED.modules
    INSTALLED.allow((*before, *MODULES))
    try:
        yield
    finally:
        INSTALLED.allow(before)


@cache
def scans() -> tuple[Scan, ...]:
    """Return the sources as sites declare them."""
    found: dict[str, Scan] = {}
    for each in bound_templates().values():
        for node in walk_plan(each.bound.plan):
            if isinstance(node, Scan):
                found.setdefault(node.source, node)
    return tuple(found.values())


def remembered_search(
    bound: BoundQuery, topology: Topology, statistics: Statistics, metric: Metric
) -> Search:
    """Return `search_of`; that of a plan over sources alone is made once for all sequences."""
    if statistics.nodes:
        return search_of(bound, topology, statistics, metric)
    said = bound.asked, bound.metric, bound.whole_changes, bound.heuristics
    asked = exact_cache.encode((bound.plan, _sites(topology))), metric, said
    if asked not in _SEARCHES:
        if len(_SEARCHES) >= MOST_SEARCHES:
            _SEARCHES.clear()
        _SEARCHES[asked] = search_of(bound, topology, statistics, metric)
    return _SEARCHES[asked]


def _sites(topology: Topology) -> Hashable:
    """Return in what the federations of sequences differ."""
    return topology.bases, bool(topology.colocation)


def meets_at_gateways(bundle: FragmentBundle) -> bool:
    """Return whether rows of some gateways travel to others, and meet rows there."""
    return any(
        isinstance(node, RemoteSource)
        for fragment in bundle.fragments
        if fragment.engine == Engine.GATEWAY
        for node in walk_plan(fragment.plan)
    )


def _bound(template: Template, catalog: Catalog) -> BoundTemplate:
    statement = parse_statement(template.text)
    assert isinstance(statement, Query)  # noqa: S101  (our own text)
    bound = bind_query(statement, catalog)
    nodes = walk_plan(bound.plan)
    sources = frozenset(node.source for node in nodes if isinstance(node, Scan))
    return BoundTemplate(template, bound, sources)
