"""Trials on history in processes of their own, for coordinators."""

import asyncio
import contextlib
import pickle
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

from typing_extensions import override

from deploy.history.asked_sizes import AskedSizes
from deploy.history.process_messages import LENGTH, MAX_MESSAGE, decode_message
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryEnd,
    HistoryMessage,
    HistoryOrder,
    HistoryRunner,
    PastSize,
)
from streamsql.algebra.operators import Plan
from streamsql.errors import DeploymentError

_MODULE = "deploy.history.trial_process"


class EngineRunner(HistoryRunner):
    """Starts a process for each trial; closing the messages of one kills it.

    Args:
        open_past: Opens the past of some sources in that process (`trial_process.OpenPast`).
        sizes: Knows what plans read of the past; None: nobody does.
    """

    def __init__(
        self,
        open_past: Callable[[Any], object],
        sizes: AskedSizes | None = None,
    ) -> None:
        self._open_past = open_past
        self._sizes = sizes

    @override
    def sizes(self, plan: Plan) -> tuple[PastSize, ...]:
        return () if self._sizes is None else self._sizes.sizes(plan)

    @override
    def get_ready(self) -> None:
        if self._sizes is not None:
            self._sizes.get_ready()

    @override
    async def run(self, order: HistoryOrder) -> AsyncIterator[HistoryMessage]:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                _MODULE,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise DeploymentError(f"cannot start a trial on history: {error.strerror}") from error
        try:
            async with asyncio.timeout(order.seconds):
                async for message in _messages(process, pickle.dumps((order, self._open_past))):
                    yield message
        except TimeoutError:
            yield HistoryEnd(
                "statement_limit",
                f"the trial took more than {order.seconds:,.0f} s",
                "try a shorter interval, or leave SPEED out",
            )
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _messages(
    process: asyncio.subprocess.Process, order: bytes
) -> AsyncIterator[HistoryMessage]:
    """Yield the messages of a process, `HistoryEnd` last."""
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(order)
        await process.stdin.drain()
        process.stdin.close()
    try:
        while True:
            (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
            if length > MAX_MESSAGE:
                break
            message = decode_message(await process.stdout.readexactly(length))
            yield message
            if isinstance(message, HistoryEnd):
                return
    except asyncio.IncompleteReadError:
        pass
    yield HistoryEnd(
        "internal_error", "the trial's process ended unexpectedly", "read the log of the console"
    )
