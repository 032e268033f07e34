"""Keeps the subscriptions to observation lanes equal to the streams that are wanted."""

import asyncio
import contextlib
import logging

from host.mqtt import MessageClient, SubscribeRefused
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

RETRY_SECONDS = 30.0


class ObservationLanes:
    """Subscribes to the live and history lanes of all gateways, per stream."""

    def __init__(self, client: MessageClient, topics: Topics) -> None:
        self._client = client
        self._topics = topics
        self._wanted: set[str] = set()
        self._current: set[str] = set()
        self._changed = asyncio.Event()

    def want(self, streams: set[str]) -> None:
        """Listen to exactly these streams from now on."""
        if streams != self._wanted:
            self._wanted = set(streams)
            self._changed.set()

    async def run(self) -> None:
        """Follow what is wanted until cancelled. A refusal is logged and tried again."""
        while True:
            self._changed.clear()
            pause = None
            try:
                await self._reconcile()
            except SubscribeRefused as error:
                log.warning("windows over all gateways stay empty: %s", error)
                pause = RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()

    async def _reconcile(self) -> None:
        wanted = set(self._wanted)
        old = self._current - wanted
        if old:
            self._current -= old
            await self._client.unsubscribe(*self._filters(old))
        for stream in sorted(wanted - self._current):
            await self._client.subscribe(*self._filters({stream}))
            self._current.add(stream)

    def _filters(self, streams: set[str]) -> list[str]:
        topics = self._topics
        lanes = [topics.observation("+", stream) for stream in sorted(streams)]
        return lanes + [topics.history("+", stream) for stream in sorted(streams)]
