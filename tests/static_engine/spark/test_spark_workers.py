"""Workers of Spark do the lake's tasks as this process does them."""

from pathlib import Path

import pytest

from static_engine.care.compaction import compact
from static_engine.care.rollups import ROLLUPS, roll_up
from static_engine.lake.lake_errors import LakeError
from static_engine.spark.spark_session import RunningSpark
from static_engine.spark.spark_workers import TOGETHER, SparkWorkers
from streamsql.catalog.keep_options import RollUp
from tests.static_engine.care.test_compaction import filled, go_on, rows_of


def test_files_are_put_together_and_summed_up(spark: RunningSpark, tmp_path: Path) -> None:
    lake = filled(tmp_path)
    before = rows_of(lake)
    workers = SparkWorkers(spark)
    done = compact(lake.table("heat"), workers, go_on, 2)
    assert (done.groups, len(lake.plan("heat").files)) == (2, 2)
    assert rows_of(lake) == before
    assert roll_up(lake, "heat", RollUp.DAY, (), workers=workers, progress=go_on) == 2
    sums = lake.table("heat__1d", ROLLUPS).scan().to_arrow()
    assert sum(sums["_count"].to_pylist()) == 23  # four were withdrawals


def test_outcomes_keep_the_order_of_tasks(spark: RunningSpark) -> None:
    tasks = [str(number).encode() for number in range(TOGETHER + 2)]
    assert list(SparkWorkers(spark).run(bytes.upper, tasks, "order")) == tasks


def test_a_task_that_fails_says_what_and_why(spark: RunningSpark) -> None:
    with pytest.raises(LakeError, match="counting failed"):
        list(SparkWorkers(spark).run(lambda task: bytes(int(task)), [b"x"], "counting"))
