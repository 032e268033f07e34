"""The receipt of a publish, resolved on the event loop."""

import asyncio


class Ticket:
    """Implements `host.mqtt.message_client.PublishTicket`; owned by one event loop."""

    __slots__ = ("_done", "_error", "_waiter", "refusal")

    def __init__(self) -> None:
        self.refusal = ""
        self._done = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def done(self) -> bool:
        """Say whether the message was acknowledged (QoS 1) or left the queue (QoS 0)."""
        return self._done

    async def wait(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the interface
        """Wait for the acknowledgement.

        Raises:
            TimeoutError: None came in time; the message stays queued.
            ClientClosed: The client was closed first.
        """
        if not self._done and self._error is None:
            if self._waiter is None:
                self._waiter = asyncio.get_running_loop().create_future()
            async with asyncio.timeout(timeout):
                # Shielded: one waiter's timeout must not cancel the others' wait.
                await asyncio.shield(self._waiter)
        if self._error is not None:
            raise self._error

    def resolve(self, error: Exception | None = None) -> None:
        """Mark as acknowledged, or as failed with `error`; later calls change nothing."""
        if self._done or self._error is not None:
            return
        self._done = error is None
        self._error = error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
