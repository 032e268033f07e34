"""The pipeline's Structured Streaming query: which segments a batch has, and who reads them.

The query's source is the folder of segments, of which it reads the names only; its checkpoint says
which batch has which. Executors read the segments themselves, so one that is damaged ends no job.
"""

import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from host.clocks import wall_clock
from host.files.atomic_file import remove_file
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.landing.segment_files import segments
from static_engine.pipeline.known_definitions import KnownDefinitions
from static_engine.pipeline.pipeline_batches import PipelineBatches
from static_engine.pipeline.pipeline_progress import PipelineProgress
from static_engine.pipeline.replayed_letters import ReplayReport, replay_letters
from static_engine.pipeline.staged_files import Staged, StagePlan, Work, staged_segments
from static_engine.spark.spark_session import RunningSpark, error_text
from static_engine.spark.spark_work import Cancelled, Pool, no_workers
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import DeploymentError, FederationError
from streamsql.wire.site_messages import PipelineState
from streamsql.wire.source_shapes import SourceShape

MAX_SEGMENTS = 200
"""Of a batch."""
RENEW_BATCHES = 200_000
RENEW_SEGMENTS = 300_000
"""After so many a new checkpoint is begun: Spark keeps the names of all segments in memory."""
_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
GRACE_SECONDS = 10.0
"""For which a segment stays after its batch: the checkpoint is written meanwhile."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_POLL_SECONDS = 0.5
_PATIENCE_SECONDS = 3.0
"""For the end of a batch: a service that is stopped should not take longer."""
_TRIES_WITH_A_CHECKPOINT = 3
log = logging.getLogger(__name__)


class PipelineSettings(msgspec.Struct, frozen=True):
    """Settings of the pipeline.

    Attributes:
        site: Name of the federation.
        lake: Where rows are kept.
        segments: Folder of the lander's segments; every worker of a cluster has to see it.
        folder: Of our own files: checkpoint, packs seen, definitions.
        seconds: Between the beginnings of batches, if there is something to keep.
    """

    site: str
    lake: LakeSettings
    segments: Path
    folder: Path
    seconds: float = 3.0


class SparkPipeline:
    """Keeps what is landed, as long as there is a session. Methods may be called by any thread.

    Args:
        settings: See `PipelineSettings`.

    Raises:
        LakeError: What is known of sources cannot be read.
    """

    def __init__(self, settings: PipelineSettings) -> None:
        self._settings = settings
        self._definitions = KnownDefinitions(settings.folder / "definitions.json")
        self._progress = PipelineProgress(wall_clock)
        self._lock = threading.Lock()  # around a batch, and what must not meet one
        self._batches: PipelineBatches | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._kept: list[tuple[float, Path]] = []
        self._began_batch = False
        self._waiting = (0, 0)
        self._learned = False
        self._is_ending = False
        self._is_complete = False
        self._segments = 0
        self._is_old = False

    @property
    def _checkpoint(self) -> Path:
        return self._settings.folder / "checkpoint"

    def attach(self, spark: RunningSpark) -> None:
        """Run in a session, until `detach` or its end; a Connect server cannot run it."""
        if spark.is_remote:
            self._progress.problem = (
                "the pipeline does not run on a Spark Connect server: nothing is kept. Let "
                "spark_master name a master whose driver is started here"
            )
            return
        if self._thread is not None:
            self._thread.join()  # its session has ended
        self._stopped.clear()
        self._thread = threading.Thread(
            target=self._run, args=(spark,), name="pipeline", daemon=True
        )
        self._thread.start()

    def detach(self) -> None:
        """End after the batch that runs, before its session is ended.

        A batch that goes on is cut off by the end of the session, and repeated.
        """
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)

    def state(self) -> PipelineState:
        """Return what it does; segments were counted a moment ago."""
        return self._progress.state(*self._waiting)

    def learn(self, shapes: tuple[SourceShape, ...]) -> None:
        """Take what a birth says of sources; dead letters of new ones are tried again."""
        self._learned |= bool(self._definitions.learn(shapes))

    def learn_order(self, definition: SourceDefinition) -> None:
        """Take a definition of the catalog; see `learn`."""
        self._learned |= bool(self._definitions.learn_order(definition))

    def leave_out(self, sources: frozenset[str]) -> None:
        """Keep nothing of some sources from the next batch on; of any thread."""
        self._definitions.unkept = sources

    def replay(self) -> ReplayReport:
        """Try dead letters again; blocking, between two batches.

        Raises:
            DeploymentError: There is no session yet, or the lake cannot be changed.
        """
        with self._lock:
            return replay_letters(self._open())

    def _run(self, spark: RunningSpark) -> None:
        pause = _FIRST_PAUSE
        failures = 0
        while not self._stopped.is_set() and spark.usable():
            self._began_batch = self._is_ending = False
            try:
                if failures >= _TRIES_WITH_A_CHECKPOINT and self._checkpoint.exists():
                    self._set_checkpoint_aside()
                    failures = 0
                self._settings.segments.mkdir(parents=True, exist_ok=True)
                self._watch(self._start(spark), spark)
                if self._is_old:
                    self._renew_checkpoint()
                    continue
            except Exception as error:  # noqa: BLE001 - whatever it is, the pipeline goes on
                if not spark.usable():
                    break
                self._failed(error)
            else:
                break
            failures = 0 if self._began_batch else failures + 1
            pause = _FIRST_PAUSE if self._began_batch else min(2 * pause, _LONGEST_PAUSE)
            self._count_waiting()
            self._stopped.wait(pause)
        self._progress.running = False

    def _start(self, spark: RunningSpark) -> StreamingQuery:
        session = spark.session
        names = (
            session.readStream.format("binaryFile")
            .schema(_FILES)
            .option("ignoreMissingFiles", "true")
            .option("pathGlobFilter", "*.parquet")
            # By default a segment that is a week older than the newest counts for nothing: after a
            # clock that was wrong, that would be all of them.
            .option("maxFileAge", "36500d")
            .option("maxFilesPerTrigger", str(MAX_SEGMENTS))
            .load(str(self._settings.segments))
            .select("path")
        )
        return (
            names.writeStream.queryName("pipeline")
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=f"{self._settings.seconds:g} seconds")
            .foreachBatch(lambda frame, number: self._batch(frame, number, spark))
            .start()
        )

    def _watch(self, query: StreamingQuery, spark: RunningSpark) -> None:
        """Wait for the end of the query; meanwhile remove segments that are kept."""
        self._progress.running, self._progress.problem = True, ""
        try:
            while not self._stopped.wait(_POLL_SECONDS):
                if not spark.usable() or not query.isActive:
                    break
                self._remove_kept()
                self._count_waiting()
                if self._learned:
                    self._replay_learned()
                if self._is_old:
                    break
        finally:
            self._progress.running = False
            self._is_ending = True
            if self._lock.acquire(timeout=_PATIENCE_SECONDS):  # the next batch is refused
                self._lock.release()
            with suppress(PySparkException, Py4JError, OSError):
                query.stop()
        error = query.exception() if spark.usable() else None
        if error is not None:
            raise error

    def _batch(self, frame: DataFrame, number: int, spark: RunningSpark) -> None:
        """Keep one batch; runs on a thread of the query's."""
        with self._lock:
            if self._is_ending:
                raise DeploymentError("the pipeline is being stopped; the batch is repeated")
            self._began_batch, self._is_complete = True, False
            work = spark.work(Pool.PIPELINE, f"batch {number} of the pipeline")
            try:
                with work:
                    self._keep_batch(frame, number, spark)
            except (PySparkException, Py4JError) as error:
                if work.cancelled is Cancelled.NO_WORKERS:
                    raise no_workers() from error
                raise
            self._is_complete = True
            self._is_old = number >= RENEW_BATCHES or self._segments >= RENEW_SEGMENTS

    def _keep_batch(self, frame: DataFrame, number: int, spark: RunningSpark) -> None:
        paths = [Path(unquote(urlparse(row.path).path)) for row in frame.collect()]
        if not paths:
            return
        self._segments += len(paths)
        report = self._open().run(number, sorted(paths), _on_executors(spark))
        self._progress.add(report)
        self._learned |= bool(report.learned)
        moment = time.monotonic()
        self._kept += [(moment, path) for path in paths]

    def _open(self) -> PipelineBatches:
        """Return the driver's part; its batches are numbered by the checkpoint."""
        if self._batches is None:
            origin = checkpoint_id(self._checkpoint)
            lake = Lake(self._settings.lake)
            self._batches = PipelineBatches(
                lake, self._settings.site, self._definitions, self._settings.folder, origin
            )
        return self._batches

    def _count_waiting(self) -> None:
        waiting = size = 0
        kept = {path for _, path in list(self._kept)}
        for path in segments(self._settings.segments):
            if path not in kept:
                with suppress(OSError):
                    size += path.stat().st_size
                    waiting += 1
        self._waiting = waiting, size

    def _remove_kept(self) -> None:
        due = time.monotonic() - GRACE_SECONDS
        if not self._kept or self._kept[0][0] > due:
            return
        os.sync()  # after a power cut there must be the files of the lake, or the segments
        with self._lock:
            gone = [path for moment, path in self._kept if moment <= due]
            self._kept = [each for each in self._kept if each[0] > due]
        for path in gone:
            remove_file(path)

    def _replay_learned(self) -> None:
        self._learned = False
        if not self._checkpoint.exists():
            return
        try:
            report = self.replay()
        except Exception as error:  # noqa: BLE001 - they are tried again with the next definition
            log.warning("dead letters could not be tried again: %s", error)
            return
        if report.recovered:
            log.info("%d dead letters of sources that are known now are kept", report.recovered)

    def _failed(self, error: Exception) -> None:
        text = error.message if isinstance(error, FederationError) else _cause(error)
        if not isinstance(error, PySparkException | Py4JError | OSError | FederationError):
            log.error("a defect interrupted the pipeline", exc_info=error)
        log.warning("the pipeline stands still, and goes on by itself: %s", text)
        self._progress.problem = text

    def _set_checkpoint_aside(self) -> None:
        """Begin with a new checkpoint: what was kept is known by its packs."""
        name = f"checkpoint-{wall_clock() // 1_000_000}"
        names = (name, *(f"{name}-{number}" for number in range(2, 1_000)))
        aside = next(each for each in map(self._checkpoint.with_name, names) if not each.exists())
        self._checkpoint.rename(aside)
        self._close()
        log.warning("Spark cannot go on from the checkpoint; it is in %s now", aside)

    def _renew_checkpoint(self) -> None:
        """Begin with a new checkpoint where the old one has ended."""
        self._is_old = False
        self._segments = 0
        if not self._is_complete or self._batches is None:
            return  # the next batch is looked at again
        over = self._checkpoint.with_name(".checkpoint-over")
        shutil.rmtree(over, ignore_errors=True)
        with self._lock:
            self._batches.hand_over()
            self._close()
            self._checkpoint.rename(over)
        shutil.rmtree(over, ignore_errors=True)
        log.info("the pipeline begins a new checkpoint")

    def _close(self) -> None:
        if self._batches is not None:
            self._batches.close()
            self._batches = None


def checkpoint_id(checkpoint: Path) -> str:
    """Return the id that Spark has given to a checkpoint.

    Raises:
        DeploymentError: There is none yet, or it is damaged.
    """
    try:
        found = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"]
        return str(found)[:36]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeploymentError(
            f"the pipeline's checkpoint in {checkpoint} has no id: {error}",
            hint="it has one once the pipeline has begun; move a damaged folder away",
        ) from error


def _on_executors(spark: RunningSpark) -> Work:
    """Return what spreads the segments of a batch over the executors."""

    def work(plan: StagePlan, paths: Sequence[str]) -> list[Staged]:
        context = spark.session.sparkContext
        parts = max(1, min(len(paths), context.defaultParallelism))
        groups = [list(paths[part::parts]) for part in range(parts)]
        # Functions of queries are sent with the language's classes by value, which structs do not
        # survive (`lowering.python_functions`). Bytes go as they are.
        packed = msgspec.msgpack.encode(plan)

        def stage(tasks: Iterable[list[str]]) -> Iterator[bytes]:
            known = msgspec.msgpack.decode(packed, type=StagePlan)
            for task in tasks:
                for each in staged_segments(task, known):
                    yield msgspec.msgpack.encode(each)

        found = context.parallelize(groups, parts).mapPartitions(stage).collect()
        return [msgspec.msgpack.decode(each, type=Staged) for each in found]

    return work


def _cause(error: Exception) -> str:
    """Return the last line that says something: Spark puts the error of Python behind its own."""
    text = error_text(error, limit=4_000)
    marks = [line for line in str(error).splitlines() if "Error: " in line or "Exception: " in line]
    return (marks[-1].strip() if marks else text)[:300]
