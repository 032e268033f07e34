"""The stream engine at one site, or at a gateway and a base site, fed by hand."""

import random
from dataclasses import replace
from itertools import islice

from deploy.calibration.workloads import BEGIN, Workload, catalog, readings, standing
from federated_optimizer import Topology, normalize
from federated_optimizer import plan as place
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN
from stream_engine.site.site_engine import SiteEngine
from stream_engine.site.step_result import Outgoing
from streamsql.binder import BoundQuery, bind_query
from streamsql.data.events import SourceEvent
from streamsql.errors import InternalError
from streamsql.syntax import Query, parse_statement
from streamsql.wire.fragments import FragmentBundle

GATEWAY, BASE = "gateway", "base"
_SEED = 1


class EngineRun:
    """A workload that has its first rows, and a source of further readings.

    Args:
        workload: The query.
        apart: Whether gateway and base are two sites and all rows travel; else one site does all.
        empty: Whether there are no first rows.

    Attributes:
        gateway: The site that reads the source.
        base: The site that answers.
        changes: Rows that the answer has gained or lost.
        batches: That the gateway has sent.
        query: Under which the workload runs.
    """

    query = "calibration"

    def __init__(self, workload: Workload, *, apart: bool = False, empty: bool = False) -> None:
        known = catalog()
        sources = frozenset(definition.name for definition in known.sources)
        self.gateway = SiteEngine(GATEWAY, 1)
        self.base = SiteEngine(BASE, 1) if apart else self.gateway
        self.changes = self.batches = 0
        for definition in known.sources:
            self.gateway.declare(definition.scan())
        topology = Topology({GATEWAY: sources}, bases=(BASE if apart else GATEWAY,))
        if workload.text:
            bundle = _shipped if apart else _pushed
            made = bundle(_bound(workload.text), topology)
            for site in {self.gateway.site: self.gateway, self.base.site: self.base}.values():
                site.install(made)
        self.now = BEGIN
        for source, event in () if empty else standing(BEGIN):
            self.gateway.ingest(source, [event])
        self.settle()
        self._source = workload.source
        self._readings = readings(workload.source, random.Random(_SEED), BEGIN)  # noqa: S311

    def next(self, count: int) -> list[list[SourceEvent]]:
        """Return readings for so many steps of one reading each."""
        return [[event] for event in islice(self._readings, count)]

    def step(self, events: list[SourceEvent]) -> list[Outgoing]:
        """Let readings happen at the gateway and return what it sends.

        Raises:
            InternalError: The query has failed.
        """
        self.gateway.ingest(self._source, events)
        self.now = events[-1].ts
        result = self.gateway.step(self.now)
        if result.failures:
            raise InternalError(f"a workload failed: {result.failures[0][1]}")
        self.batches += len(result.outgoing)
        return result.outgoing

    def take(self, steps: list[list[SourceEvent]]) -> None:
        """Let readings happen, step by step, and count what changes."""
        for events in steps:
            for sent in self.step(events):
                self.changes += len(sent.batch.deltas)

    def settle(self) -> None:
        """Step and deliver until both sites are at rest."""
        moved = True
        while moved:
            moved = False
            for site in (self.gateway, self.base)[: 1 + (self.base is not self.gateway)]:
                result = site.step(self.now)
                for sent in result.outgoing:
                    if sent.destination:
                        moved = True
                        self.base.receive(sent.query, site.site, sent.batch)
                for query, _sender in result.resyncs:
                    moved = True
                    self.gateway.resync(query, BASE)


def _bound(text: str) -> BoundQuery:
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise InternalError(f"{text!r:.80} is no query")
    return bind_query(statement, catalog())


def _pushed(bound: BoundQuery, topology: Topology) -> FragmentBundle:
    return place(bound, topology, query=EngineRun.query)


def _shipped(bound: BoundQuery, topology: Topology) -> FragmentBundle:
    """Return the plan that ships all rows to the base."""
    search = Search(normalize(bound.plan, topology), topology, NOTHING_KNOWN)
    return place(replace(bound, asked=search.memo.shipping), topology, query=EngineRun.query)
