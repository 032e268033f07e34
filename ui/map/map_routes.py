"""Routes of the map: its page, its script, its events, directions, simulation."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse, HTMLResponse
from pydantic import AwareDatetime, BaseModel, Field

from federated_optimizer.coordinator.contract.principal import Role
from streamsql.data.types import Value, timestamp_of
from streamsql.wire.past_packs import HOUR, MAX_HOURS
from ui.api.changes import EventStream
from ui.api.objects import query_object
from ui.api.routes import Asker, Coordinator
from ui.map.calibration import (
    HEARD,
    POINTS,
    Spot,
    calibration_script,
    point_id,
    removal_script,
)
from ui.map.calibration_tables import create_script, missing_tables
from ui.map.declared_links import DeclaredLinks
from ui.map.directions import Wish, path_query, route_query
from ui.map.map_events import MapEvents
from ui.map.map_service import MapService
from ui.map.placed_sources import ReadablePlaces
from ui.map.simulation import order
from ui.pages.page_routes import templates

router = APIRouter()
MAX_MESSAGE = 500

Named = Annotated[str, Field(min_length=1, max_length=100)]
Start = Annotated[str, Field(alias="from", min_length=1, max_length=100)]


class Walk(BaseModel):
    """Start of a route, and the software its end must have."""

    start: Start
    software: Named
    wheelchair: bool = Field(False, description="Avoid stairs")


class RadioPath(BaseModel):
    """Two nodes."""

    start: Start
    to: Named


class Simulation(BaseModel):
    """Something to happen in the simulated building."""

    action: str = Field(max_length=40, examples=["sit"])
    target: str = Field(max_length=100, examples=["lab101-03"])
    celsius: float = 10.0


class Past(BaseModel):
    """Hours of the past that a gateway's simulated devices are to publish."""

    gateway: Named
    since: AwareDatetime = Field(description="Begin of the first hour")
    hours: int = Field(ge=1, le=MAX_HOURS)
    every_seconds: int = Field(600, ge=60, le=3600, description="Between a sensor's readings")


class Calibration(BaseModel):
    """What receivers have heard of a badge at a place."""

    room: Named
    floor: int = Field(ge=-1000, le=1000)
    x: float = Field(description="Metres of the plan")
    y: float
    levels: dict[Named, float] = Field(
        description="Mean RSSI in dBm by receiver", max_length=1000, examples=[{"r1": -61.5}]
    )


def service_of(request: Request) -> MapService:
    """Return the map's state."""
    service: MapService = request.app.state.map
    return service


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
async def map_page(request: Request) -> HTMLResponse:
    """The live map."""
    service = service_of(request)
    context = {"page": "map", "kind": service.kind, "site": service.site}
    return templates.TemplateResponse(request, "map.html", context)


@router.get("/map/plan.js", include_in_schema=False)
async def plan(request: Request) -> FileResponse:
    """The floor plan as a script."""
    path = await service_of(request).plan()
    headers = {"Cache-Control": "no-cache"}
    return FileResponse(path, media_type="text/javascript", headers=headers)


@router.get("/api/map/events")
async def events(
    request: Request,
    coordinator: Coordinator,
    asker: Asker,
    positions: Annotated[
        str, Query(max_length=200, description="Key of a view or query with positions to follow")
    ] = "",
) -> EventStream:
    """Stream all layers of the map, and how fresh they are, as server-sent events."""
    service = service_of(request)
    building = service.kind == "building"
    placed = ReadablePlaces(service.placed, coordinator) if building else None
    sees_all = asker.role.may_act_as(Role.OPERATOR) and asker.sources is None
    # Drawn once for all who see every link.
    shown = service.links if sees_all else DeclaredLinks(coordinator)
    links = shown if building else None
    stream = MapEvents(coordinator, service.layers, placed, positions, links)
    return EventStream(stream.events(request.app.state.closing))


@router.post("/api/route")
async def route(body: Walk, request: Request, coordinator: Coordinator) -> dict[str, Any]:
    """Start (or reuse) the query for the walk to the nearest free machine with a package."""
    service = service_of(request)
    text = route_query(Wish(body.start, body.software, body.wheelchair), service.site)
    return query_object(await service.sessions.start(text, coordinator))


@router.post("/api/path")
async def path(body: RadioPath, request: Request, coordinator: Coordinator) -> dict[str, Any]:
    """Start (or reuse) the query for the cheapest radio path between two nodes."""
    service = service_of(request)
    text = path_query(Wish(body.start, body.to), service.site)
    return query_object(await service.sessions.start(text, coordinator))


@router.post("/api/calibration/heard")
async def heard(request: Request, coordinator: Coordinator) -> dict[str, Any]:
    """Start (or reuse) the query for what receivers hear of each badge, as means of 10 s."""
    return query_object(await service_of(request).sessions.start(HEARD, coordinator))


@router.post("/api/calibration")
async def calibrate(body: Calibration, coordinator: Coordinator) -> dict[str, Any]:
    """Keep a point of the radio map: rows of the tables radio_map and calibration_point."""
    point = point_id()
    spot = Spot(body.room, body.floor, body.x, body.y)
    await coordinator.execute(calibration_script(point, spot, body.levels))
    return {"point": point, "receivers": len(body.levels)}


@router.post("/api/calibration/points")
async def points(request: Request, coordinator: Coordinator) -> dict[str, Any]:
    """Start (or reuse) the query for the points of the radio map."""
    return query_object(await service_of(request).sessions.start(POINTS, coordinator))


@router.delete("/api/calibration/points/{point}")
async def remove_point(
    point: Annotated[str, PathParameter(min_length=1, max_length=100)], coordinator: Coordinator
) -> dict[str, Any]:
    """Remove a point of the radio map, with its levels."""
    results = await coordinator.execute(removal_script(point))
    return {"point": point, "message": "; ".join(result.text for result in results)}


@router.get("/api/calibration/tables")
async def calibration_tables(coordinator: Coordinator) -> dict[str, Any]:
    """Say which tables of positions are missing."""
    return {"missing": missing_tables([d.name for d in coordinator.definitions()])}


@router.post("/api/calibration/tables")
async def create_calibration_tables(coordinator: Coordinator) -> dict[str, Any]:
    """Create the tables of positions that are missing."""
    missing = missing_tables([d.name for d in coordinator.definitions()])
    if missing:
        await coordinator.execute(create_script(missing))
    return {"created": missing}


@router.post("/api/simulate")
async def simulate(body: Simulation, request: Request, coordinator: Coordinator) -> dict[str, str]:
    """Control the simulated people and rooms; the effect appears in the streams."""
    command = order(service_of(request).site, body.action, body.target, body.celsius)
    coordinator.command(command.gateway, "simulate", command.arguments)
    return {"message": command.message}


@router.post("/api/simulate/past")
async def simulate_past(body: Past, coordinator: Coordinator) -> dict[str, Any]:
    """Publish what the simulated devices of a gateway would have read; `done` says if they do."""
    arguments: dict[str, Value] = {
        "action": "past",
        "first": timestamp_of(body.since) // HOUR,
        "hours": body.hours,
        "every": body.every_seconds * 1_000_000,
    }
    answer = await coordinator.answer_of(body.gateway, "simulate", arguments)
    readings = answer.get("readings")
    return {
        "done": answer.get("done") is True,
        "message": str(answer.get("message", ""))[:MAX_MESSAGE],
        "readings": readings if isinstance(readings, int) else 0,
    }
