"""Connectors that ask: each source is read at the start and then once an interval."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.reading import Reading

MIN_INTERVAL = 0.1
"""Seconds."""
MAX_INTERVAL = 86_400.0


@dataclass(frozen=True, slots=True)
class Poll:
    """One source that is asked.

    Attributes:
        interval: Seconds from the beginning of one read to that of the next one.
        read: Reads once; raises ConnectionError where the endpoint is lost.
    """

    interval: float
    read: Callable[[], Awaitable[Sequence[Reading]]]


async def poll_until_lost(
    context: ConnectorContext, polls: Iterable[Poll], lost: Coroutine[None, None, object]
) -> None:
    """Read all sources at their intervals; a read that takes longer skips its turns.

    Args:
        context: Of the connector.
        polls: What is read; may be none.
        lost: Raises ConnectionError when the endpoint is lost.

    A source is read again only when its readings are kept: a gateway that is behind reads slower.

    Raises:
        ConnectionError: `lost` or one of the reads raised it.
    """
    reason: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(lost)
            for poll in polls:
                group.create_task(_poll(context, poll))
    except* ConnectionError as errors:
        reason = errors.exceptions[0]  # raised here it would be in a group in Python 3.11.2
    if reason is not None:
        raise reason from None


async def _poll(context: ConnectorContext, poll: Poll) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        readings = await poll.read()
        if readings:
            context.emit(readings)
            await context.kept()
        now = loop.time()
        due += poll.interval * max(1, math.ceil((now - due) / poll.interval))
        await asyncio.sleep(due - now)
