"""Requests about the lake on the broker: each is carried out once, and answered."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from static_engine.care.workers import CurrentWorkers, LocalWorkers
from static_engine.service.lake_service import LakeService, show_tables
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_sizes import TableSizes
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.codec import decode_packed
from streamsql.wire.messages import KeptSource
from streamsql.wire.stored_tables.lake_messages import JobState, LakeAnswer, LakeRequest, LakeTask
from streamsql.wire.topics import Topics
from tests.static_engine.care.test_compaction import filled


class Wire:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.answers: list[LakeAnswer] = []
        self.came = asyncio.Event()

    def publish(self, _topic: str, payload: bytes, *, retain: bool, qos: int) -> None:
        assert (retain, qos) == (False, 1)
        self.answers.append(decode_packed(payload, LakeAnswer))
        self.came.set()


def opened(folder: Path | None, workers: CurrentWorkers) -> tuple[Wire, LakeService]:
    wire = Wire()
    service = LakeService(
        wire,  # type: ignore[arg-type]
        Topics("demo"),
        "static",
        7,
        lake=None if folder is None else filled(folder),
        workers=workers,
        exports=Path("exports"),
    )
    return wire, service


async def until(wire: Wire, condition: Callable[[], bool]) -> None:
    """Wait for an answer after which a condition holds."""
    async with asyncio.timeout(20):
        while not condition():
            await wire.came.wait()
            wire.came.clear()


def test_an_order_is_carried_out_once_and_followed(tmp_path: Path) -> None:
    async def story() -> None:
        wire, service = opened(tmp_path, CurrentWorkers(LocalWorkers()))
        service.define([KeptSource("heat", "30 days")])
        order = LakeRequest("r1", 7, LakeTask.COMPACT)
        service.take(order)
        await until(wire, lambda: len(wire.answers) == 1)
        service.take(order)  # the broker delivers it again
        assert len(wire.answers) == 2
        assert wire.answers[0] == wire.answers[1]
        (job,) = wire.answers[0].jobs
        assert job.state == JobState.WAITING
        number = 1

        def is_done() -> bool:
            nonlocal number
            number += 1
            service.take(LakeRequest(f"r{number}", 7, LakeTask.JOBS))
            return any(each.state == JobState.DONE for a in wire.answers for each in a.jobs)

        await until(wire, is_done)
        assert {each.id for answer in wire.answers for each in answer.jobs} == {job.id}
        service.take(LakeRequest("s", 7, LakeTask.STATUS))
        await until(wire, lambda: bool(wire.answers[-1].tables))
        (heat,) = [table for table in wire.answers[-1].tables if table.namespace == "readings"]
        assert (heat.files, heat.keep) == (2, "30 days")
        service.stop()

    asyncio.run(story())


def test_what_cannot_be_done_is_answered() -> None:
    async def story() -> None:
        wire, service = opened(None, CurrentWorkers(None))
        service.take(LakeRequest("old", 6, LakeTask.STATUS))  # was meant for another incarnation
        service.take(LakeRequest("r1", 7, LakeTask.STATUS))
        await until(wire, lambda: bool(wire.answers))
        assert [(answer.id, answer.code) for answer in wire.answers] == [("r1", "no_lake")]
        service.stop()

    asyncio.run(story())


def test_a_job_without_workers_fails_and_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        wire, service = opened(tmp_path, CurrentWorkers(None))
        service.take(LakeRequest("r1", 7, LakeTask.COMPACT, "heat"))
        number = 1

        def has_failed() -> bool:
            nonlocal number
            number += 1
            service.take(LakeRequest(f"r{number}", 7, LakeTask.JOBS))
            return any(
                each.state == JobState.FAILED and "Spark has not started" in each.message
                for answer in wire.answers
                for each in answer.jobs
            )

        await until(wire, has_failed)
        service.stop()

    asyncio.run(story())


def test_a_flood_is_answered_or_refused_in_words(tmp_path: Path) -> None:
    async def story() -> None:
        wire, service = opened(tmp_path, CurrentWorkers(LocalWorkers()))
        tasks = (LakeTask.COMPACT, LakeTask.STATUS, LakeTask.SAMPLE, LakeTask.EXPIRE)
        for number in range(10_000):
            service.take(LakeRequest(f"r{number}", 7, tasks[number % 4], table="heat"))
        await until(wire, lambda: len(wire.answers) == 10_000)
        assert len({answer.id for answer in wire.answers}) == 10_000
        refused = [answer for answer in wire.answers if answer.code]
        assert {answer.code for answer in refused} == {"lake_busy"}
        assert len(refused) >= 9_800
        assert "already wait" in refused[0].message
        assert refused[0].hint == "retry later"
        service.take(LakeRequest("after", 7, LakeTask.STATUS))
        await until(wire, lambda: wire.answers[-1].id == "after")
        assert [table.rows for table in wire.answers[-1].tables if table.name == "heat"] == [27]
        service.stop()

    asyncio.run(story())


def test_stored_tables_are_looked_at_without_a_lake(tmp_path: Path) -> None:
    async def story() -> None:
        wire, service = opened(None, CurrentWorkers(None))
        service.take(LakeRequest("early", 7, LakeTask.STORED))
        await until(wire, lambda: bool(wire.answers))
        assert "starting" in wire.answers[0].message
        (tmp_path / "t.csv").write_text("a\n1\n5\n")
        store = TableStore(Locations(tmp_path), tmp_path / "snapshots")
        watch = TableWatch(store)
        options = (("source", "csv"), ("path", "t.csv"))
        schema = Schema.of(("a", DataType.INTEGER))
        watch.define((SourceDefinition("t", SourceKind.TABLE, schema, options=options),))
        show_tables(service, store, watch, TableSizes(store, watch))
        service.take(LakeRequest("list", 7, LakeTask.STORED))
        await until(wire, lambda: len(wire.answers) == 2)
        assert [table.name for table in wire.answers[1].stored] == ["t"]
        service.take(LakeRequest("one", 7, LakeTask.STORED, table="t"))
        await until(wire, lambda: len(wire.answers) == 3)
        assert wire.answers[2].sample is not None
        assert wire.answers[2].sample.rows == ((1,), (5,))
        assert (wire.answers[2].looked, wire.answers[2].figures[0].greatest) == (2, "5")
        (tmp_path / "t.csv").write_text("a\nmany\n")
        service.take(LakeRequest("bad", 7, LakeTask.STORED, table="t"))
        await until(wire, lambda: len(wire.answers) == 4)
        assert "row 1, column a" in wire.answers[3].message
        service.stop()

    asyncio.run(story())
