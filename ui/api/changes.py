"""A query's changes as server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from federated_optimizer.coordinator.model import ChangeBatch, CoordinatorApi, QueryInfo
from streamsql.data.schema import Schema
from ui.api.objects import change_object, event_text, query_object

HEARTBEAT_SECONDS = 10.0
HEARTBEAT = b": still here\n\n"
LARGE_BATCH = 1_000


async def change_events(
    coordinator: CoordinatorApi, query_id: str, *, snapshot: bool, closing: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    """Yield `snapshot`, `change` and `status` events until query, reader or console end.

    A heartbeat comment every ten seconds keeps proxies from closing a quiet stream and finds
    readers that are gone.
    """
    subscription = coordinator.subscribe(query_id, snapshot=snapshot)
    query = coordinator.query(query_id)
    batches = subscription.__aiter__()
    pending: asyncio.Task[ChangeBatch | None] | None = None
    closed = asyncio.create_task(closing.wait())
    try:
        while not closing.is_set():
            pending = pending or asyncio.create_task(_next(batches))
            await asyncio.wait(
                {pending, closed},
                timeout=HEARTBEAT_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not pending.done():
                yield HEARTBEAT
                continue
            batch = pending.result()
            if batch is None:
                return
            pending = None
            gone = False
            try:
                query = coordinator.query(query_id)
            except KeyError:  # stopped; what was waiting goes out all the same
                gone = True
            for event in await _events(query, batch, gone=gone):
                yield event
    finally:
        for task in filter(None, (pending, closed)):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await subscription.close()


async def _next(batches: AsyncIterator[ChangeBatch]) -> ChangeBatch | None:
    """Return the next batch, or None at the end."""
    return await anext(batches, None)


async def changes_text(
    event: str, head: dict[str, Any], schema: Schema, batch: ChangeBatch
) -> bytes:
    """Return a batch as one event; a large one is written on another thread.

    A result of some hundred thousand rows takes seconds, in which nobody else would be answered.
    """

    def text() -> bytes:
        changes = [change_object(schema, change) for change in batch.changes]
        return event_text(event, {**head, "changes": changes})

    if len(batch.changes) < LARGE_BATCH:
        return text()
    return await asyncio.to_thread(text)


async def _events(query: QueryInfo, batch: ChangeBatch, *, gone: bool) -> list[bytes]:
    events: list[bytes] = []
    if batch.changes or batch.snapshot:
        kind = "snapshot" if batch.snapshot else "change"
        events.append(await changes_text(kind, {"query": query.id}, query.schema, batch))
    if gone and batch.status is not None:
        stopped = {"query": query.id, "status": "stopped", "error": batch.error}
        events.append(event_text("status", stopped))
    elif batch.status is not None or batch.snapshot or batch.error:
        events.append(event_text("status", query_object(query)))
    return events
