"""Runs a case: after every batch stream engine, reference evaluator and an oracle must agree."""

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from deploy.session import LocalSession
from deploy.session.engines import QUERY, STATIC_SITE, _Run, local_topology
from deploy.session.history import Moment
from federated_optimizer import normalize
from federated_optimizer import plan as place_plan
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import (
    NOTHING_KNOWN,
    SourceFacts,
    Statistics,
)
from stream_engine.recursion.foreseen import foreseen
from stream_engine.state.watermark import HERE
from streamsql.algebra.user_functions import INSTALLED
from streamsql.binder import BoundQuery
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import FederationError
from streamsql.reference import evaluate
from streamsql.reference.reference_database import Database, contents
from streamsql.wire.bundles.partitioning import site_of
from tests.conformance.duckdb_peer import rounded
from tests.random_queries.duckdb_oracle import shared_duckdb
from tests.random_queries.oracles import Oracle, Tally
from tests.random_queries.queries import Case
from tests.random_queries.schemas import Batch
from tests.random_queries.scopes import ours, postgres, theirs
from tests.streamsql.from_text import bound_query


class DisagreementError(AssertionError):
    """Two engines gave different rows."""


def check(
    case: Case, tally: Tally, sites: tuple[int, ...] = (1,), oracle: Oracle | None = None
) -> None:
    """Run a case.

    Args:
        case: What to run.
        tally: Told what became of it.
        sites: Numbers of sites to run it on.
        oracle: Asked after every batch; None: DuckDB.

    Raises:
        DisagreementError: Engines disagree; the text shows the whole case.
    """
    oracle = oracle or shared_duckdb()
    with contextlib.closing(LocalSession("reference")) as session, _functions():
        for relation in case.relations:
            session.run(relation.text)
        try:
            for view in case.views:
                session.run(ours(view))
            bound = bound_query(ours(case.query), session.catalog)
        except FederationError as error:
            if oracle.refuses(case):
                tally.refused_by_both += 1
            else:
                tally.refused[str(error).split("\n", maxsplit=1)[0][:90]] += 1
            return
        runs = [_Gateways(case, bound, number, session.catalog) for number in sites]
        large = _large_tables(session.catalog)
        if large.sources:  # looked up by key, where a join allows it
            runs.append(_Gateways(case, bound, sites[-1], session.catalog, large))
        runs += _forced(case, bound, sites[-1], session.catalog)
        asked = not case.beyond and oracle.open(case, tally)
        database, clock = Database(), 0
        rows = 0
        for step, batch in enumerate(case.batches):
            for moment in _moments(case, batch):
                session.history.record(moment.source, moment.events)
                database.append(moment.source, list(moment.events), clock=clock)
                for run in runs:
                    run.take(moment, clock)
            session.history.advance(batch.now)
            clock = batch.now
            expected = evaluate(bound.plan, database, batch.now)
            rows += len(expected)
            for run in runs:
                try:
                    run.settle(batch.now)
                except Exception as error:
                    told = f"{run.told}, batch {step}: {type(error).__name__}: {error}"
                    raise DisagreementError(f"{told}\n{shown(case)}") from error
                wanted = expected if run.database is None else run.expected(batch.now)
                tally.by_gateway += wanted != expected
                _compare(run.told, run.result(), wanted, case, step)
            if asked:
                answer = oracle.answer(
                    case, step, functools.partial(_held, session, batch.now), tally
                )
                asked = answer is not None
                if answer is not None and answer != (mine := _rounded(expected)):
                    told = _difference(oracle.name, answer, mine, step)
                    raise DisagreementError(f"{told}\n{shown(case)}")
        tally.run += 1
        tally.shown += rows > 0
        tally.compared += asked
        tally.skipped.update(case.beyond)


def _forced(case: Case, bound: BoundQuery, sites: int, catalog: Catalog) -> list["_Gateways"]:
    """Return a run of one of the plans that are not taken, if several sites leave a choice."""
    if sites == 1:
        return []
    topology = local_topology(sites, catalog)
    search = Search(normalize(bound.plan, topology), topology, NOTHING_KNOWN)
    count, taken = search.memo.count(), search.taken().number
    number = len(case.query) % count + 1
    if number == taken:
        number = taken % count + 1
    if number == taken:
        return []
    return [_Gateways(case, replace(bound, asked=number), sites, catalog)]


def _large_tables(catalog: Catalog) -> Statistics:
    """Return statistics by which all stored tables are large."""
    rows = SourceFacts(rows=1e9)
    return Statistics(sources={table.name.lower(): rows for table in catalog.tables})


@contextlib.contextmanager
def _functions() -> Iterator[None]:
    INSTALLED.allow(["deploy.samples.readings"])
    try:
        yield
    finally:
        INSTALLED.allow([])


class _Gateways(_Run):
    """A run in which every site judges by itself what is late, as gateways do.

    The site of an event is that of its key or row. Where the answer says when windows close or
    instants are over, all events with a watermark come to one site instead: a gateway that is heard
    for the first time may be behind what the others have closed, and the reference, which sees all
    events at once, would not close it. Where there are instants all events of streams do: one that
    has no watermark counts when its site takes it in, behind what the site has taken in before.

    Attributes:
        database: What the reference sees of it; None: the same as for one site.
    """

    def __init__(
        self,
        case: Case,
        bound: BoundQuery,
        sites: int,
        catalog: Catalog,
        statistics: Statistics = NOTHING_KNOWN,
    ) -> None:
        bundle = place_plan(
            bound,
            local_topology(sites, catalog),
            query=QUERY,
            foresee=foreseen,
            statistics=statistics,
        )
        super().__init__(bundle, tuple(f"site-{n}" for n in range(1, sites + 1)), catalog)
        by_key = ", tables by key" if statistics.sources else ""
        self.told = f"{sites} sites{by_key}{f', plan {bound.asked}' if bound.asked else ''}"
        self.plan = bound.plan
        texts = " ".join((case.query, *case.views)).upper()
        self.instants = any(word in texts for word in ("ISTREAM(", "DSTREAM(", "RSTREAM("))
        closes = self.instants or "EMIT ON" in texts
        marked = any(relation.lateness is not None for relation in case.relations)
        self.database = Database() if sites > 1 and marked and not closes else None
        self.settle(0)

    def take(self, moment: Moment, before: int) -> None:
        """Hand an event to its site, whose clock shows when it has worked last."""
        definition = self.catalog.find(moment.source)
        assert isinstance(definition, SourceDefinition)
        if self.instants and not definition.is_table:
            for owner in self.direct.get(moment.source, ()) or (site_of(("",), self.sites),):
                self.engines[owner].ingest(moment.source, list(moment.events))
            return
        if self.database is None:
            self.ingest(moment)
            return
        for event in moment.events:
            key = tuple(event.row[k] for k in definition.key) or event.row
            site = STATIC_SITE if definition.is_table else site_of(key, self.sites)
            self.database.append(moment.source, [event], site, before)
            for owner in self.direct.get(moment.source, ()) or (site,):
                origin = HERE if owner == site else site
                self.engines[owner].ingest(moment.source, [event], origin)

    def expected(self, now: int) -> Delta:
        """Return what the reference says."""
        assert self.database is not None
        return evaluate(self.plan, self.database, now)


def _moments(case: Case, batch: Batch) -> Iterator[Moment]:
    """Yield every change as an event; its time is the row's, or the batch's for a table."""
    streams = {relation.name for relation in case.relations if not relation.table}
    for name, row, delete in batch.changes:
        last = row[-1]
        time = last if name in streams and isinstance(last, int) else batch.now
        yield Moment(batch.now, name, (SourceEvent(row, time, delete),))


def _held(session: LocalSession, now: int, relation: str) -> list[Row]:
    definition = session.catalog.find(relation)
    assert isinstance(definition, SourceDefinition)
    return [row for _, row in contents(definition.scan(), session.history.database, now)]


# --- comparison ---------------------------------------------------------------------------------


def _rounded(relation: Delta) -> Counter[Row]:
    result: Counter[Row] = Counter()
    for row, weight in relation.items():
        result[rounded(row)] += weight
    return result


def _compare(name: str, found: Delta, expected: Delta, case: Case, step: int) -> None:
    if found != expected:
        told = _difference(name, Counter(found), Counter(expected), step)
        raise DisagreementError(f"{told}\n{shown(case)}")


def _difference(name: str, found: Counter[Row], expected: Counter[Row], step: int) -> str:
    return (
        f"{name}, after batch {step}: has too much {dict(found - expected)}, "
        f"lacks {dict(expected - found)}"
    )


def shown(case: Case) -> str:
    """Return a case as text."""
    lines = [relation.text for relation in case.relations]
    lines += [ours(view) for view in case.views]
    lines.append(ours(case.query))
    lines.append(f"-- DuckDB: {theirs(case.query)}")
    lines.append(f"-- PostgreSQL: {postgres(case.query)}")
    lines += [f"--   {name}: {text}" for name, text in case.windows]
    for batch in case.batches:
        lines.append(f"-- at {batch.now}")
        for name, row, delete in batch.changes:
            lines.append(f"  {'-' if delete else '+'}{name}{row!r}")
    return "\n".join(lines)
