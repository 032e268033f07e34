"""REST: the lake: what is kept, samples of it, and jobs that care for it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, Field

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from streamsql.data.types import timestamp_of, timestamp_text
from streamsql.wire.stored_tables.lake_messages import (
    MAX_ROWS,
    ExportFormat,
    LakeJob,
    LakeRequest,
    LakeSample,
    LakeTable,
    LakeTask,
)
from ui.api.lineage import readers_by_source
from ui.api.objects import Object
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api/lake")

MAX_NAME = 200


class Job(BaseModel):
    """Work on the lake."""

    task: str = Field(pattern="^(compact|expire|export|replay)$")
    table: str = Field(
        "", max_length=MAX_NAME, description="As readings.temperature; empty: all of them"
    )
    since: datetime | None = Field(None, description="Of an export: first event time")
    until: datetime | None = Field(None, description="Of an export: not included any more")
    format: str = Field("parquet", pattern="^(parquet|csv)$", description="Of an export")


@router.get("")
async def status(coordinator: Coordinator) -> Object:
    """Return the tables of the lake with their figures, the jobs, and who reads what."""
    answer = await coordinator.lake.ask(_request(LakeTask.STATUS))
    return {
        "where": answer.where,
        "workers": answer.workers,
        "tables": [table_object(table) for table in answer.tables],
        "more": answer.more,
        "jobs": [job_object(job) for job in answer.jobs],
        "readers": readers_by_source(coordinator, (table.name for table in answer.tables)),
        "pipeline": pipeline_of(coordinator),
    }


@router.get("/jobs")
async def jobs(coordinator: Coordinator) -> list[Object]:
    """List what runs and has run, the newest last."""
    answer = await coordinator.lake.ask(_request(LakeTask.JOBS))
    return [job_object(job) for job in answer.jobs]


@router.post("/jobs")
async def begin(body: Job, coordinator: Coordinator) -> Object:
    """Begin to compact, expire, export or replay; `GET /api/lake/jobs` says how far it is."""
    request = _request(
        LakeTask(body.task),
        table=body.table,
        since=_micros(body.since),
        until=_micros(body.until),
        form=ExportFormat(body.format),
    )
    answer = await coordinator.lake.ask(request)
    return job_object(_only(answer.jobs))


@router.delete("/jobs/{job}")
async def cancel(job: str, coordinator: Coordinator) -> Object:
    """Tell a job to end at its next step; what is done stays done."""
    answer = await coordinator.lake.ask(_request(LakeTask.CANCEL, job=job[:MAX_NAME]))
    return job_object(_only(answer.jobs))


@router.get("/tables/{table}/sample")
async def sample(
    table: str,
    coordinator: Coordinator,
    since: Annotated[datetime | None, Query()] = None,
    until: Annotated[datetime | None, Query()] = None,
    rows: Annotated[int, Query(ge=0, le=MAX_ROWS)] = 20,
) -> Object:
    """Return the newest rows of a table, and how its numbers went; without times the last hour."""
    request = _request(
        LakeTask.SAMPLE,
        table=table[:MAX_NAME],
        since=_micros(since),
        until=_micros(until),
        rows=rows,
    )
    answer = await coordinator.lake.ask(request)
    return sample_object(answer.sample or LakeSample())


def table_object(table: LakeTable) -> Object:
    """Return a table of the lake."""
    return {
        "table": f"{table.namespace}.{table.name}",
        "namespace": table.namespace,
        "name": table.name,
        "rows": table.rows,
        "bytes": table.bytes,
        "files": table.files,
        "small_files": table.small_files,
        "snapshots": table.snapshots,
        "first": _text(table.first),
        "last": _text(table.last),
        "committed": _text(table.committed),
        "columns": [
            {"name": column.name, "type": column.type, "words": column.words}
            for column in table.columns
        ],
        "keep": table.keep,
        "rollups": list(table.rollups),
        "problem": table.problem,
    }


def job_object(job: LakeJob) -> Object:
    """Return a job; `share` is what is done of it, from 0 to 1."""
    return {
        "id": job.id,
        "task": job.task,
        "table": job.table,
        "state": str(job.state),
        "share": 1.0 if job.state == "done" else job.done / job.total if job.total else 0.0,
        "began": _text(job.began),
        "ended": _text(job.ended),
        "message": job.message,
    }


def sample_object(sample: LakeSample) -> Object:
    """Return a sample."""
    return {
        "columns": list(sample.columns),
        "rows": [list(row) for row in sample.rows],
        "since": _text(sample.since),
        "until": _text(sample.until),
        "series": list(sample.series),
        "buckets": [list(bucket) for bucket in sample.buckets],
        "cut": sample.cut,
    }


def pipeline_of(coordinator: CoordinatorApi) -> Object | None:
    """Return what the pipeline does, as the static engine last said; None: there is none."""
    for site in coordinator.sites():
        state = None if site.state is None else site.state.pipeline
        if state is not None:
            shown: Object = msgspec.structs.asdict(state)
            return {**shown, "last": _text(state.last)}
    return None


def _request(task: LakeTask, **more: object) -> LakeRequest:
    return LakeRequest("", 0, task, **more)  # type: ignore[arg-type]


def _micros(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    return timestamp_of(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


def _text(micros: int | None) -> str | None:
    return None if micros is None else timestamp_text(micros)


def _only(jobs: Sequence[LakeJob]) -> LakeJob:
    """Return the job that an answer is about.

    Raises:
        HTTPException: 404: the answer has none.
    """
    if not jobs:
        raise HTTPException(404, "there is no such job; pando lake status lists those there are")
    return jobs[0]
