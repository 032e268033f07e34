"""The workloads at the stream engine: rows as DuckDB has them, and one batch a step."""

import random
from collections import Counter
from itertools import islice

import duckdb
import pytest

from deploy.calibration import workloads
from deploy.calibration.engine_runs import BASE, GATEWAY, EngineRun
from deploy.calibration.workloads import BEGIN, PERIOD, Source, Workload, readings, standing
from streamsql.data.types import Row
from streamsql.errors import InternalError

STEPS = 60
TABLES = {"sensor": "mid, rid, level, v, ts", "place": "mid, rid, x, ts"}
KEYED = [
    workloads.PLAIN,
    workloads.SILENT,
    *workloads.PASSED.values(),
    workloads.JOIN,
    *workloads.GROUPS.values(),
]


def by_duckdb(text: str, rows: dict[str, dict[str, Row]]) -> Counter[Row]:
    with duckdb.connect() as database:
        for table, columns in TABLES.items():
            width = len(columns.split(","))
            types = ["TEXT", "TEXT", "INTEGER", "DOUBLE", "BIGINT"]
            if width == 4:
                del types[2]
            named = ", ".join(
                f"{name} {kind}" for name, kind in zip(columns.split(","), types, strict=True)
            )
            database.execute(f"CREATE TABLE {table} ({named})")
            marks = ", ".join("?" * width)
            database.executemany(
                f"INSERT INTO {table} VALUES ({marks})", list(rows[table].values())
            )
        return Counter(database.execute(text).fetchall())


@pytest.mark.parametrize("workload", KEYED, ids=lambda each: each.text[:60])
def test_a_workload_gives_the_rows_of_its_statement(workload: Workload) -> None:
    rows: dict[str, dict[str, Row]] = {"sensor": {}, "place": {}}
    answer: Counter[Row] = Counter()
    run = EngineRun(workload, empty=True)
    for source, event in standing(BEGIN):
        if source in rows:
            rows[source][str(event.row[0])] = event.row
        run.gateway.ingest(source, [event])
    steps = run.next(STEPS)
    for events in steps:
        for sent in run.step(events):
            for change in sent.batch.deltas:
                answer[change.row] += change.weight
        for event in events:
            rows["sensor"][str(event.row[0])] = event.row
    assert +answer == by_duckdb(workload.text, rows)
    assert min(answer.values(), default=0) >= 0


@pytest.mark.parametrize(
    "workload",
    [workloads.PLAIN, *workloads.PASSED.values(), workloads.LOG, workloads.WINDOW],
    ids=lambda each: each.text[:60],
)
def test_what_is_compared_sends_the_same_number_of_batches(workload: Workload) -> None:
    run = EngineRun(workload)
    run.take(run.next(STEPS))
    assert run.batches == STEPS
    assert run.changes >= STEPS


def test_the_silent_one_sends_nothing_and_without_a_query_nothing_runs() -> None:
    for workload in (workloads.SILENT, *workloads.NOTHING.values()):
        run = EngineRun(workload)
        run.take(run.next(STEPS))
        assert (run.batches, run.changes) == (0, 0)


def test_each_reading_changes_its_source() -> None:
    for source in Source:
        held: dict[tuple[object, ...], Row] = {}
        for name, event in standing(BEGIN):
            if name == source:
                held[event.row[: 2 if source == Source.EDGE else 1]] = event.row
        last = BEGIN
        for event in islice(readings(source, random.Random(3), BEGIN), 300):
            key = event.row[: 2 if source == Source.EDGE else 1]
            assert event.ts == last + PERIOD
            last = event.ts
            if source == Source.EDGE:
                assert event.delete == (key in held)
            elif source == Source.SENSOR:
                assert held[key] != event.row
            if event.delete:
                del held[key]
            else:
                held[key] = event.row


def test_apart_all_rows_travel_to_the_base_and_its_answer_is_that_of_one_site() -> None:
    together, apart = EngineRun(workloads.JOIN), EngineRun(workloads.JOIN, apart=True)
    assert (apart.gateway.site, apart.base.site) == (GATEWAY, BASE)
    assert together.gateway is together.base
    found: list[Counter[Row]] = []
    for run in (together, apart):
        answer: Counter[Row] = Counter()
        for events in run.next(STEPS):
            outgoing = run.step(events)
            if run is apart:
                assert {sent.destination for sent in outgoing} == {BASE}
                for sent in outgoing:
                    run.base.receive(sent.query, GATEWAY, sent.batch)
                outgoing = run.base.step(run.now).outgoing
            for sent in outgoing:
                for change in sent.batch.deltas:
                    answer[change.row] += change.weight
        found.append(answer)
    assert found[0] == found[1]
    assert found[0]


def test_only_queries_are_run() -> None:
    with pytest.raises(InternalError, match="is no query"):
        EngineRun(Workload("CREATE SOURCE other (x INTEGER)"))
