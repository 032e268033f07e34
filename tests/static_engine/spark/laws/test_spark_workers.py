"""A cluster whose only worker ends: a query fails by name, and answers when there is one again."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from static_engine.spark.java import find_java
from static_engine.spark.spark_jvm import spark_home
from tests.static_engine.children import SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_DRIVER = """
import sys
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
print("ready", flush=True)
for _ in sys.stdin:
    try:
        print("rows", len(executor.evaluate(rooms.scan())), flush=True)
    except EvaluationError as error:
        print("error", error.code, error.message, flush=True)
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


def test_a_query_without_workers_fails_by_name_and_answers_when_one_is_back(
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
        first = running.enter_context(java(tmp_path, *worker))
        driver = running.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", _DRIVER, str(tmp_path), url, "10"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        running.callback(driver.kill)
        assert driver.stdin is not None
        assert driver.stdout is not None

        def asked() -> str:
            assert driver.stdin is not None
            assert driver.stdout is not None
            driver.stdin.write("evaluate\n")
            driver.stdin.flush()
            return driver.stdout.readline().strip()

        assert driver.stdout.readline().strip() == "ready"
        while (answer := asked()) != "rows 2":  # the worker may need longer to start than 10 s
            assert answer.startswith("error no_workers"), answer
            assert time.monotonic() < deadline + SECONDS
        subprocess.run(["pkill", "-9", "-P", str(first.pid)], check=False)  # its executors
        first.kill()
        first.wait(SECONDS)
        assert asked() == "error no_workers Spark has had no worker for 10 s"
        running.enter_context(java(tmp_path, *worker))
        while (answer := asked()) != "rows 2":
            assert answer.startswith("error no_workers"), answer
            assert time.monotonic() < deadline + 2 * SECONDS
