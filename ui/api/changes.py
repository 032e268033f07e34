"""A query's changes as server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

from fastapi.responses import StreamingResponse

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import (
    Change,
    ChangeBatch,
    QueryInfo,
)
from federated_optimizer.coordinator.queries.answers.upserts import UpsertEnvelope
from streamsql.data.schema import Schema
from streamsql.data.types import timestamp_text
from streamsql.errors import FederationError
from ui.api.objects import (
    change_object,
    error_object,
    event_text,
    query_object,
    upsert_object,
)

HEARTBEAT_SECONDS = 10.0
HEARTBEAT = b": still here\n\n"
LARGE_BATCH = 1_000
DOUBT_SECONDS = 0.5
"""How often it is looked whether an answer with two rows of a key has settled."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Options of a reader of changes; see `streamsql.syntax.statements.Subscribe`.

    Attributes:
        key: Positions of the columns by which they come as upserts; empty for signed rows.
    """

    snapshot: bool = True
    progress: bool = False
    key: tuple[int, ...] = ()


class EventStream(StreamingResponse):
    """Server-sent events, which nothing on their way may hold back."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def change_events(
    coordinator: CoordinatorApi, query_id: str, reading: Reading, *, closing: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    """Yield `snapshot`, `change`, `progress` and `status` events until query or reader end.

    A heartbeat comment every ten seconds keeps proxies from closing a quiet stream and finds
    readers that are gone. `refused` is the last event where the key is not unique.
    """
    subscription = coordinator.subscribe(
        query_id, snapshot=reading.snapshot, progress=reading.progress
    )
    try:
        query = coordinator.query(query_id)
        envelope = UpsertEnvelope(query.schema, reading.key) if reading.key else None
        if envelope is not None and not reading.snapshot:
            # Later changes are told by key only if it is known what there was.
            rows = coordinator.relation(query_id)
            envelope.take([Change(0, 1, row) for row in rows], snapshot=True)
    except BaseException:
        await subscription.close()
        raise
    batches = subscription.__aiter__()
    pending: asyncio.Task[ChangeBatch | None] | None = None
    closed = asyncio.create_task(closing.wait())
    try:
        while not closing.is_set():
            pending = pending or asyncio.create_task(_next(batches))
            doubtful = envelope is not None and envelope.is_doubtful
            await asyncio.wait(
                {pending, closed},
                timeout=DOUBT_SECONDS if doubtful else HEARTBEAT_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not pending.done():
                if envelope is not None and doubtful and query_settled(coordinator, query_id):
                    envelope.check()
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
            for event in await _events(query, batch, envelope, gone=gone):
                yield event
    except FederationError as error:
        yield event_text("refused", {"query": query.id, **error_object(error)})
    finally:
        for task in filter(None, (pending, closed)):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await subscription.close()


def query_settled(coordinator: CoordinatorApi, query_id: str) -> bool:
    """Whether a query is still there, and settled."""
    try:
        return coordinator.query(query_id).settled
    except KeyError:
        return False


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


async def _events(
    query: QueryInfo, batch: ChangeBatch, envelope: UpsertEnvelope | None, *, gone: bool
) -> list[bytes]:
    events: list[bytes] = []
    kind = "snapshot" if batch.snapshot else "change"
    if envelope is not None and (batch.changes or batch.snapshot):
        upserts = envelope.take(batch.changes, snapshot=batch.snapshot)
        if upserts or batch.snapshot:
            shown = [upsert_object(query.schema, envelope.key, upsert) for upsert in upserts]
            events.append(event_text(kind, {"query": query.id, "upserts": shown}))
    elif batch.changes or batch.snapshot:
        events.append(await changes_text(kind, {"query": query.id}, query.schema, batch))
    if batch.progress is not None:
        up_to = {"query": query.id, "up_to": timestamp_text(batch.progress)}
        events.append(event_text("progress", up_to))
    if gone and batch.status is not None:
        stopped = {"query": query.id, "status": "stopped", "error": batch.error}
        events.append(event_text("status", stopped))
    elif batch.status is not None or batch.snapshot or batch.error:
        events.append(event_text("status", query_object(query)))
    return events
