"""Care of one lake: carries out what is asked, and by itself what is due.

By itself, every few minutes and source by source: small files are put together, roll-ups follow
their readings, days that are no longer kept go, and once an hour former states are discarded.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from static_engine.care.believed_time import BelievedTime, text_of, time_of
from static_engine.care.care_jobs import JobBook
from static_engine.care.compaction import LEAST_FILES, Progress, compact
from static_engine.care.expiry import expire
from static_engine.care.export import export
from static_engine.care.lake_figures import SHOWN, LakeFigures, with_policy
from static_engine.care.retention import drop_before, first_kept
from static_engine.care.rollups import roll_up
from static_engine.care.samples import sample_of
from static_engine.care.workers import Workers
from static_engine.lake.kept_readings import ARRIVED, EVENT_TIME, READINGS
from static_engine.lake.lake import SYSTEM, Lake
from static_engine.lake.lake_errors import DAMAGE, LakeError
from static_engine.lake.lake_scan import moment
from streamsql.catalog.keep_options import DAY, FOREVER, NO, Keeping, keep_of, rollups_of
from streamsql.errors import FederationError
from streamsql.wire.messages import KeptSource
from streamsql.wire.stored_tables.lake_messages import (
    LakeJob,
    LakeRequest,
    LakeSample,
    LakeTable,
    LakeTask,
)

log = logging.getLogger(__name__)

EXPIRE_SECONDS = 3_600.0
"""Between two times that care discards former states by itself."""
CARE = "care"
TIME_PROPERTY = "pando.care.time"
"""Of the namespace of readings: see `believed_time`."""
TROUBLE = (FederationError, OSError, SQLAlchemyError, *DAMAGE)
"""Of one table: the others have their turn."""
MAX_FAILED = 20
MAX_FAILURE = 300

Run = Callable[[Progress], str]


@dataclass(slots=True)
class LakeCare:
    """Care of one lake. `run` and `pass_due` are for one thread, all else for any.

    Attributes:
        lake: The lake.
        workers: Returns who does the work at the moment.
        exports: Folder of files that exports write.
        clock: Microseconds since 1970.
        jobs: What runs and has run.
        replay: Sends dead letters through the pipeline again, and returns how many; None: there is
            no pipeline.
        sources: What sources say of their readings.
        default_keep: Of sources that say nothing.
        system_keep: Of messages in the namespace `system`.
        default_rollup: Likewise.
        monotonic: Seconds of a clock that nobody sets.
    """

    lake: Lake
    workers: Callable[[], Workers]
    exports: Path
    clock: Callable[[], int]
    jobs: JobBook
    replay: Callable[[], int] | None = None
    sources: Mapping[str, KeptSource] = field(default_factory=dict)
    default_keep: str = FOREVER
    system_keep: str = FOREVER
    default_rollup: str = NO
    monotonic: Callable[[], float] = time.monotonic
    _figures: LakeFigures = field(init=False)
    _expired: float = field(init=False, default=-EXPIRE_SECONDS)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _looked: float | None = field(init=False, default=None)
    _said: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._figures = LakeFigures(self.lake)

    def tables(self) -> tuple[tuple[LakeTable, ...], int]:
        """Return the figures of all tables, and how many are left out."""
        with self._lock:
            found, more = self._figures.tables()
        return tuple(self._shown(table) for table in found), more

    def sample(self, request: LakeRequest) -> LakeSample:
        """Return a sample of a table.

        Raises:
            LakeError: There is no such table.
        """
        namespace, name = self._named(request.table)
        table = self.lake.table(name, namespace)
        figures, _ = self.tables()
        last = next((f.last for f in figures if (f.namespace, f.name) == (namespace, name)), None)
        return sample_of(table, last, request.since, request.until, request.rows)

    def order(self, request: LakeRequest) -> tuple[LakeJob, Run]:
        """Return the job that a request asks for, noted as waiting, and what does it.

        Raises:
            LakeError: There is no such table, or too much waits.
        """
        run = self._run_of(request)
        return self.jobs.add(str(request.task), request.table), run

    def run(self, job: LakeJob, run: Run) -> None:
        """Do a job; what goes wrong is noted with it."""
        if not self.jobs.begin(job.id):
            return
        try:
            message = run(lambda done, total: self.jobs.progress(job.id, done, total))
        except FederationError as error:
            self.jobs.fail(job.id, str(error).replace("\n", "; "))
        except Exception as error:
            log.exception("a job of the lake failed: %s %s", job.task, job.table)
            self.jobs.fail(job.id, f"{type(error).__name__}: {error}"[:2_000])
        else:
            self.jobs.end(job.id, message)

    def pass_due(self, now: float) -> None:
        """Do what is due by itself, as one job; `now` is in seconds of a monotonic clock."""
        job = self.jobs.add(CARE, "")
        self.run(job, lambda progress: self._pass(progress, now))
        ended = next((each for each in self.jobs.all() if each.id == job.id), None)
        if ended is not None and not ended.message:
            self.jobs.discard(job.id)

    def keeping(self, source: str) -> Keeping:
        """Return what becomes of a source's readings."""
        said = self.sources.get(source) or KeptSource(source)
        kept, keep = keep_of(said.keep or self.default_keep)
        if not kept:  # what was kept before stays until the default is over
            _, keep = keep_of(self.default_keep)
        return Keeping(kept, keep, rollups_of(said.rollup or self.default_rollup) if kept else ())

    def _run_of(self, request: LakeRequest) -> Run:
        match request.task:
            case LakeTask.COMPACT:
                tables = self._chosen(request.table)
                return lambda progress: self._compact(tables, progress, 2)
            case LakeTask.EXPIRE:
                tables = self._chosen(request.table)
                return lambda progress: self._expire(tables, progress)
            case LakeTask.EXPORT:
                namespace, name = self._named(request.table)
                self.lake.table(name, namespace)
                return lambda progress: self._export(namespace, name, request, progress)
            case LakeTask.REPLAY:
                replay = self.replay
                if replay is None:
                    raise LakeError(
                        "there is no pipeline that would take dead letters",
                        hint="start the static engine with Spark and a lake",
                    )
                return lambda _progress: f"{replay()} dead letters sent through the pipeline again"
            case _:
                raise LakeError(f"{request.task} is no job of the lake")

    def _compact(self, tables: list[tuple[str, str]], progress: Progress, least: int) -> str:
        before = after = 0
        failed: list[str] = []
        for place, (namespace, name) in enumerate(tables):
            if not progress(place, len(tables)):
                break
            workers = self.workers()
            try:
                table = self.lake.table(name, namespace)
                done = compact(table, workers, _within(progress, place, len(tables)), least)
            except TROUBLE as error:
                failed.append(_failure(name, error))
                continue
            before, after = before + done.files_before, after + done.files_after
        progress(len(tables), len(tables))
        if len(failed) == len(tables) == 1:
            raise LakeError(failed[0])
        said = f"{before} files became {after}" if before else "no file was small enough"
        return "; ".join([said, *failed[:MAX_FAILED]])

    def _expire(self, tables: list[tuple[str, str]], progress: Progress) -> str:
        snapshots = files = size = 0
        failed: list[str] = []
        now = self._time()
        for place, (namespace, name) in enumerate(tables):
            if not progress(place, len(tables)):
                break
            try:
                gone = self._drop_old(namespace, name, now.time)
                table = self.lake.table(name, namespace)
                done = expire(table, moment(now.time), _within(progress, place, len(tables)))
            except TROUBLE as error:
                failed.append(_failure(name, error))
                continue
            snapshots += done.snapshots
            files += done.files
            size += done.bytes
            if gone:
                log.info("%d rows of %s were kept long enough", gone, name)
        progress(len(tables), len(tables))
        said = f"{snapshots} former states discarded, {files} files removed ({size / 1e6:.1f} MB)"
        if len(failed) == len(tables) == 1:
            raise LakeError(failed[0])
        return "; ".join([said, *_waiting(now), *failed[:MAX_FAILED]])

    def _export(self, namespace: str, name: str, request: LakeRequest, progress: Progress) -> str:
        stamp = datetime.fromtimestamp(self.clock() / 1_000_000, UTC).strftime("%Y%m%dT%H%M%S")
        path, rows = export(
            self.lake.table(name, namespace),
            self.exports,
            f"{namespace}.{name}-{stamp}-{request.id[:8]}",
            request.form,
            progress,
            since=request.since,
            until=request.until,
        )
        return f"{rows} rows written to {path}"

    def _pass(self, progress: Progress, now: float) -> str:
        believed = self._time()
        said = _waiting(believed)
        sources = self.lake.kept_sources()
        for place, name in enumerate(sources):
            if not progress(place, len(sources)):
                break
            said += self._care_of(name, believed.time, _within(progress, place, len(sources)))
        for name in self.lake.names(SYSTEM):
            try:
                said += self._compacted([(SYSTEM, name)], progress)
                gone = self._drop_old(SYSTEM, name, believed.time)
                said += [f"{name}: {gone} messages were kept long enough"] if gone else []
            except TROUBLE as error:
                said.append(_failure(name, error))
        if now - self._expired >= EXPIRE_SECONDS:
            self._expired = now
            tables = self._chosen("")
            text = self._expire(tables, progress)
            nothing = "0 former states discarded, 0 files removed (0.0 MB)"
            said += [] if text == nothing else [text]
        return "; ".join(said)

    def _care_of(self, name: str, now: int, progress: Progress) -> list[str]:
        """Do what is due of one source; a source that fails leaves the others alone."""
        said = []
        try:
            keeping = self.keeping(name)
            said += self._compacted([(READINGS, name)], progress)
            since = None if keeping.keep is None else first_kept(keeping.keep, now)
            keys = (self.sources.get(name) or KeptSource(name)).keys
            for rollup in keeping.rollups:
                days = roll_up(
                    self.lake,
                    name,
                    rollup,
                    keys,
                    workers=self.workers(),
                    progress=progress,
                    since=since,
                    until=now + DAY,
                )
                said += [f"{name}: {rollup.words} roll-up of {days} days"] if days else []
            gone = self._drop_old(READINGS, name, now)
            said += [f"{name}: {gone} readings were kept long enough"] if gone else []
        except TROUBLE as error:
            said.append(_failure(name, error))
            log.warning("care of source %s", said[-1])
        return said

    def _compacted(self, tables: list[tuple[str, str]], progress: Progress) -> list[str]:
        text = self._compact(tables, progress, LEAST_FILES)
        return [] if text.startswith("no file") else [f"{tables[0][-1]}: {text}"]

    def _drop_old(self, namespace: str, name: str, now: int) -> int:
        if namespace == READINGS:
            keep, column = self.keeping(name).keep, EVENT_TIME
        else:
            keep, column = keep_of(self.system_keep)[1], ARRIVED
        if keep is None or namespace not in {READINGS, SYSTEM}:
            return 0
        return drop_before(self.lake.table(name, namespace), first_kept(keep, now), column)

    def _time(self) -> BelievedTime:
        """Return the time by which things are removed, and keep it in the lake's catalog."""
        at, catalog = self.monotonic(), self.lake.catalog
        elapsed = 0 if self._looked is None else round((at - self._looked) * 1_000_000)
        known = catalog.load_namespace_properties(READINGS).get(TIME_PROPERTY)
        now = self.clock()
        found = time_of(known, now).later(now, elapsed)
        catalog.update_namespace_properties(READINGS, updates={TIME_PROPERTY: text_of(found)})
        self._looked = at
        if found.since not in (None, self._said):
            log.warning("%s", _waiting(found)[0])
        self._said = found.since
        return found

    def _shown(self, table: LakeTable) -> LakeTable:
        if table.namespace == SYSTEM:
            return with_policy(table, self.system_keep, ())
        if table.namespace != READINGS:
            return table
        keeping = self.keeping(table.name)
        said = self.sources.get(table.name) or KeptSource(table.name)
        text = said.keep or self.default_keep
        return with_policy(table, text, tuple(each.words for each in keeping.rollups))

    def _chosen(self, table: str) -> list[tuple[str, str]]:
        if table:
            named = self._named(table)
            self.lake.table(named[1], named[0])
            return [named]
        return [(space, name) for space in SHOWN for name in self.lake.names(space)]

    def _named(self, text: str) -> tuple[str, str]:
        """Return namespace and name of a table; a source may be named alone."""
        namespace, dot, name = text.partition(".")
        if not dot:
            return READINGS, text.lower() if text.lower() in self.lake.kept_sources() else text
        if namespace not in SHOWN:
            raise LakeError(
                f"there is no part {namespace!r:.40} of the lake", hint=f"one of {', '.join(SHOWN)}"
            )
        return namespace, name


def _waiting(time: BelievedTime) -> list[str]:
    """Return what to say of a clock that is not believed; nothing if it is."""
    if time.until is None:
        return []
    days = (time.seen - time.time) / DAY
    return [
        f"the clock is {days:.1f} days ahead of what was expected: what it makes old stays until "
        f"{moment(time.until):%Y-%m-%d %H:%M} UTC by that clock"
    ]


def _failure(name: str, error: Exception) -> str:
    text = (
        error.message if isinstance(error, FederationError) else f"{type(error).__name__}: {error}"
    )
    return f"{name}: {text}"[:MAX_FAILURE]


def _within(progress: Progress, place: int, places: int) -> Progress:
    """Return the progress of one table of several, in thousandths of a table."""

    def tell(done: int, total: int) -> bool:
        share = 1_000 * done // total if total else 0
        return progress(place * 1_000 + min(share, 1_000), places * 1_000)

    return tell
