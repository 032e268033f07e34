"""REST routes. Everything a page or the command line does goes through here.

All that ask the coordinator are coroutines, also those that wait for nothing: it belongs to the
event loop, and functions would run in other threads. So are dependencies: FastAPI hands each that
is none to a thread, which takes 0.2 ms a request.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from federated_optimizer.coordinator.contract.coordinator_api import (
    CoordinatorApi,
    UnknownQueryError,
)
from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryInfo, Wanted
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from federated_optimizer.coordinator.planning_processes import wanted_until
from streamsql.algebra.streams import Emit
from streamsql.binder import key_positions
from streamsql.catalog.catalog import kind_of
from streamsql.catalog.definitions import Definition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.completion import complete
from streamsql.errors import BindingError, Span
from streamsql.syntax import ExplainFormat
from streamsql.syntax.statements import Name
from ui.api.changes import EventStream, Reading, change_events
from ui.api.objects import (
    definition_object,
    diagnosis_object,
    query_object,
    result_object,
    row_object,
    site_object,
)
from ui.console_settings import ConsoleSettings

MAX_TEXT = 200_000

_KINDS = "^(source|table|view|function|aggregate|display|alarm|sink)$"

router = APIRouter(prefix="/api")


class Statements(BaseModel):
    """A script to run."""

    text: str = Field(max_length=MAX_TEXT, examples=["SELECT mid FROM SeatSensor"])
    name: str = Field("", max_length=64, description="Name of the query, if it has one")
    origin: str = Field("user", pattern="^(user|session)$")


class Text(BaseModel):
    """A text to check."""

    text: str = Field(max_length=MAX_TEXT)


class Place(Text):
    """A place in a text, in characters from its beginning."""

    offset: int = Field(ge=0, le=MAX_TEXT)


async def settings_of(request: Request) -> ConsoleSettings:
    """Return the console's settings."""
    settings: ConsoleSettings = request.app.state.settings
    return settings


async def principal_of(request: Request) -> Principal:
    """Return who asks; without accounts it is whoever is on this machine.

    Raises:
        HTTPException: 401: nobody has signed in, at a route that is open.
    """
    principal: Principal | None = getattr(request.state, "principal", LOCAL)
    if principal is None:
        raise HTTPException(401, "sign in first")
    return principal


async def coordinator_of(request: Request) -> CoordinatorApi:
    """Return the coordinator as whoever asks may use it; open routes are asked by nobody, too."""
    coordinator: CoordinatorApi = request.app.state.coordinator
    principal: Principal | None = getattr(request.state, "principal", LOCAL)
    return coordinator.on_behalf(NOBODY if principal is None else principal)


NOBODY = Principal("nobody", Role.VIEWER, sources=())
"""Somebody who has not signed in and may read nothing."""
Coordinator = Annotated[CoordinatorApi, Depends(coordinator_of)]
Asker = Annotated[Principal, Depends(principal_of)]
Settings = Annotated[ConsoleSettings, Depends(settings_of)]


def find_query(coordinator: CoordinatorApi, query_id: str) -> QueryInfo:
    """Return a query by id or name; who asks for it again and again is one of its readers.

    Raises:
        HTTPException: 404 when there is none.
    """
    try:
        return coordinator.keep(query_id)
    except KeyError as error:
        why = error.why if isinstance(error, UnknownQueryError) else ""
        raise HTTPException(404, why or f"there is no query {query_id!r:.80}") from None


def while_asked(request: Request) -> AbstractContextManager[None]:
    """End planning inside for a client that closes its connection; the body has been read."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return wanted_until(gone)


@router.get("/health")
async def health() -> dict[str, str]:
    """Answer while the console works."""
    return {"status": "ok"}


@router.post("/statements")
async def statements(
    body: Statements, request: Request, coordinator: Coordinator
) -> list[dict[str, Any]]:
    """Run a script; a SELECT or SUBSCRIBE starts a continuous query."""
    with while_asked(request):
        results = await coordinator.execute(body.text, name=body.name, origin=Origin(body.origin))
    return [result_object(result) for result in results]


@router.post("/validate")
async def validate(body: Text, request: Request, coordinator: Coordinator) -> dict[str, Any]:
    """Parse and bind without running anything."""
    with while_asked(request):
        validation = await coordinator.validate(body.text)
    return {
        "diagnoses": [diagnosis_object(d) for d in validation.diagnoses],
        "columns": list(validation.columns),
        "warnings": list(validation.warnings),
    }


@router.get("/queries")
async def queries(
    coordinator: Coordinator,
    origin: Annotated[
        list[Origin] | None, Query(max_length=len(Origin), description="Left out: all of them")
    ] = None,
    words: Annotated[str, Query(max_length=1_000, description="In id, name or text")] = "",
    reads: Annotated[
        str, Query(max_length=1_000, description="A relation that they read, maybe in a view")
    ] = "",
    most: Annotated[int | None, Query(ge=1, description="Of each origin, the newest")] = None,
) -> list[dict[str, Any]]:
    """List queries, newest last, origin after origin if some are named."""
    wanted = Wanted(words=words, reads=reads, most=most)
    origins: Iterable[Origin | None] = dict.fromkeys(origin) if origin else (None,)
    return [query_object(q) for each in origins for q in coordinator.queries(each, wanted)]


@router.get("/queries/{query_id}")
async def query(query_id: str, coordinator: Coordinator) -> dict[str, Any]:
    """Show one query, by id or name."""
    return query_object(find_query(coordinator, query_id))


@router.delete("/queries/{query_id}")
async def stop(query_id: str, coordinator: Coordinator) -> dict[str, Any]:
    """Stop and remove a query."""
    return query_object(await coordinator.stop(find_query(coordinator, query_id).id))


@router.get("/queries/{query_id}/rows")
async def rows(query_id: str, coordinator: Coordinator) -> dict[str, Any]:
    """Return the current relation of a query."""
    found = find_query(coordinator, query_id)
    relation = coordinator.relation(found.id)
    return {
        "query": query_object(found),
        "rows": [row_object(found.schema, row) for row in relation],
    }


@router.get("/queries/{query_id}/explain")
async def explain(
    query_id: str,
    coordinator: Coordinator,
    form: Annotated[
        ExplainFormat, Query(alias="format", description="dot: a graph, as text without data")
    ] = ExplainFormat.TEXT,
) -> dict[str, Any]:
    """Return the fragments of a running query, and the plans that were not taken."""
    return result_object(await coordinator.explained(find_query(coordinator, query_id).id, form))


@router.get("/queries/{query_id}/changes")
async def changes(  # noqa: PLR0913, PLR0917  (parameters of the request)
    query_id: str,
    request: Request,
    coordinator: Coordinator,
    snapshot: Annotated[bool | None, Query(description="Start with the whole relation")] = None,
    progress: Annotated[
        bool | None, Query(description="Report the time up to which the result is complete")
    ] = None,
    key: Annotated[
        list[str] | None,
        Query(
            max_length=64,
            description="Key columns for changes as upserts; empty: signed rows",
        ),
    ] = None,
) -> EventStream:
    """Stream a query's changes as server-sent events.

    What is not said here is as SUBSCRIBE said it; a query that was started otherwise begins with
    its rows, tells no progress, and gives signed rows.
    """
    found = find_query(coordinator, query_id)
    names = tuple(Name(name, Span(1, 1, name)) for name in key or () if name)
    reading = Reading(
        snapshot=found.snapshot if snapshot is None else snapshot,
        progress=found.progress if progress is None else progress,
        key=found.key if key is None else key_positions(names, found.schema),
    )
    if reading.key and found.emit == Emit.STREAM:
        raise BindingError(
            "rows of a stream are never replaced, so a stream has no upserts",
            hint="remove the key",
            code="misplaced_envelope",
        )
    closing = request.app.state.closing
    return EventStream(change_events(coordinator, found.id, reading, closing=closing))


@router.get("/sites")
async def sites(coordinator: Coordinator) -> list[dict[str, Any]]:
    """List gateways, base sites and the static engine."""
    return [site_object(site) for site in coordinator.sites()]


@router.get("/links")
async def links(coordinator: Coordinator) -> list[dict[str, Any]]:
    """List the links that gateways have published."""
    names = ("src", "dst", "cost", "source", "gateway")
    return [dict(zip(names, link, strict=True)) for link in coordinator.links()]


@router.post("/complete")
async def completions(body: Place, coordinator: Coordinator) -> list[dict[str, str]]:
    """Return completions at a position of a text."""
    functions, displays = [], []
    read: list[Definition] = []
    for found in coordinator.definitions():
        if isinstance(found, FunctionDefinition):
            functions.append(found.usage)
        elif isinstance(found, DisplayDefinition):
            displays.append(found.name)
        elif not isinstance(found, AlarmDefinition | SinkDefinition):
            read.append(found)
    relations = {
        shown["name"]: [column["name"] for column in shown["columns"]]
        for shown in await _described(read, coordinator)
    }
    found_here = complete(body.text, body.offset, relations, functions, displays)
    return [{"label": c.label, "kind": c.kind, "detail": c.detail} for c in found_here]


@router.get("/definitions")
async def definitions(
    coordinator: Coordinator,
    kind: Annotated[str | None, Query(pattern=_KINDS)] = None,
) -> list[dict[str, Any]]:
    """List sources, tables and views."""
    found = [d for d in coordinator.definitions() if kind is None or kind_of(d) == kind]
    return await _described(found, coordinator)


async def _described(
    definitions: list[Definition], coordinator: CoordinatorApi
) -> list[dict[str, Any]]:
    """Return definitions; the columns of a view are those of its query, where that binds."""
    views = [found.name for found in definitions if kind_of(found) == "view"]
    shapes = await coordinator.shapes(views) if views else {}
    described = [definition_object(found) for found in definitions]
    for found, shown in zip(definitions, described, strict=True):
        shape = shapes.get(found.name)
        if shape is not None:
            typed = zip(shape.columns, shape.types, strict=True)
            shown["columns"] = [{"name": n, "type": t} for n, t in typed] or shown["columns"]
    return described


@router.get("/definitions/{name}")
async def definition(name: str, coordinator: Coordinator) -> dict[str, Any]:
    """Describe a source, table or view."""
    for found in coordinator.definitions():
        if found.name.lower() == name.lower():
            (described,) = await _described([found], coordinator)
            return described
    raise HTTPException(404, f"there is no source, table or view {name!r:.80}")


@router.get("/site.geojson")
def site_map(settings: Settings) -> FileResponse:
    """Return the building as GeoJSON in metres."""
    path = Path(settings.site_file)
    if not settings.site_file or not path.is_file():
        raise HTTPException(404, "this federation has no map")
    return FileResponse(path, media_type="application/geo+json")
