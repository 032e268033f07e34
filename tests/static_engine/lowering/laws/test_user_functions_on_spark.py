"""Functions and aggregates of users on Spark, alone and in a federated query."""

import contextlib
from collections.abc import Iterator

import pytest

from deploy.session import LocalSession
from deploy.session.engines import STATIC_SITE, SparkExecutor, local_topology
from deploy.session.frozen import frozen
from federated_optimizer import plan as place_plan
from streamsql.algebra.operators import Plan, RemoteSource, Values, with_inputs
from streamsql.algebra.user_functions import INSTALLED
from streamsql.data.delta import Delta, expand
from streamsql.reference import evaluate
from streamsql.wire.codec import encode_json
from streamsql.wire.fragments import Engine
from tests.streamsql.from_text import bound_query

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

MODULE = "deploy.samples.readings"
SCRIPT = f"""
CREATE FUNCTION dew(c DOUBLE, h DOUBLE) RETURNS DOUBLE AS '{MODULE}:dew_point';
CREATE AGGREGATE harmonic(v DOUBLE) RETURNS DOUBLE AS '{MODULE}:HarmonicMean';
CREATE FUNCTION warmer(c DOUBLE, least DOUBLE) RETURNS DOUBLE AS (GREATEST(c, least) + 1);
CREATE AGGREGATE mean_of(v DOUBLE, w DOUBLE) RETURNS DOUBLE AS (SUM(v * w) / SUM(w) + harmonic(v));
CREATE TABLE room (rid TEXT, celsius DOUBLE, humidity DOUBLE);
CREATE SOURCE seat (mid TEXT, rid TEXT, ts TIMESTAMP);
INSERT INTO room VALUES ('r1', 20.0, 50.0), ('r1', 22.0, 40.0), ('r2', 20.0, 0.0),
                        ('r2', NULL, 30.0), ('r3', 4.0, 80.0), ('r3', 4.0, 80.0);
INSERT INTO seat VALUES ('m1', 'r1', '2026-01-01T08:00:00Z'), ('m2', 'r2', '2026-01-01T08:00:00Z'),
                        ('m3', 'r9', '2026-01-01T08:00:00Z');
"""
QUERIES = (
    "SELECT rid, dew(celsius, humidity) AS d FROM room",
    "SELECT rid FROM room WHERE dew(celsius, humidity) > 8",
    "SELECT rid, harmonic(celsius) AS h, harmonic(DISTINCT humidity) AS g FROM room GROUP BY rid",
    "SELECT harmonic(dew(celsius, humidity) + 20) AS h FROM room",
    "SELECT harmonic(celsius) AS h FROM room WHERE celsius > 100",
    "SELECT rid, mean_of(celsius, humidity) AS m FROM room WHERE warmer(celsius, 9) > 11 "
    "GROUP BY rid",
)
FEDERATED = (
    "SELECT mid, dew(celsius, humidity) AS d FROM seat JOIN room ON seat.rid = room.rid "
    "WHERE dew(celsius, humidity) > 8",
    "SELECT s.mid, q.h FROM seat s JOIN (SELECT rid, harmonic(celsius) AS h FROM room "
    "GROUP BY rid) AS q ON q.rid = s.rid",
)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkExecutor]:
    with contextlib.closing(SparkExecutor()) as executor:
        yield executor


@pytest.fixture
def session() -> Iterator[LocalSession]:
    INSTALLED.allow([MODULE])
    with contextlib.closing(LocalSession("reference")) as made:
        made.run(SCRIPT)
        yield made
    INSTALLED.allow([])


@pytest.mark.parametrize("text", QUERIES)
def test_spark_calls_what_is_installed(
    text: str, session: LocalSession, spark: SparkExecutor
) -> None:
    bound = bound_query(text, session.catalog)
    history = session.history
    expected = evaluate(bound.plan, history.database, history.now)
    assert expected
    assert spark.answer(bound, history, session.catalog) == expected


@pytest.mark.parametrize("text", FEDERATED)
def test_spark_does_its_part_of_a_federated_query(
    text: str, session: LocalSession, spark: SparkExecutor
) -> None:
    """Spark computes its fragment, with the user's code; the rest joins what it sends."""
    bound = bound_query(text, session.catalog)
    history = session.history
    bundle = place_plan(bound, local_topology(1, session.catalog), query="q")
    plans = {fragment.id: fragment for fragment in bundle.fragments}
    stored = {name: f for name, f in plans.items() if f.engine == Engine.STATIC}
    assert all(fragment.sites == (STATIC_SITE,) for fragment in stored.values())
    assert any(MODULE.encode() in encode_json(fragment.plan) for fragment in stored.values())
    engine = spark._spark = spark._spark or spark._start()
    sent = {
        name: engine.evaluate(frozen(fragment.plan, history.database, history.now))
        for name, fragment in stored.items()
    }
    last = next(fragment for fragment in bundle.fragments if not fragment.consumer)
    whole = _assembled(last.plan, {n: f.plan for n, f in plans.items()}, sent)
    expected = evaluate(bound.plan, history.database, history.now)
    assert expected
    assert evaluate(whole, history.database, history.now) == expected


def _assembled(plan: Plan, plans: dict[str, Plan], sent: dict[str, Delta]) -> Plan:
    if isinstance(plan, RemoteSource):
        if plan.fragment in sent:
            return Values(tuple(expand(sent[plan.fragment])), plan.schema)
        return _assembled(plans[plan.fragment], plans, sent)
    return with_inputs(plan, tuple(_assembled(child, plans, sent) for child in plan.inputs))
