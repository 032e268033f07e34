"""Alarms and displays over REST and server-sent events."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request

from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.contract.coordinator_model import AlarmInfo
from streamsql.catalog.notice_definitions import Severity
from ui.api.changes import EventStream
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
    """Return the number of rows that need attention, and the worst severity of their alarms.

    `attention` counts the rows that are raised, unknown, or cleared without acknowledgement;
    `new` those that nobody has acknowledged.
    """
    alarms = coordinator.alarms()
    attention = {info.definition.name: _attention(info) for info in alarms}
    order = list(Severity)
    severities = (i.definition.severity for i in alarms if attention[i.definition.name])
    worst = max(severities, key=order.index, default=None)
    return {
        "attention": sum(attention.values()),
        "raised": sum(info.raised for info in alarms),
        "unknown": sum(info.unknown for info in alarms),
        "new": sum(info.unacknowledged for info in alarms),
        "severity": None if worst is None else str(worst),
    }


@router.get("/alarms/events")
async def alarm_events(request: Request, coordinator: Coordinator) -> EventStream:
    """Stream the alarms: an event `alarms` with all of them after each change."""
    return _stream(NoticeEvents(coordinator, displays=False), request)


@router.get("/displays/events")
async def display_events(
    request: Request,
    coordinator: Coordinator,
    name: Annotated[
        str | None, Query(max_length=200, description="Only results of this display")
    ] = None,
) -> EventStream:
    """Stream displays: an event `display` with what one shows, whenever that has changed.

    At most as many rows of each answer as the display takes; `gone` when there is no such display
    any more.
    """
    return _stream(NoticeEvents(coordinator, alarms=False, only=name), request)


@router.get("/notices/events")
async def notice_events(request: Request, coordinator: Coordinator) -> EventStream:
    """Stream alarms and displays together, for pages that show both."""
    return _stream(NoticeEvents(coordinator), request)


@router.post("/alarms/rows/{number}/acknowledge")
async def acknowledge(number: int, coordinator: Coordinator) -> dict[str, Any]:
    """Acknowledge a row that raised an alarm, cleared or not."""
    try:
        row = coordinator.acknowledge(number)
    except KeyError:
        raise HTTPException(404, f"no alarm has a row {number}") from None
    info = next(i for i in coordinator.alarms() if i.definition.name == row.alarm)
    return alarm_row_object(info.schema, row)


@router.post("/alarms/{name}/acknowledge")
async def acknowledge_all(name: str, coordinator: Coordinator) -> dict[str, Any]:
    """Acknowledge all rows of an alarm; `acknowledged` counts the new ones."""
    try:
        return {"alarm": name, "acknowledged": coordinator.acknowledge_all(name)}
    except KeyError:
        raise HTTPException(404, f"there is no alarm {name!r:.80}") from None


@router.get("/displays")
async def displays(coordinator: Coordinator) -> list[dict[str, Any]]:
    """List the displays and their queries, oldest first."""
    return display_objects(coordinator)


@router.get("/displays/{name}")
async def display(name: str, coordinator: Coordinator) -> dict[str, Any]:
    """Return a display and its queries, each with up to as many rows as the display shows."""
    for shown in display_objects(coordinator):
        if shown["name"] == name:
            return with_rows(coordinator, shown)
    raise HTTPException(404, f"there is no display {name!r:.80}")


def _attention(info: AlarmInfo) -> int:
    cleared = sum(
        row.state == AlarmState.CLEARED and row.needs_acknowledgement for row in info.rows
    )
    return info.raised + info.unknown + cleared


def _stream(events: NoticeEvents, request: Request) -> EventStream:
    return EventStream(events.events(request.app.state.closing))
