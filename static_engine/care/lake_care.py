"""Care of one lake: carries out what is asked, and by itself what is due.

By itself, every few minutes and source by source: small files are put together, roll-ups follow
their readings, days that are no longer kept go, and once an hour former states are discarded.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from static_engine.care.care_jobs import JobBook
from static_engine.care.compaction import LEAST_FILES, Progress, compact
from static_engine.care.expiry import expire
from static_engine.care.export import export
from static_engine.care.lake_figures import SHOWN, LakeFigures, with_policy
from static_engine.care.retention import drop_before, first_kept
from static_engine.care.rollups import roll_up
from static_engine.care.samples import sample_of
from static_engine.care.workers import Workers
from static_engine.lake.kept_readings import EVENT_TIME, READINGS
from static_engine.lake.lake import SYSTEM, Lake
from static_engine.lake.lake_errors import LakeError
from streamsql.catalog.keep_options import FOREVER, NO, Keeping, keep_of, rollups_of
from streamsql.errors import FederationError
from streamsql.wire.lake_messages import (
    KeptSource,
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
        default_rollup: Likewise.
    """

    lake: Lake
    workers: Callable[[], Workers]
    exports: Path
    clock: Callable[[], int]
    jobs: JobBook
    replay: Callable[[], int] | None = None
    sources: Mapping[str, KeptSource] = field(default_factory=dict)
    default_keep: str = FOREVER
    default_rollup: str = NO
    _figures: LakeFigures = field(init=False)
    _expired: float = field(init=False, default=-EXPIRE_SECONDS)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

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
        for place, (namespace, name) in enumerate(tables):
            if not progress(place, len(tables)):
                break
            table = self.lake.table(name, namespace)
            done = compact(table, self.workers(), _within(progress, place, len(tables)), least)
            before, after = before + done.files_before, after + done.files_after
        progress(len(tables), len(tables))
        return f"{before} files became {after}" if before else "no file was small enough"

    def _expire(self, tables: list[tuple[str, str]], progress: Progress) -> str:
        snapshots = files = size = 0
        for place, (namespace, name) in enumerate(tables):
            if not progress(place, len(tables)):
                break
            gone = 0
            if namespace == READINGS:
                gone = self._drop_old(name)
            table = self.lake.table(name, namespace)
            now = datetime.fromtimestamp(self.clock() / 1_000_000, UTC)
            done = expire(table, now, _within(progress, place, len(tables)))
            snapshots += done.snapshots
            files += done.files
            size += done.bytes
            if gone:
                log.info("%d readings of %s were kept long enough", gone, name)
        progress(len(tables), len(tables))
        return f"{snapshots} former states discarded, {files} files removed ({size / 1e6:.1f} MB)"

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
        said = []
        sources = self.lake.kept_sources()
        for place, name in enumerate(sources):
            if not progress(place, len(sources)):
                break
            said += self._care_of(name, _within(progress, place, len(sources)))
        said += self._compacted([(SYSTEM, name) for name in self.lake.names(SYSTEM)], progress)
        if now - self._expired >= EXPIRE_SECONDS:
            self._expired = now
            tables = self._chosen("")
            text = self._expire(tables, progress)
            said += [] if text.startswith("0 former states discarded, 0 files") else [text]
        return "; ".join(said)

    def _care_of(self, name: str, progress: Progress) -> list[str]:
        """Do what is due of one source; a source that fails leaves the others alone."""
        said = []
        try:
            keeping = self.keeping(name)
            said += self._compacted([(READINGS, name)], progress)
            since = None if keeping.keep is None else first_kept(keeping.keep, self.clock())
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
                )
                said += [f"{name}: {rollup.words} roll-up of {days} days"] if days else []
            gone = self._drop_old(name)
            said += [f"{name}: {gone} readings were kept long enough"] if gone else []
        except FederationError as error:
            log.warning("care of source %s: %s", name, error.message)
            said.append(f"{name}: {error.message}")
        return said

    def _compacted(self, tables: list[tuple[str, str]], progress: Progress) -> list[str]:
        text = self._compact(tables, progress, LEAST_FILES)
        return [] if text.startswith("no file") else [f"{tables[0][-1]}: {text}"]

    def _drop_old(self, name: str) -> int:
        keep = self.keeping(name).keep
        if keep is None:
            return 0
        return drop_before(self.lake.table(name), first_kept(keep, self.clock()), EVENT_TIME)

    def _shown(self, table: LakeTable) -> LakeTable:
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


def _within(progress: Progress, place: int, places: int) -> Progress:
    """Return the progress of one table of several, in thousandths of a table."""

    def tell(done: int, total: int) -> bool:
        share = 1_000 * done // total if total else 0
        return progress(place * 1_000 + min(share, 1_000), places * 1_000)

    return tell
