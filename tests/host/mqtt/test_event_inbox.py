"""Crossing from a thread to the event loop: order, bursts, and holding the thread when full."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

from host.mqtt.event_inbox import Acknowledged, Event, Inbox
from host.mqtt.message_client import Message


def _put_all(inbox: Inbox, events: Sequence[Event]) -> None:
    for event in events:
        inbox.put(event)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the thread has no event of this loop to set
            await asyncio.sleep(0.01)


def test_order_and_bursts() -> None:
    async def scenario() -> None:
        bursts: list[list[Event]] = []
        inbox = Inbox(asyncio.get_running_loop(), bursts.append, burst=100)
        events: list[Event] = [
            Acknowledged(n) if n % 7 == 0 else Message("t", b"%d" % n) for n in range(5_000)
        ]
        thread = threading.Thread(target=_put_all, args=(inbox, events))
        thread.start()
        await _until(lambda: sum(map(len, bursts)) == len(events))
        thread.join(60)
        assert [event for burst in bursts for event in burst] == events
        assert max(map(len, bursts)) <= 100

    asyncio.run(scenario())


def test_a_slow_loop_holds_the_thread() -> None:
    async def scenario() -> None:
        taken: list[Event] = []
        inbox = Inbox(asyncio.get_running_loop(), taken.extend, max_events=10, max_bytes=100)
        added: list[int] = []

        def fill() -> None:
            for number in range(50):
                inbox.put(Message("t", b"x" * 30))
                added.append(number)

        thread = threading.Thread(target=fill)
        thread.start()
        time.sleep(0.3)  # noqa: ASYNC251  # time passes: a slow loop
        assert 1 <= len(added) <= 4, "three messages of 30 bytes fit into 100"
        await _until(lambda: len(taken) == 50)
        thread.join(60)

    asyncio.run(scenario())


def test_closing_lets_a_held_thread_go() -> None:
    async def scenario() -> None:
        inbox = Inbox(asyncio.get_running_loop(), lambda _: None, max_events=1)
        thread = threading.Thread(target=_put_all, args=(inbox, [Message("t", b"x")] * 100))
        thread.start()
        time.sleep(0.1)  # noqa: ASYNC251  # time passes: a slow loop
        inbox.close()
        thread.join(60)
        assert not thread.is_alive()

    asyncio.run(scenario())


def test_a_loop_that_ended_is_survived() -> None:
    loop = asyncio.new_event_loop()
    inbox = Inbox(loop, lambda _: None)
    loop.close()
    inbox.put(Message("t", b"x"))
