"""Alarms and displays over REST and server-sent events."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import StreamingResponse

from federated_optimizer.alarm_book import AlarmState
from streamsql.catalog.notices import Severity
from ui.api.notice_events import NoticeEvents, display_objects, with_rows
from ui.api.objects import alarm_object, alarm_row_object
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api")


@router.get("/alarms")
async def alarms(coordinator: Coordinator) -> list[dict[str, Any]]:
    """List the alarms with the rows that raised them, the newest of each first."""
    return [alarm_object(info) for info in coordinator.alarms()]


@router.get("/alarms/count")
async def alarm_count(coordinator: Coordinator) -> dict[str, Any]:
    """Count what is raised: rows, those nobody has acknowledged, and the worst severity."""
    raised = [info for info in coordinator.alarms() if info.raised]
    order = list(Severity)
    worst = max((info.definition.severity for info in raised), key=order.index, default=None)
    return {
        "raised": sum(info.raised for info in raised),
        "new": sum(row.state == AlarmState.RAISED for info in raised for row in info.rows),
        "severity": None if worst is None else str(worst),
    }


@router.get("/alarms/events")
async def alarm_events(request: Request, coordinator: Coordinator) -> StreamingResponse:
    """Stream the alarms: an event `alarms` with all of them, whenever one has changed."""
    return _stream(NoticeEvents(coordinator, displays=False), request)


@router.get("/displays/events")
async def display_events(
    request: Request,
    coordinator: Coordinator,
    name: Annotated[str | None, Query(max_length=200, description="Of one display")] = None,
) -> StreamingResponse:
    """Stream displays: an event `display` with what one shows, whenever that has changed.

    At most as many rows of each answer as the display takes; `gone` when there is no such display
    any more.
    """
    return _stream(NoticeEvents(coordinator, alarms=False, only=name), request)


@router.get("/notices/events")
async def notice_events(request: Request, coordinator: Coordinator) -> StreamingResponse:
    """Stream alarms and displays together, for pages that show both."""
    return _stream(NoticeEvents(coordinator), request)


@router.post("/alarms/rows/{number}/acknowledge")
async def acknowledge(number: int, coordinator: Coordinator) -> dict[str, Any]:
    """Take note that somebody has seen a raised row."""
    try:
        row = coordinator.acknowledge(number)
    except KeyError:
        raise HTTPException(404, f"no row {number} of an alarm is raised") from None
    info = next(i for i in coordinator.alarms() if i.definition.name == row.alarm)
    return alarm_row_object(info.schema, row)


@router.get("/displays")
async def displays(coordinator: Coordinator) -> list[dict[str, Any]]:
    """List the displays with the queries whose answers they show, oldest first."""
    return display_objects(coordinator)


@router.get("/displays/{name}")
async def display(name: str, coordinator: Coordinator) -> dict[str, Any]:
    """Show a display and its queries, with as many rows of each answer as it takes."""
    for shown in display_objects(coordinator):
        if shown["name"] == name:
            return with_rows(coordinator, shown)
    raise HTTPException(404, f"there is no display {name!r:.80}")


def _stream(events: NoticeEvents, request: Request) -> StreamingResponse:
    return StreamingResponse(
        events.events(request.app.state.closing),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
