"""The lake and stored tables on the broker: requests in, answers out, and care of the lake.

Questions are answered on one thread, jobs done on another, one after the other: a compaction of
an hour holds up no question.
"""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from host.clocks import wall_clock
from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from static_engine.care.care_jobs import JobBook
from static_engine.care.lake_care import LakeCare
from static_engine.care.workers import Workers
from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import LakeError
from static_engine.tables.table_looks import TableLooks
from static_engine.tables.table_sizes import TableSizes
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.errors import FederationError, InternalError
from streamsql.wire.codec import encode_packed
from streamsql.wire.messages import KeptSource, TableSet
from streamsql.wire.stored_tables.lake_messages import LakeAnswer, LakeRequest, LakeTask
from streamsql.wire.topics import Topics, check_id

log = logging.getLogger(__name__)

MAX_WAITING = 100
"""Questions that wait for the thread that answers."""
LOOK_SECONDS = 10.0
"""A look at a table that has waited longer is not done: who asked has given up."""
_MAX_KNOWN = 1_000


class LakeService:
    """Answers requests about one lake, and cares for it until `run` is cancelled.

    Args:
        client: Sends the answers.
        topics: Of the federation.
        site: Our id.
        epoch: Of this incarnation; requests to an earlier one are ignored.
        lake: The lake, or None: there is none, and every request is answered so.
        workers: Returns who does the work at the moment; raises LakeError while nobody can.
        exports: Folder of files that exports write.
        pause: Seconds between two times that care does what is due; 0: it does not by itself.
        clock: Microseconds since 1970.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        client: MessageClient,
        topics: Topics,
        site: str,
        epoch: int,
        *,
        lake: Lake | None,
        workers: Callable[[], Workers],
        exports: Path,
        pause: float = 600.0,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self._client = client
        self._topics = topics
        self._site = site
        self._epoch = epoch
        self._lake = lake
        self._workers = workers
        self._pause = pause
        self._care: LakeCare | None = None
        self._leave_out: Callable[[frozenset[str]], None] = lambda _sources: None
        if lake is not None:
            settings = lake.settings
            self._care = LakeCare(
                lake,
                workers,
                exports,
                clock,
                JobBook(clock, f"job-{epoch}"),
                default_keep=settings.keep,
                system_keep=settings.keep_system,
                default_rollup=settings.rollup,
            )
        self._looks: TableLooks | None = None
        self._questions = ThreadPoolExecutor(1, thread_name_prefix="lake-questions")
        # A database that is slow to show some rows holds up no question about the lake.
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="table-looks")
        self._jobs = ThreadPoolExecutor(1, thread_name_prefix="lake-jobs")
        self._waiting = 0
        self._answers: OrderedDict[str, LakeAnswer | None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def define(self, kept: Iterable[KeptSource]) -> None:
        """Take what sources say of their readings."""
        if self._care is not None:
            self._care.sources = {source.name: source for source in kept}
            unkept = frozenset(n for n in self._care.sources if not self._care.keeping(n).kept)
            self._leave_out(unkept)

    def use_pipeline(
        self, replay: Callable[[], int], leave_out: Callable[[frozenset[str]], None]
    ) -> None:
        """Name what a pipeline can do: take dead letters again, and leave sources out."""
        self._leave_out = leave_out
        if self._care is not None:
            self._care.replay = replay

    def use_tables(self, looks: TableLooks) -> None:
        """Answer questions about stored tables, too."""
        self._looks = looks

    async def run(self) -> None:
        """Do what is due, again and again, until cancelled."""
        try:
            while True:
                await asyncio.sleep(self._pause or 3_600.0)
                if self._pause and self._care is not None:
                    await self._pass(self._care)
        finally:
            self.stop()

    def stop(self) -> None:
        """Begin nothing more; what runs ends at its next step."""
        if self._care is not None:
            for job in self._care.jobs.all():
                self._care.jobs.cancel(job.id)
        self._questions.shutdown(wait=False, cancel_futures=True)
        self._looking.shutdown(wait=False, cancel_futures=True)
        self._jobs.shutdown(wait=False, cancel_futures=True)

    def take(self, request: LakeRequest) -> None:
        """Answer a request, at once or soon.

        Raises:
            WireError: Its id is none.
        """
        check_id(request.id)
        if request.epoch != self._epoch:
            log.warning("ignored a request about the lake: it is too old")
            return
        if request.id in self._answers:
            answer = self._answers[request.id]
            if answer is not None:
                self._publish(answer)
            return
        self._note(request.id, None)
        if self._waiting >= MAX_WAITING:
            busy = LakeError(
                f"{MAX_WAITING} questions about the lake already wait",
                hint="retry later",
                code="lake_busy",
            )
            self._answer(_refusal(request, busy))
            return
        self._waiting += 1
        task = asyncio.create_task(self._answered(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, request: LakeRequest) -> None:
        loop = asyncio.get_running_loop()
        try:
            if request.task == LakeTask.STORED and request.table:
                work = partial(self._looked, request, time.monotonic())
                answer = await loop.run_in_executor(self._looking, work)
            else:
                answer = await loop.run_in_executor(self._questions, partial(self._asked, request))
        except FederationError as error:
            answer = _refusal(request, error)
        except Exception as error:
            log.exception("a defect interrupted a request about the lake: %s", request.task)
            answer = _refusal(request, InternalError(f"{type(error).__name__}: {error}"))
        finally:
            self._waiting -= 1
        self._answer(answer)

    def _looked(self, request: LakeRequest, came: float) -> LakeAnswer:
        if time.monotonic() - came > LOOK_SECONDS:
            raise LakeError(
                "others look at tables that take long to read",
                hint="try again in a minute",
                code="lake_busy",
            )
        known, sample, figures, rows = self._looks_there().look(request.table, request.rows)
        return LakeAnswer(request.id, stored=(known,), sample=sample, figures=figures, looked=rows)

    def _looks_there(self) -> TableLooks:
        if self._looks is None:
            raise LakeError("the static engine is just starting", hint="try again")
        return self._looks

    def _asked(self, request: LakeRequest) -> LakeAnswer:
        if request.task == LakeTask.STORED:
            stored, left_out = self._looks_there().tables()
            return LakeAnswer(request.id, stored=stored, more=left_out)
        care = self._care
        if care is None:
            raise LakeError(
                "the static engine has no lake",
                hint="set lake.catalog and lake.warehouse of the static engine; `pando up` does so",
                code="no_lake",
            )
        match request.task:
            case LakeTask.STATUS:
                tables, more = care.tables()
                return LakeAnswer(
                    request.id,
                    care.lake.settings.warehouse_url,
                    self._workers_text(),
                    tables,
                    more,
                    care.jobs.all(),
                )
            case LakeTask.JOBS:
                return LakeAnswer(request.id, jobs=care.jobs.all())
            case LakeTask.SAMPLE:
                return LakeAnswer(request.id, sample=care.sample(request))
            case LakeTask.CANCEL:
                return LakeAnswer(request.id, jobs=(care.jobs.cancel(request.job),))
            case _:
                job, run = care.order(request)
                self._jobs.submit(care.run, job, run)
                return LakeAnswer(request.id, jobs=(job,))

    async def _pass(self, care: LakeCare) -> None:
        with contextlib.suppress(LakeError):  # nobody can work yet
            self._workers()
            due = partial(care.pass_due, time.monotonic())
            await asyncio.get_running_loop().run_in_executor(self._jobs, due)

    def _workers_text(self) -> str:
        try:
            return self._workers().description
        except LakeError as error:
            return error.message

    def _note(self, request: str, answer: LakeAnswer | None) -> None:
        self._answers[request] = answer
        while len(self._answers) > _MAX_KNOWN:
            self._answers.popitem(last=False)

    def _answer(self, answer: LakeAnswer) -> None:
        # Answers of orders are kept: the broker may deliver a request twice.
        self._note(answer.id, answer if answer.jobs and not answer.tables else None)
        self._publish(answer)

    def _publish(self, answer: LakeAnswer) -> None:
        topic = self._topics.response(self._site, answer.id)
        publish_or_warn(self._client, topic, encode_packed(answer), otherwise="a reply is not sent")


def _refusal(request: LakeRequest, error: FederationError) -> LakeAnswer:
    return LakeAnswer(request.id, code=error.code, message=error.message, hint=error.hint)


def define_kept(lake: LakeService | None, tables: TableSet) -> None:
    """Tell a lake, if there is one, what sources say of their readings."""
    if lake is not None:
        lake.define(tables.kept)


def show_tables(
    lake: LakeService | None, store: TableStore, watch: TableWatch, sizes: TableSizes
) -> None:
    """Let a lake's service, if there is one, answer questions about stored tables."""
    if lake is not None:
        lake.use_tables(TableLooks(store, watch, sizes.rows))
