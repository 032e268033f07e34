"""A lake that a test fills by hand."""

from typing_extensions import override

from federated_optimizer.coordinator.contract.lake_model import LakeApi
from streamsql.errors import DeploymentError
from streamsql.wire.stored_tables.lake_messages import (
    ColumnFigures,
    JobState,
    LakeAnswer,
    LakeColumn,
    LakeJob,
    LakeRequest,
    LakeSample,
    LakeTable,
    LakeTask,
    TableFigures,
)

NOON = 1_793_188_800_000_000
HOUR = 3_600_000_000
MINUTE = 60_000_000


class FakeLake(LakeApi):
    """Tables and jobs as a test puts them.

    Attributes:
        asked: All requests.
        jobs: In the order in which they were begun; each look at them takes the running ones on.
        tables: Of the lake.
        sample: Of every table.
        stored: Stored tables.
        figures: Of every stored table.
        problem: Answers everything, if there is one.
    """

    def __init__(self) -> None:
        self.asked: list[LakeRequest] = []
        self.jobs: list[LakeJob] = []
        self.tables: tuple[LakeTable, ...] = ()
        self.sample = LakeSample()
        self.stored: tuple[TableFigures, ...] = ()
        self.figures: tuple[ColumnFigures, ...] = ()
        self.problem: DeploymentError | None = None

    def finish(self) -> None:
        """Let all jobs come to their end."""
        self.jobs = [_further(_further(job)) for job in self.jobs]

    @override
    async def ask(self, request: LakeRequest) -> LakeAnswer:
        self.asked.append(request)
        if self.problem is not None:
            raise self.problem
        match request.task:
            case LakeTask.STATUS:
                return LakeAnswer("", "file:///lake", "Spark 4", self.tables, jobs=tuple(self.jobs))
            case LakeTask.JOBS:
                self.jobs = [_further(job) for job in self.jobs]
                return LakeAnswer("", jobs=tuple(self.jobs))
            case LakeTask.SAMPLE:
                return LakeAnswer("", sample=self.sample)
            case LakeTask.STORED if request.table:
                return LakeAnswer(
                    "", sample=self.sample, stored=self.stored, figures=self.figures, looked=3
                )
            case LakeTask.STORED:
                return LakeAnswer("", stored=self.stored)
            case LakeTask.CANCEL:
                return LakeAnswer("", jobs=tuple(self.jobs[-1:]))
            case task:
                number = len(self.jobs) + 1
                job = LakeJob(f"job-1-{number}", str(task), request.table, JobState.WAITING)
                self.jobs.append(job)
                return LakeAnswer("", jobs=(job,))


def _further(job: LakeJob) -> LakeJob:
    if job.state == JobState.WAITING:
        return LakeJob(job.id, job.task, job.table, JobState.RUNNING, 1, 2, NOON)
    if job.state == JobState.RUNNING:
        return LakeJob(
            job.id, job.task, job.table, JobState.DONE, 2, 2, NOON, NOON + 1, "9 files became 2"
        )
    return job


def temperature() -> LakeTable:
    """A table of readings."""
    return LakeTable(
        "readings",
        "temperature",
        rows=86_400,
        bytes=1_500_000,
        files=12,
        small_files=11,
        snapshots=40,
        first=NOON - 24 * HOUR,
        last=NOON,
        committed=NOON + 2_000_000,
        columns=(
            LakeColumn("room", "string", "room TEXT"),
            LakeColumn("celsius", "double", "celsius DOUBLE, in Cel"),
            LakeColumn("_event_time", "timestamptz"),
        ),
        keep="30 days",
        rollups=("1 min", "1 h"),
    )


def hour_of_temperature() -> LakeSample:
    """Three rows and an hour of one number."""
    return LakeSample(
        ("room", "celsius", "_event_time"),
        (("r1", 21.5, "2026-10-28T12:00:00Z"), ("<b>r2</b>", None, "2026-10-28T11:59:59Z")),
        NOON - HOUR,
        NOON,
        ("_from", "_count", "celsius_min", "celsius_max", "celsius_avg"),
        tuple(
            (
                f"2026-10-28T11:{n // 2:02}:{n % 2 * 30:02}Z",
                60,
                20.0,
                22.0 + n / 120,
                21.0 + n / 240,
            )
            for n in range(120)
            if n != 60
        ),
    )


def with_leases(lake: FakeLake) -> None:
    """Give a lake a stored table of three rows."""
    lake.stored = (
        TableFigures(
            "leases",
            "csv",
            "leases.csv",
            3,
            1_500,
            NOON,
            300.0,
            (LakeColumn("tenant", "TEXT"), LakeColumn("seats", "INTEGER")),
            told=True,
        ),
    )
    lake.sample = LakeSample(("tenant", "seats"), (("<b>a</b>", 4), ("b", None), ("b", 9)))
    lake.figures = (
        ColumnFigures("tenant", 0, 2, "<b>a</b>", "b", ("b", "<b>a</b>"), (2, 1)),
        ColumnFigures("seats", 1, 2, "4", "9", ("4", "9"), (1, 1)),
    )
