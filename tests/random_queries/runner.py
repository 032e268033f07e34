"""Runs a case: after every batch stream engine, reference evaluator and DuckDB must agree."""

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb

from deploy.session import LocalSession
from deploy.session.engines import QUERY, STATIC_SITE, _Run, local_topology
from deploy.session.history import Moment
from federated_optimizer import plan as place_plan
from stream_engine.recursion.foreseen import foreseen
from stream_engine.state.watermark import HERE
from streamsql.algebra.user_functions import INSTALLED
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import FederationError
from streamsql.reference import evaluate
from streamsql.reference.database import Database, contents
from streamsql.syntax import Query, parse_script
from streamsql.wire.partitioning import site_of
from tests.conformance.duckdb_peer import Peer, rounded
from tests.random_queries.queries import Case
from tests.random_queries.schemas import Batch
from tests.random_queries.scopes import ours, theirs

REFUSED_BY_PEER = (
    duckdb.NotImplementedException,
    duckdb.BinderException,
    duckdb.OutOfRangeException,
    duckdb.ConversionException,
)
"""What DuckDB cannot run, or stops at where a value here is NULL."""


LEAST = float(-(2**63))
"""What DuckDB 2.0.0 gives for some NULLs of ORDER BY … LIMIT; no value here is near it."""


class DisagreementError(AssertionError):
    """Two engines gave different rows."""


@dataclass(slots=True)
class Tally:
    """What became of the cases.

    Attributes:
        run: Cases that all our engines answered.
        compared: Those of them that DuckDB answered too.
        shown: Those of them whose answer had rows at some time.
        by_gateway: Batches after which several gateways, each with a watermark of its own, had
            another answer than one would have.
        refused: Messages of statements that StreamSQL refused.
        skipped: Why DuckDB was not asked, or did not answer.
    """

    run: int = 0
    compared: int = 0
    shown: int = 0
    by_gateway: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [
            f"{self.run} run, {self.compared} by DuckDB, {self.shown} with rows, "
            f"{self.by_gateway} batches judged otherwise by several gateways"
        ]
        lines += [f"  not asked {n}: {why}" for why, n in self.skipped.most_common(12)]
        lines += [f"  refused {n}: {why}" for why, n in self.refused.most_common(40)]
        return "\n".join(lines)


def check(case: Case, tally: Tally, sites: tuple[int, ...] = (1,)) -> None:
    """Run a case.

    Args:
        case: What to run.
        tally: Told what became of it.
        sites: Numbers of sites to run it on.

    Raises:
        DisagreementError: Engines disagree; the text shows the whole case.
    """
    with contextlib.closing(LocalSession("reference")) as session, _functions():
        for relation in case.relations:
            session.run(relation.text)
        try:
            for view in case.views:
                session.run(ours(view))
            (statement,) = parse_script(ours(case.query))
            assert isinstance(statement, Query)
            bound = bind_query(statement, session.catalog)
        except FederationError as error:
            tally.refused[str(error).split("\n", maxsplit=1)[0][:90]] += 1
            return
        runs = [_Gateways(case, bound, number, session.catalog) for number in sites]
        peer = None if case.beyond else _peer(case, tally)
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
            if peer is not None:
                answer = _answer(peer, case, session, batch.now, tally)
                if answer is None:
                    peer = None
                elif answer != (mine := _rounded(expected)):
                    raise DisagreementError(
                        _difference("DuckDB", answer, mine, step) + "\n" + shown(case)
                    )
        tally.run += 1
        tally.shown += rows > 0
        tally.compared += peer is not None
        tally.skipped.update(case.beyond)


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

    def __init__(self, case: Case, bound: Any, sites: int, catalog: Catalog) -> None:
        bundle = place_plan(bound, local_topology(sites, catalog), query=QUERY, foresee=foreseen)
        super().__init__(bundle, tuple(f"site-{n}" for n in range(1, sites + 1)), catalog)
        self.told = f"{sites} sites"
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


# --- DuckDB -------------------------------------------------------------------------------------


@functools.cache
def _shared_peer() -> Peer:
    """Return one DuckDB for all cases: opening one takes longer than a case."""
    peer = Peer("")
    peer._connection.execute("SET error_on_division_by_zero = false")
    return peer


def _peer(case: Case, tally: Tally) -> Peer | None:
    peer = _shared_peer()
    peer._connection.execute("DROP SCHEMA IF EXISTS one CASCADE; CREATE SCHEMA one; USE one")
    try:
        for relation in case.relations:
            for statement in parse_script(relation.text):
                peer.define(statement)
        _define(peer, case)
    except REFUSED_BY_PEER as error:
        tally.skipped[_reason(error)] += 1
        return None
    return peer


def _define(peer: Peer, case: Case) -> None:
    """Create views and windows; either may read the other."""
    waiting: list[tuple[str, str] | str] = [*case.windows, *case.views]
    while waiting:
        later = []
        for made in waiting:
            try:
                if isinstance(made, tuple):
                    _window(peer, made, 0)
                else:
                    peer.define(parse_script(theirs(made))[0])
            except duckdb.CatalogException:
                later.append(made)
        assert len(later) < len(waiting), later
        waiting = later


def _window(peer: Peer, made: tuple[str, str], now: int) -> None:
    name, text = made
    peer._connection.execute(f"CREATE OR REPLACE VIEW {name} AS {text.format(now=now)}")


def _answer(
    peer: Peer, case: Case, session: LocalSession, now: int, tally: Tally
) -> Counter[Row] | None:
    for relation in case.relations:
        scan = session.catalog.find(relation.name).scan()  # type: ignore[union-attr]
        peer.fill(relation.name, [row for _, row in contents(scan, session.history.database, now)])
    try:
        for made in case.windows:
            if "{now}" in made[1]:
                _window(peer, made, now)
        answer = peer.answer(theirs(case.query))
    except REFUSED_BY_PEER as error:
        tally.skipped[_reason(error)] += 1
        return None
    if any(LEAST in row for row in answer):
        tally.skipped["DuckDB: its least number in place of NULL behind ORDER BY"] += 1
        return None
    return answer


def _reason(error: Exception) -> str:
    return f"DuckDB: {str(error).split(chr(10), maxsplit=1)[0][:80]}"


def _rounded(relation: Delta) -> Counter[Row]:
    result: Counter[Row] = Counter()
    for row, weight in relation.items():
        result[rounded(row)] += weight
    return result


# --- comparison ---------------------------------------------------------------------------------


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
    lines += [f"--   {name}: {text}" for name, text in case.windows]
    for batch in case.batches:
        lines.append(f"-- at {batch.now}")
        for name, row, delete in batch.changes:
            lines.append(f"  {'-' if delete else '+'}{name}{row!r}")
    return "\n".join(lines)
