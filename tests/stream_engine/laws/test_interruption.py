"""A query that is stopped while a step works on its recursion lets the site go on at once."""

import threading

import pytest

from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from tests.streamsql.from_text import bound_query, catalog_of

ENDS = Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT))
START = Scan("start", SourceKind.LINK, ENDS, key=(0, 1))

SOURCE = "CREATE LINK SOURCE start (src TEXT, dst TEXT)"
RUNAWAY = """WITH RECURSIVE (LIMIT 900000000) numbers (name, n) AS (
  SELECT src, 1 FROM start
  UNION
  SELECT name, n + 1 FROM numbers WHERE n < 800000000)
SELECT name, n FROM numbers WITH (strategy = '{strategy}')"""


def runaway(strategy: str) -> FragmentBundle:
    plan = bound_query(RUNAWAY.format(strategy=strategy), catalog_of(SOURCE)).plan
    return FragmentBundle("runaway", 1, (Fragment("f1", Engine.BASE, plan, ("s",)),), plan.schema)


@pytest.fixture(params=["auto", "ranked", "absorption", "dred", "set"])
def engine(request: pytest.FixtureRequest) -> SiteEngine:
    made = SiteEngine("s", 1)
    made.declare(START)
    made.install(runaway(request.param))
    plain = Fragment("f1", Engine.BASE, START, ("s",))
    made.install(FragmentBundle("plain", 1, (plain,), START.schema))
    return made


def test_an_interrupted_query_leaves_and_the_others_go_on(engine: SiteEngine) -> None:
    engine.ingest("start", [SourceEvent(("a", "b"), ts=1)])
    results = []
    working = threading.Thread(target=lambda: results.append(engine.step(1)), daemon=True)
    working.start()
    working.join(0.3)
    assert working.is_alive(), "the recursion should not have ended"
    engine.interrupt("runaway")
    working.join(60)
    assert not working.is_alive(), "the step did not end"
    (result,) = results
    assert result.failures == []
    assert set(engine.queries) == {"plain"}
    assert [sent.query for sent in result.outgoing] == ["plain"]
    engine.uninstall("runaway")  # the message that follows
    assert engine.step(2).failures == []


def test_a_query_that_comes_back_is_not_interrupted(engine: SiteEngine) -> None:
    engine.interrupt("plain")
    engine.uninstall("plain")
    plain = Fragment("f1", Engine.BASE, START, ("s",))
    engine.install(FragmentBundle("plain", 2, (plain,), START.schema))
    engine.uninstall("runaway")
    engine.ingest("start", [SourceEvent(("a", "b"), ts=1)])
    result = engine.step(1)
    assert [change.row for sent in result.outgoing for change in sent.batch.deltas] == [("a", "b")]


def test_interrupting_what_does_not_run_is_nothing(engine: SiteEngine) -> None:
    engine.interrupt("nobody")
    engine.uninstall("runaway")
    assert set(engine.queries) == {"plain"}
