"""Changes that wait: none holds up all the rest, and none is done after its time."""

import asyncio
from collections.abc import Callable

import pytest

from static_engine.changing import change_requests as requests_module
from static_engine.changing.change_requests import BEGIN_SECONDS, ChangeRequests
from streamsql.wire.codec import decode_packed
from streamsql.wire.stored_tables.table_changes import TableChange, TableChanged
from streamsql.wire.topics import Topics
from tests.settable_clock import SettableClock
from tests.static_engine.changing.changes import table

DESKS = table("desk TEXT", "source = 'csv', path = 'desks.csv'")


class Wire:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.answers: list[TableChanged] = []

    def publish(self, _topic: str, payload: bytes, *, retain: bool, qos: int) -> None:
        assert (retain, qos) == (False, 1)
        self.answers.append(decode_packed(payload, TableChanged))


def begin(clock: SettableClock) -> tuple[Wire, ChangeRequests]:
    wire = Wire()
    return wire, ChangeRequests(wire, Topics("demo"), "static", 1, clock=clock)  # type: ignore[arg-type]


async def here(work: Callable[[], None]) -> None:
    work()


def asked(number: str) -> TableChange:
    return TableChange(number, 1, DESKS)


def test_changes_that_keep_coming_let_queries_be_evaluated_in_between() -> None:
    async def story() -> None:
        wire, requests = begin(SettableClock())
        number = 0

        def change(_: TableChange) -> int:
            nonlocal number
            if number < 50:  # another console asks while this one's change is done
                number += 1
                requests.take(asked(f"c{number}"))
            return 1

        requests.take(asked("a"))
        requests.take(asked("b"))
        assert await requests.work(change, here) == ["desks", "desks"]
        assert [answer.id for answer in wire.answers] == ["a", "b"]
        assert await requests.work(change, here) == ["desks", "desks"]
        assert [answer.id for answer in wire.answers] == ["a", "b", "c1", "c2"]

    asyncio.run(story())


def test_a_change_that_has_waited_too_long_is_not_begun() -> None:
    async def story() -> None:
        clock = SettableClock()
        wire, requests = begin(clock)
        done: list[str] = []

        def change(request: TableChange) -> int:
            done.append(request.id)
            requests.take(request)  # delivered twice, while it is done
            return 1

        requests.take(asked("a"))
        clock.now = BEGIN_SECONDS - 5
        requests.take(asked("b"))
        clock.now = BEGIN_SECONDS + 5
        assert await requests.work(change, here) == ["desks"]
        assert done == ["b"]
        late, _ = wire.answers
        assert (late.id, late.code, late.rows) == ("a", "change_failed", 0)
        assert "busy for 20 s" in late.message
        assert "has not changed" in late.message
        requests.take(asked("a"))  # delivered twice: the answer stays what it was
        assert wire.answers[-1] == late
        assert await requests.work(change, here) == []

    asyncio.run(story())


def test_it_is_refused_while_the_worker_is_still_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked hears that nothing has changed, not that it is not known."""

    async def story() -> None:
        clock = SettableClock()
        wire, requests = begin(clock)
        monkeypatch.setattr(requests_module, "_LATE", 0.01 - BEGIN_SECONDS)
        requests.take(asked("a"))
        clock.now = BEGIN_SECONDS
        for _ in range(1_000):
            await asyncio.sleep(0.01)
            if wire.answers:
                break
        assert [answer.code for answer in wire.answers] == ["change_failed"]
        assert await requests.work(lambda _: 1, here) == []

    asyncio.run(story())
