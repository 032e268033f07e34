"""A cluster of two workers: one of them is enough; without any, queries and pipeline say so.

Both go on when there is a worker again. Executors and the driver that are killed lose nothing.
"""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from static_engine.spark.java import find_java
from static_engine.spark.spark_jvm import spark_home
from tests.static_engine.children import SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_DRIVER = """
import sys
import time
from pathlib import Path
from static_engine.evaluation.static_executor import EvaluationError
from static_engine.spark.spark_session import SessionSettings, start_session
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

from static_engine.lake.lake_settings import LakeSettings
from static_engine.landing.segment_files import SegmentWriter
from static_engine.pipeline.spark_pipeline import PipelineSettings, SparkPipeline
from tests.static_engine.pipeline.test_pipeline_batches import HEAT, birth, pack

folder = Path(sys.argv[1])
(folder / "rooms.csv").write_text("room\\na\\nb\\n")
options = (("source", "csv"), ("path", "rooms.csv"))
schema = Schema.of(("room", DataType.TEXT))
rooms = SourceDefinition("rooms", SourceKind.TABLE, schema, options=options)
settings = SessionSettings(folder / "data", sys.argv[2], "512m", archive=False)
spark = start_session(settings, lambda text: None)
store = TableStore(Locations(folder), folder / "tables")
store.load(rooms)
executor = SparkExecutor(spark, store, worker_seconds=float(sys.argv[3]))
lake = LakeSettings(f"sqlite:///{folder / 'catalog.db'}", str(folder / "lake"))
writer = SegmentWriter(folder / "segments", "lander", int(sys.argv[4]) + 1, 10**9)
pipeline = SparkPipeline(PipelineSettings("demo", lake, writer.folder, folder / "pipeline", 0.2))
pipeline.attach(spark)
number = int(sys.argv[4])
print("ready", flush=True)
for line in sys.stdin:
    match line.split():
        case ["evaluate"]:
            try:
                print("rows", len(executor.evaluate(rooms.scan())), flush=True)
            except EvaluationError as error:
                print("error", error.code, error.message, flush=True)
        case ["land"]:
            number += 1
            writer.write([birth(HEAT), pack(number)], time.time())
            print("landed", number, flush=True)
        case _:
            state = pipeline.state()
            print("kept", state.rows, state.problem, flush=True)
spark.stop(patience=0)
"""


@contextlib.contextmanager
def java(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a class of Spark's."""
    command = [str(find_java().executable), "-Xmx256m", "-cp", str(spark_home() / "jars" / "*")]
    with (folder / f"{arguments[0].rpartition('.')[2]}.log").open("ab") as log:
        process = subprocess.Popen([*command, *arguments], stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Driver:
    """The process with the session, which does a thing at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def asked(self, what: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self.answer()

    def kill(self) -> None:
        """Kill the process and its JVM, as a machine that loses its power does."""
        subprocess.run(["pkill", "-9", "-P", str(self.process.pid)], check=False)
        self.process.kill()
        self.process.wait(SECONDS)

    def until(self, what: str, wanted: str) -> str:
        """Ask until the answer begins so; return it."""
        deadline = time.monotonic() + SECONDS
        while not (answer := self.asked(what)).startswith(wanted):
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
        return answer


def kill_executors(worker: subprocess.Popen[bytes]) -> None:
    """Kill what works for a worker, as a machine does that is short of memory."""
    subprocess.run(["pkill", "-9", "-P", str(worker.pid)], check=False)


def end(worker: subprocess.Popen[bytes]) -> None:
    """Kill a worker and its executors, as a machine that loses its power does."""
    kill_executors(worker)
    worker.kill()
    worker.wait(SECONDS)


@contextlib.contextmanager
def started(folder: Path, url: str, *, landed: int) -> Iterator[Driver]:
    """Start a driver whose first pack is the one after so many."""
    command = [sys.executable, "-c", _DRIVER, str(folder), url, "10", str(landed)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        driver = Driver(process)
        try:
            assert driver.answer() == "ready"
            yield driver
        finally:
            driver.kill()


def kept(folder: Path) -> list[tuple[object, ...]]:
    """Return gateway, epoch, number and place of all readings of the lake."""
    uri, where = f"sqlite:///{folder / 'catalog.db'}", (folder / "lake").as_uri()
    table = SqlCatalog("pando", uri=uri, warehouse=where).load_table("readings.heat")
    columns = ("_gateway", "_epoch", "_seq", "_place")
    return [
        tuple(row.values()) for row in table.scan(selected_fields=columns).to_arrow().to_pylist()
    ]


def test_work_goes_on_with_one_worker_and_is_refused_by_name_without_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("SPARK_HOME", str(spark_home()))
    monkeypatch.setenv("SPARK_SCALA_VERSION", "2.13")  # it looks for its own source otherwise
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port))
    worker = (
        *("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1"),
        *("--memory", "1g", "--work-dir", str(tmp_path / "work"), url),
    )
    with contextlib.ExitStack() as running:
        running.enter_context(java(tmp_path, *master, "--webui-port", "0"))
        deadline = time.monotonic() + SECONDS
        while not listens(port):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        first, second = (running.enter_context(java(tmp_path, *worker)) for _ in range(2))
        driver = running.enter_context(started(tmp_path, url, landed=0))
        assert driver.asked("land") == "landed 1"
        driver.until("evaluate", "rows 2")
        driver.until("state", "kept 2")  # a pack has two rows

        kill_executors(first)
        kill_executors(second)
        assert driver.asked("land") == "landed 2"
        driver.until("evaluate", "rows 2")
        driver.until("state", "kept 4")

        end(first)
        assert driver.asked("evaluate") == "rows 2"
        assert driver.asked("land") == "landed 3"
        driver.until("state", "kept 6")

        end(second)
        assert driver.asked("evaluate") == "error no_workers Spark has had no worker for 10 s"
        assert driver.asked("land") == "landed 4"
        deadline = time.monotonic() + SECONDS
        while "Spark has had no worker" not in (state := driver.asked("state")):
            assert state.startswith("kept 6")
            assert time.monotonic() < deadline, state
            time.sleep(0.2)

        running.enter_context(java(tmp_path, *worker))
        driver.until("evaluate", "rows 2")
        driver.until("state", "kept 8")

        assert driver.asked("land") == "landed 5"
        driver.kill()
        driver = running.enter_context(started(tmp_path, url, landed=5))
        assert driver.asked("land") == "landed 6"
        deadline = time.monotonic() + SECONDS
        while len(kept(tmp_path)) < 12:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        driver.until("evaluate", "rows 2")
    rows = kept(tmp_path)
    assert len(rows) == len(set(rows)) == 12  # each row of each pack once
