"""Tasks that stay after their work was cancelled: seen, waited for, and ended with their JVM."""

import os
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import pytest

from static_engine.spark.stuck_tasks import is_stuck
from tests.static_engine.children import lend_archive

STICKS = """
import sys, threading, time
from pathlib import Path
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from static_engine.spark import spark_session
from static_engine.spark.spark_work import Pool
from static_engine.spark.stuck_tasks import tasks_left

spark_session.STUCK_SECONDS = 2.0
settings = spark_session.SessionSettings(Path(sys.argv[1]), "local[1]", "512m")
spark = spark_session.start_session(settings, lambda _text: None)
once = "aggregate(sequence(1, 100000), 0L, (b, y) -> b + y + id)"
rows = spark.session.range(1, 2, 1, 1)  # a task of one row, in which it does not look up
row = rows.selectExpr(f"aggregate(sequence(1, 100000), 0L, (a, x) -> a + {once})")
work = spark.work(Pool.INTERACTIVE, "a row of ten thousand million turns")

def run():
    try:
        with work:
            row.collect()
    except (PySparkException, Py4JError, OSError):
        pass

threading.Thread(target=run, daemon=True).start()
jobs = spark.session.sparkContext.statusTracker()
deadline = time.monotonic() + 60
while time.monotonic() < deadline and not any(
    jobs.getStageInfo(stage).numActiveTasks for stage in jobs.getActiveStageIds()
):
    time.sleep(0.1)
assert not tasks_left(spark.session)()
work.cancel()
while time.monotonic() < deadline and spark.usable():
    time.sleep(0.1)
print("usable" if spark.usable() else "ended", flush=True)
spark.stop()
"""


def test_tasks_that_end_in_time_are_waited_for() -> None:
    looks: list[Set[int]] = [frozenset(), {1}, {1, 2}, {2}, frozenset(), {3}]
    seen = iter(looks)
    assert not is_stuck(lambda: next(seen, frozenset()), seconds=60, poll_seconds=0)
    assert next(seen, None) is None  # it has looked until nothing was left


def test_one_task_that_stays_is_enough() -> None:
    others = iter(range(2, 1_000_000))
    assert is_stuck(lambda: {1, next(others)}, seconds=0.01, poll_seconds=0.001)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_jvm_whose_cancelled_task_stays_is_ended(tmp_path: Path, class_archive: Path) -> None:
    folder = lend_archive(class_archive, tmp_path / "data")
    ran = subprocess.run(
        [sys.executable, "-c", STICKS, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert ran.stdout.strip() == "ended"
    assert "cancelled work goes on after 2 s: Spark is ended" in ran.stderr
