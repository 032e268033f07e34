"""The changes of several queries as one stream of server-sent events.

Browsers open six connections to a console at most (over HTTP/1.1, all tabs together), so a page
that follows a dozen queries reads them over one.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from streamsql.errors import FederationError
from ui.api.changes import EventStream, Reading, change_events
from ui.api.objects import error_object, event_text
from ui.api.routes import Coordinator

MAX_QUERIES = 32
_WAITING = 8
"""Events held for the reader; a query whose events find no room waits, and what it has to tell is
put together into a snapshot when that takes too long."""

router = APIRouter(prefix="/api")

Names = Annotated[
    list[str],
    Query(
        alias="query",
        min_length=1,
        max_length=MAX_QUERIES,
        description="Ids or names of queries; repeat the parameter for several",
    ),
]


@router.get("/changes")
async def changes(request: Request, coordinator: Coordinator, names: Names) -> EventStream:
    """Stream the changes of several queries, each starting with its whole relation.

    The events are those of one query's changes, and say in `query`, or `id` of a status, whose they
    are. A query that is stopped, or that there is none of, says so and the others go on.
    """
    return EventStream(merged_events(coordinator, names, closing=request.app.state.closing))


async def merged_events(
    coordinator: CoordinatorApi, names: Sequence[str], *, closing: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield the events of all queries as they come, until all have ended."""
    events: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)

    async def forward(name: str) -> None:
        try:
            query_id = coordinator.query(name).id
            stream = change_events(coordinator, query_id, Reading(), closing=closing)
            async with contextlib.aclosing(stream):
                async for event in stream:
                    await events.put(event)
        except KeyError:
            stopped = {"query": name, "status": QueryStatus.STOPPED, "error": ""}
            await events.put(event_text("status", stopped))
        except FederationError as error:
            await events.put(event_text("refused", {"query": name, **error_object(error)}))

    async def forward_all() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for name in dict.fromkeys(names):
                    group.create_task(forward(name))
        except ExceptionGroup:
            await events.put(None)  # or the reader would wait for ever
            raise
        await events.put(None)

    reading = asyncio.create_task(forward_all())
    try:
        while (event := await events.get()) is not None:
            yield event
        await reading
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
