"""Properties of a Spark session: ours, and those that a setting adds."""

import os
from collections.abc import Mapping
from pathlib import Path

from static_engine.spark.spark_masters import MasterKind
from static_engine.spark.stuck_tasks import STUCK_SECONDS
from streamsql.errors import DeploymentError

POOLS_FILE = Path(__file__).with_name("fair_pools.xml")

_LISTED_HERE = 10_000
"""Paths of files that the driver looks at by itself."""
_LOCAL_CORES = 8
_BATCH_BYTES = 4 * 2**20
# Spark keeps finished work for web pages that we do not serve.
_KEPT_FOR_PAGES = (
    "spark.ui.retainedJobs",
    "spark.ui.retainedStages",
    "spark.ui.retainedTasks",
    "spark.sql.ui.retainedExecutions",
)
PYTHON = "spark.pyspark.python"
"""The Python program of workers; by default the one that runs here."""
_OURS = (
    "spark.master",
    "spark.driver.memory",
    "spark.driver.maxResultSize",
    "spark.scheduler.mode",
    "spark.scheduler.allocation.file",
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.execution.arrow.pyspark.enabled",
)


def check_properties(properties: Mapping[str, str]) -> None:
    """Check what a setting adds.

    Raises:
        DeploymentError: It is no property of Spark's, or one that other settings or the meaning of
            queries decide.
    """
    for name in properties:
        if not name.startswith("spark."):
            raise DeploymentError(
                f"setting spark_properties: {name!r:.80} is no property of Spark's",
                hint="their names begin with spark.",
            )
        if name in _OURS:
            raise DeploymentError(
                f"setting spark_properties: {name} is not set there",
                hint="master and memory of the driver have settings of their own; what decides "
                "the meaning of queries and the pools of jobs is fixed",
            )


def query_properties() -> dict[str, str]:
    """Return what decides the meaning of queries, alike on every master."""
    return {
        "spark.sql.ansi.enabled": "true",  # nothing wraps around or turns NULL unasked
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_BATCH_BYTES),
        # Else a batch of the pipeline looks at each of its segments by a task of a job of its own.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(_LISTED_HERE),
        "spark.sql.shuffle.partitions": str(min(os.cpu_count() or 2, _LOCAL_CORES)),
    }


def driver_properties(
    kind: MasterKind, master: str, memory: str, result_bytes: int, data_dir: Path
) -> dict[str, str]:
    """Return the properties of a driver that we start."""
    properties = {
        "spark.master": master,
        "spark.app.name": "pando",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **dict.fromkeys(_KEPT_FOR_PAGES, "10"),
        "spark.driver.memory": memory,
        # Spark compares what tasks have made already; SparkExecutor bounds what one task makes.
        "spark.driver.maxResultSize": f"{2 * result_bytes}b",
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": POOLS_FILE.as_uri(),
        "spark.local.dir": str(data_dir / "spark-scratch"),
        "spark.sql.warehouse.dir": str(data_dir / "spark-warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        **query_properties(),
    }
    if kind is MasterKind.LOCAL:
        properties["spark.driver.bindAddress"] = properties["spark.driver.host"] = "127.0.0.1"
    else:  # here RunningSpark does the same
        properties["spark.task.reaper.enabled"] = "true"
        properties["spark.task.reaper.killTimeout"] = f"{STUCK_SECONDS:.0f}s"
    return properties
