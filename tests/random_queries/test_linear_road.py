"""Linear Road's queries: stream engine == reference == DuckDB after every step of the traffic."""

from collections import Counter
from itertools import islice
from typing import Any

import duckdb
import pytest

from benchmarks._linear_road.queries import PEER, QUERIES, SCRIPT
from benchmarks._linear_road.traffic import REPORT_SECONDS, SECOND, START, reports
from deploy.session import LocalSession
from deploy.session.engines import QUERY, _Run, local_topology
from deploy.session.history import Moment
from federated_optimizer import plan as place_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import evaluate
from tests.conformance.duckdb_peer import rounded
from tests.streamsql.from_text import bound_query

CARS = 24
STEP_SECONDS = 20
STEPS = 30
FREE = 0
"""Few cars: a segment costs from the first one on."""


def steps() -> list[tuple[int, list[Row]]]:
    """Return the traffic on a short road in steps: their times and reports."""
    found: list[tuple[int, list[Row]]] = []
    seconds = islice(reports(CARS, segments=5, halts=0.1), STEP_SECONDS * STEPS)
    rows: list[Row] = []
    for second, (now, batch) in enumerate(seconds, start=1):
        rows += batch
        if second % STEP_SECONDS == 0:
            found.append((now, rows))
            rows = []
    return found


TRAFFIC = steps()
SHOWN = {"cars": 25, "volume": 25, "speed": 25, "accidents": 1, "tolls": 8, "charges": 1}
"""After how many of the steps a query has rows, at least."""


@pytest.mark.parametrize("sites", [1, 3])
def test_all_agree_after_every_step(sites: int) -> None:
    session = LocalSession("reference")
    session.run(SCRIPT.format(free=FREE))
    bounds = {}
    for query in QUERIES:
        bounds[query.name] = bound_query(query.text, session.catalog)
    names = tuple(f"site-{number}" for number in range(1, sites + 1))
    topology = local_topology(sites, session.catalog)
    runs = {
        name: _Run(place_plan(bound, topology, query=QUERY), names, session.catalog)
        for name, bound in bounds.items()
    }
    peer = duckdb.connect(":memory:", config={"threads": 1})
    peer.execute(PEER.format(free=FREE))
    shown: Counter[str] = Counter()
    for now, rows in TRAFFIC:
        for row in rows:
            time: Any = row[-1]
            moment = Moment(time, "pos", (SourceEvent(row, time),))
            session.history.record("pos", moment.events)
            for run in runs.values():
                run.ingest(moment)
        peer.executemany("INSERT INTO pos VALUES (?, ?, ?, ?, ?, ?)", rows)
        peer.execute("DELETE FROM clock; INSERT INTO clock VALUES (?)", [now])
        for query in QUERIES:
            runs[query.name].settle(now)
            expected = evaluate(bounds[query.name].plan, session.history.database, now)
            where = f"{query.name} at {(now - START) // SECOND} s"
            assert runs[query.name].result() == expected, where
            theirs = Counter(rounded(row) for row in peer.execute(query.text).fetchall())
            assert theirs == Counter({rounded(row): n for row, n in expected.items()}), where
            shown[query.name] += bool(expected)
    peer.close()
    session.close()
    for name, least in SHOWN.items():
        assert shown[name] >= least, f"{name} has rows after {shown[name]} steps"


def test_every_car_reports_twice_a_minute() -> None:
    seconds = list(islice(reports(50, roads=2, seed=3), 4 * REPORT_SECONDS))
    assert seconds == list(islice(reports(50, roads=2, seed=3), 4 * REPORT_SECONDS))
    assert sum(len(batch) for _, batch in seconds) == 4 * 50
    assert all(ts == now for now, batch in seconds for *_, ts in batch)
