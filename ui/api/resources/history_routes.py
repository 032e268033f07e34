"""REST: trials of queries on the past, which RUN … ON HISTORY has begun."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query

from federated_optimizer.coordinator.contract.history_model import HistoryTrialInfo, PastChange
from streamsql.data.schema import Schema
from streamsql.data.types import timestamp_text
from streamsql.redaction import redacted
from ui.api.objects import Object, row_object, schema_object
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api/history")

MAX_SENT = 1_000
"""Changes of an answer."""


@router.get("/trials")
async def trials(coordinator: Coordinator) -> list[Object]:
    """List the trials, the newest first."""
    return [trial_object(info) for info in coordinator.past.all()]


@router.get("/trials/{trial}")
async def look(
    trial: str, coordinator: Coordinator, since: Annotated[int, Query(ge=0)] = 0
) -> Object:
    """Return a trial, with up to 1,000 changes behind the first `since` ones.

    `next` is the `since` to ask with next. There are more as long as it is less than `events` less
    `dropped`.
    """
    past = coordinator.past
    try:
        info, changes = past.info(trial), past.changes(trial, since, MAX_SENT)
    except KeyError:
        raise _unknown(trial) from None
    return {
        **trial_object(info),
        "changes": [past_object(info.columns, change) for change in changes],
        "next": since + len(changes),
    }


@router.delete("/trials/{trial}")
async def stop(trial: str, coordinator: Coordinator) -> Object:
    """End a trial; what it has given stays for a while."""
    try:
        return trial_object(await coordinator.past.stop(trial))
    except KeyError:
        raise _unknown(trial) from None


def trial_object(info: HistoryTrialInfo) -> Object:
    """Return a trial without its changes."""
    return {
        "id": info.id,
        "maker": info.maker,
        "text": redacted(info.text),
        "alarm": info.alarm,
        "columns": schema_object(info.columns),
        "since": timestamp_text(info.since),
        "until": timestamp_text(info.until),
        "at": None if info.at is None else timestamp_text(info.at),
        "share": round(info.share, 4),
        "readings": info.readings,
        "seconds": round(info.seconds, 3),
        "events": info.events,
        "dropped": info.dropped,
        "notes": list(map(redacted, info.notes)),
        "code": info.code,
        "problem": redacted(info.problem),
        "hint": redacted(info.hint),
        "done": info.done,
    }


def past_object(columns: Schema, change: PastChange) -> Object:
    """Return a change: a signed row, or with `alarm` a row and what became of the alarm."""
    return {
        "ts": timestamp_text(change.at),
        "diff": change.weight,
        "row": row_object(columns, change.row),
        "alarm": None if change.alarm is None else str(change.alarm),
    }


def _unknown(trial: str) -> HTTPException:
    return HTTPException(404, f"there is no trial {trial!r:.80}; trials are kept for a while only")
