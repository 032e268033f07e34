"""Several queries' changes over one stream, from a served console."""

import asyncio
from typing import Any

import httpx
import pytest

from ui.api.many_changes import merged_events

TEXTS = ("SELECT mid, weightLevel FROM SeatSensor", "SELECT rid, status FROM RoomSensor")


def start(console: Any, text: str) -> str:
    body = {"text": text, "origin": "session"}
    answer = httpx.post(f"{console.address}/api/statements", json=body, trust_env=False, timeout=60)
    return str(answer.json()[0]["query"]["id"])


def stop(console: Any, query: str) -> None:
    httpx.delete(f"{console.address}/api/queries/{query}", trust_env=False, timeout=60)


def test_every_event_says_whose_it_is(console: Any, events: Any) -> None:
    seats, rooms = (start(console, text) for text in TEXTS)
    console.push(seats, (1, ("m1", 0.5)))
    stream = events(f"{console.address}/api/changes?query={seats}&query={rooms}")
    whole = stream.wait("snapshot", lambda event: event["query"] == seats)
    assert whole["changes"][0]["row"] == {"mid": "m1", "weightlevel": 0.5}
    assert stream.wait("snapshot", lambda event: event["query"] == rooms)["changes"] == []
    assert stream.wait("status", lambda state: state.get("id") == rooms)["status"] == "running"
    console.push(rooms, (1, ("L101", "open")))
    changed = stream.wait("change", lambda event: event["query"] == rooms)
    assert changed["changes"][0]["row"] == {"rid": "L101", "status": "open"}
    stop(console, seats)
    stop(console, rooms)
    stream.close()


def test_the_others_go_on_when_one_is_stopped_and_the_stream_ends_with_the_last(
    console: Any, events: Any
) -> None:
    seats, rooms = (start(console, text) for text in TEXTS)
    stream = events(f"{console.address}/api/changes?query={seats}&query={rooms}&query=q99")
    stream.wait("status", lambda state: state.get("query") == "q99")
    stop(console, seats)
    gone = stream.wait("status", lambda state: state.get("query") == seats)
    assert gone["status"] == "stopped"
    console.push(rooms, (1, ("L101", "open")))
    stream.wait("change", lambda event: event["query"] == rooms)
    assert not stream.ended
    stop(console, rooms)
    stream.close()
    assert stream.ended


def test_a_reader_that_goes_leaves_no_reader_behind(console: Any, wait_for: Any) -> None:
    query = start(console, TEXTS[0])
    running = console.coordinator.running[query]
    address = f"{console.address}/api/changes?query={query}"
    with httpx.stream("GET", address, trust_env=False, timeout=60) as answer:
        texts = answer.iter_text()  # kept: the connection is closed with it
        assert "event: snapshot" in next(texts)
        assert console.do(lambda: len(running.readers)) == 1
    console.push(query, (1, ("m1", 0.5)))
    wait_for(lambda: console.do(lambda: not running.readers), "the reader is gone")


def test_a_defect_ends_the_stream_instead_of_leaving_its_reader_waiting() -> None:
    class Broken:
        def query(self, name: str) -> object:
            raise ZeroDivisionError(name)

    async def read() -> None:
        broken: Any = Broken()
        async for _ in merged_events(broken, ["a", "b"], closing=asyncio.Event()):
            pass

    async def run() -> None:
        reading = asyncio.create_task(read())
        ended, _ = await asyncio.wait({reading}, timeout=30)
        assert ended
        with pytest.raises(ExceptionGroup):
            await reading

    asyncio.run(run())


def test_too_many_or_none_are_refused(client: httpx.Client) -> None:
    assert client.get("/api/changes").status_code == 422
    many = "&".join(f"query=q{n}" for n in range(33))
    assert client.get(f"/api/changes?{many}").status_code == 422
