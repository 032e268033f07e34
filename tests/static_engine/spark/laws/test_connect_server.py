"""A Spark Connect server: it answers fragments, cancels them, and its end is noticed."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from static_engine.spark.java import find_java
from static_engine.spark.spark_jvm import spark_home
from tests.static_engine.children import SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
pytest.importorskip("grpc_status")

_DRIVER = """
import sys
import time
from pathlib import Path
from static_engine.evaluation.static_executor import EngineLostError, EvaluationError
from static_engine.spark.spark_jvm import SparkStartError
from static_engine.spark.spark_session import SessionSettings, start_session
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from tests.static_engine.rooms_table import ROOMS

folder = Path(sys.argv[1])
(folder / "rooms.csv").write_text("room,seats\\nr1,1\\nr2,2\\n")
store = TableStore(Locations(folder), folder / "tables")
store.load(ROOMS)
deadline = time.monotonic() + 120
while True:
    try:
        spark = start_session(SessionSettings(folder / "data", sys.argv[2]), lambda text: None)
        break
    except SparkStartError as error:  # the server is still starting
        print("not yet:", error.message, flush=True)
        assert time.monotonic() < deadline
executor = SparkExecutor(spark, store)
print("ready", flush=True)
for _ in sys.stdin:
    try:
        print("rows", len(executor.evaluate(ROOMS.scan())), flush=True)
    except (EngineLostError, EvaluationError) as error:
        print("error", error.code, flush=True)
executor.stop()
print("stopped", flush=True)
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    opened = ("java.lang", "java.lang.invoke", "java.nio", "java.util", "sun.nio.ch")
    command = [
        str(find_java().executable),
        "-Xmx512m",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened),
        "-Dio.netty.tryReflectionSetAccessible=true",
        *("-cp", str(spark_home() / "jars" / "*"), "org.apache.spark.deploy.SparkSubmit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--conf", "spark.master=local[1]", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.driver.bindAddress=127.0.0.1"),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
        *("--conf", f"spark.connect.grpc.binding.port={port}"),
        "spark-internal",
    ]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(spark_home())}
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tmp_path)
    yield process
    process.kill()
    process.wait(SECONDS)


def test_a_server_answers_and_its_end_is_said(
    tmp_path: Path, port: int, server: "subprocess.Popen[bytes]"
) -> None:
    with contextlib.ExitStack() as running:
        driver = running.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", _DRIVER, str(tmp_path), f"sc://127.0.0.1:{port}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        running.callback(driver.kill)
        stdin, stdout = driver.stdin, driver.stdout
        assert stdin is not None
        assert stdout is not None

        def answer() -> str:
            assert stdout is not None
            return stdout.readline().strip()

        def asked() -> str:
            assert stdin is not None
            stdin.write("evaluate\n")
            stdin.flush()
            return answer()

        while (said := answer()) != "ready":
            assert said.startswith("not yet: Spark did not open a session on sc://"), (
                tmp_path / "server.log"
            ).read_text()
        assert asked() == "rows 2"
        server.kill()
        server.wait(SECONDS)
        assert asked() == "error engine_lost"
        stdin.close()
        assert answer() == "stopped"
