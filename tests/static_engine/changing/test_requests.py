"""Changes that wait: none holds up all the rest, and none is done after its time."""

import asyncio
from collections.abc import Callable

from static_engine.changing.requests import BEGIN_SECONDS, ChangeRequests
from streamsql.wire.codec import decode_packed
from streamsql.wire.table_changes import TableChange, TableChanged
from streamsql.wire.topics import Topics
from tests.static_engine.changing.changes import table

DESKS = table("desk TEXT", "source = 'csv', path = 'desks.csv'")


class Wire:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.answers: list[TableChanged] = []

    def publish(self, _topic: str, payload: bytes) -> None:
        self.answers.append(decode_packed(payload, TableChanged))


async def here(work: Callable[[], None]) -> None:
    work()


def test_changes_that_keep_coming_let_queries_be_evaluated_in_between() -> None:
    wire, number = Wire(), 0
    requests = ChangeRequests(wire, Topics("demo"), "static", 1)  # type: ignore[arg-type]

    def change(_: TableChange) -> int:
        nonlocal number
        if number < 50:  # another console asks while this one's change is done
            number += 1
            requests.take(TableChange(f"c{number}", 1, DESKS))
        return 1

    requests.take(TableChange("a", 1, DESKS))
    requests.take(TableChange("b", 1, DESKS))
    assert asyncio.run(requests.work(change, here)) == ["desks", "desks"]
    assert [answer.id for answer in wire.answers] == ["a", "b"]
    assert asyncio.run(requests.work(change, here)) == ["desks", "desks"]
    assert [answer.id for answer in wire.answers] == ["a", "b", "c1", "c2"]


def test_a_change_that_nobody_waits_for_any_more_is_not_begun() -> None:
    wire, now, done = Wire(), 0.0, list[str]()
    requests = ChangeRequests(wire, Topics("demo"), "static", 1, lambda: now)  # type: ignore[arg-type]

    def change(asked: TableChange) -> int:
        done.append(asked.id)
        return 1

    requests.take(TableChange("a", 1, DESKS))
    now = BEGIN_SECONDS - 5
    requests.take(TableChange("b", 1, DESKS))
    now = BEGIN_SECONDS + 5
    assert asyncio.run(requests.work(change, here)) == ["desks"]
    assert done == ["b"]
    late, _ = wire.answers
    assert (late.id, late.code, late.rows) == ("a", "change_failed", 0)
    assert "busy for 20 s" in late.message
    assert "has not changed" in late.message
    requests.take(TableChange("a", 1, DESKS))  # delivered twice: the answer stays what it was
    assert wire.answers[-1] == late
    assert asyncio.run(requests.work(change, here)) == []
