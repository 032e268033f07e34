"""Cancellations that libraries lose."""

import asyncio


def raise_if_cancelled() -> None:
    """Raise what a library has swallowed; call it after awaiting a request of one.

    `asyncio.wait_for` of Python 3.11, by which libraries wait for answers, loses a cancellation
    that comes together with the answer.

    Raises:
        asyncio.CancelledError: The running task was asked to end.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
