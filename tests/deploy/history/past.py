"""Catalogs, plans and runs for tests of trials on history."""

from collections.abc import Iterable

from deploy.history.happenings import Happening, Readings
from deploy.history.replayed_alarm import ReplayedAlarm
from deploy.history.replayed_federation import ReplayedFederation
from deploy.history.trial_run import TrialRun
from deploy.session.session import LocalSession
from federated_optimizer import Topology
from federated_optimizer import plan as place
from federated_optimizer.coordinator.trials.history_runner import HistoryAlarm, HistoryChanges
from streamsql.algebra.streams import Emit
from streamsql.binder import BoundQuery, bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta
from streamsql.reference import evaluate
from streamsql.reference.reference_database import Database
from streamsql.syntax import Query, parse_statement
from streamsql.wire.fragments import FragmentBundle

SECOND = 1_000_000
SCHEMA = """
CREATE SOURCE noise (room TEXT, level INTEGER);
CREATE SOURCE heat (device TEXT, level INTEGER, PRIMARY KEY (device));
CREATE SOURCE seen (tag TEXT, room TEXT) WITH (ttl = '7 s');
"""


def catalog(script: str = SCHEMA) -> Catalog:
    """Return the definitions of a script."""
    session = LocalSession()
    session.run(script)
    return session.catalog


def bound(text: str, known: Catalog) -> BoundQuery:
    """Return a query's plan."""
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return bind_query(statement, known)


def bundle(query: BoundQuery, known: Catalog, gateways: Iterable[str]) -> FragmentBundle:
    """Return its fragments at some gateways that have all sources, and a base site."""
    owned = frozenset(source.name.lower() for source in known.sources)
    topology = Topology(dict.fromkeys(gateways, owned), bases=("base",))
    return place(query, topology, query="q")


def run(
    placed: FragmentBundle,
    happenings: Iterable[Happening],
    since: int,
    until: int,
    alarm: ReplayedAlarm | None = None,
) -> list[HistoryChanges | HistoryAlarm]:
    """Return what a run yields."""
    federation = ReplayedFederation(placed, static="static", tables={})
    emits = placed.emit == Emit.STREAM
    trial = TrialRun(federation, happenings, since, until, alarm, is_stream=emits)
    return list(trial.run())


def relation_at(messages: Iterable[HistoryChanges | HistoryAlarm], at: int) -> Delta:
    """Return the rows that the changes up to a time add up to."""
    relation: Delta = {}
    for message in messages:
        if isinstance(message, HistoryChanges) and message.at <= at:
            for weight, row in message.rows:
                relation[row] = relation.get(row, 0) + weight
    return {row: weight for row, weight in relation.items() if weight}


def expected_at(query: BoundQuery, happenings: Iterable[Happening], at: int) -> Delta:
    """Return a query's rows over what was known at a time, evaluated from scratch."""
    database = Database()
    for happening in happenings:
        if isinstance(happening, Readings) and happening.at <= at:
            database.append(happening.source, list(happening.events), clock=happening.at)
    return evaluate(query.plan, database, at)
