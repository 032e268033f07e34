"""The pipeline in a session of Spark: segments become rows, and are gone."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The service has it loaded, too: it decides how the language's classes are sent to workers.
import static_engine.lowering.python_functions  # noqa: F401
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.landing.segment_files import LandedMessage, SegmentWriter
from static_engine.pipeline import spark_pipeline
from static_engine.pipeline.spark_pipeline import PipelineSettings, SparkPipeline
from static_engine.spark.spark_session import RunningSpark
from streamsql.errors import DeploymentError
from streamsql.wire.source_shapes import shape_of
from tests.static_engine.pipeline.test_pipeline_batches import (
    HEAT,
    SEAT,
    birth,
    messages,
    pack,
    values,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SECONDS = 240.0


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)  # time passes: for what other threads and the JVM do


class Running:
    """A pipeline over a folder of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = LakeSettings(f"sqlite:///{folder / 'catalog.db'}", str(folder / "lake"))
        self.segments = SegmentWriter(folder / "segments with space", "lander", 1, 10**9)
        self.pipeline = self.opened()

    def opened(self) -> SparkPipeline:
        """Return a pipeline as a new process has it."""
        settings = PipelineSettings(
            "demo", self.lake, self.segments.folder, self.folder / "pipeline", 0.2
        )
        return SparkPipeline(settings)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(spark_pipeline, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(spark_pipeline, "_FIRST_PAUSE", 0.1)
    found = Running(tmp_path)
    yield found
    found.pipeline.detach()


def test_segments_are_kept_once_across_restarts_and_a_lost_checkpoint(
    running: Running, spark: RunningSpark
) -> None:
    running.pipeline.attach(spark)
    now = time.time()
    running.segments.write([birth(HEAT), pack(1), pack(2, SEAT)], now)
    until(lambda: running.pipeline.state().rows == 2)
    running.pipeline.learn((shape_of(SEAT.scan()),))  # its dead letter is tried again
    lake = Lake(running.lake)
    until(lambda: "seat" in lake.kept_sources() and values(lake, "seat") == [2, 2])
    until(lambda: messages(lake, "dead_letters") == [])  # they go after their rows are there
    running.segments.write([pack(1), pack(3)], now)
    until(lambda: not list(running.segments.folder.glob("*.parquet")))
    state = running.pipeline.state()
    assert (state.running, state.rows, state.repeated, state.problem) == (True, 4, 1, "")
    running.pipeline.detach()
    assert not running.pipeline.state().running

    checkpoint = running.folder / "pipeline" / "checkpoint"
    offsets = sorted((checkpoint / "offsets").iterdir())
    for path in (each for each in offsets if not each.name.startswith(".")):
        path.write_text("v9\nof another release", encoding="utf-8")
    for crc in checkpoint.rglob(".*.crc"):
        crc.unlink()
    running.segments.write([pack(3), pack(4)], now)
    running.pipeline = running.opened()
    running.pipeline.attach(spark)
    until(lambda: values(lake) == [1, 1, 3, 3, 4, 4])
    assert list(running.folder.glob("pipeline/checkpoint-*"))


def test_a_clock_that_was_ahead_and_a_new_checkpoint_lose_no_segment(
    running: Running, spark: RunningSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark knows segments by their names and ages; both are of a machine whose clock is wrong."""
    monkeypatch.setattr(spark_pipeline, "RENEW_SEGMENTS", 3)
    lake = Lake(running.lake)
    made = SegmentWriter(running.folder / "made", "lander", 1, 10**9)
    now, year = time.time(), 366 * 86_400.0

    def land(clock: float, *found: LandedMessage) -> None:
        path = made.write(found, clock)
        os.utime(path, (clock, clock))
        path.replace(running.segments.folder / path.name)

    running.pipeline.attach(spark)
    land(now + year, birth(HEAT), pack(1))
    until(lambda: "heat" in lake.kept_sources() and values(lake) == [1, 1])
    first = spark_pipeline.checkpoint_id(running.pipeline._checkpoint)
    land(now, pack(2))
    land(now - year, pack(3), pack(1))
    until(lambda: values(lake) == [1, 1, 2, 2, 3, 3])
    land(now - year, pack(4), pack(3))
    until(lambda: values(lake) == [1, 1, 2, 2, 3, 3, 4, 4])

    def is_new() -> bool:
        try:
            return spark_pipeline.checkpoint_id(running.pipeline._checkpoint) != first
        except DeploymentError:
            return False

    until(is_new)
    assert not list(running.folder.glob("pipeline/checkpoint-*"))
    until(lambda: not list(running.segments.folder.glob("*.parquet")))
