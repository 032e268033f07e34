"""A thread of its own runs what blocks, and nobody waits for it."""

import asyncio
import threading

import pytest

from gateway.connectors.own_thread import OwnThread
from tests.gateway.connectors.serving import in_loop, until


@in_loop
async def test_calls_run_one_after_the_other_in_one_thread() -> None:
    thread = OwnThread("test of calls")
    first, second = await asyncio.gather(
        thread.run(threading.get_ident), thread.run(threading.get_ident)
    )
    assert first == second != threading.get_ident()
    thread.end(lambda: None)
    await until(lambda: all(each.name != "test of calls" for each in threading.enumerate()))


@in_loop
async def test_what_a_call_raises_is_raised_and_the_next_one_runs() -> None:
    thread = OwnThread("test of errors")
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 // 0)
    assert await thread.run(lambda: 7) == 7
    thread.end(lambda: None)


@in_loop
async def test_a_wait_that_is_cancelled_ends_at_once_and_the_last_call_runs_later() -> None:
    thread = OwnThread("test of the end")
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()

    def block() -> bool:
        begun.set()
        return free.wait(30)

    waiting = asyncio.create_task(thread.run(block))
    await until(begun.is_set)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    thread.end(ended.set)
    assert not ended.is_set()
    free.set()
    await until(ended.is_set)
