"""A server that strangers cannot fill: slow, silent and wrong senders cost others nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from gateway.connectors.http_push import bounded_server
from gateway.connectors.http_push.bounded_server import Answer, BoundedServer, Head, Limits
from tests.gateway.connectors.serving import in_loop

POST = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
ODD = b"POST / HTTP/1.1\r\nHost: h\r\n"


class Echo:
    """Answers with the length of the body."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def admit(self, head: Head) -> Answer | None:
        if head.path == "/long":
            return Answer(200, {"text": "x" * 30_000_000})
        return Answer(401, {"error": "no"}) if head.path == "/secret" else None

    async def take(self, head: Head, body: bytes) -> Answer:
        return Answer(202, {"method": head.method, "length": len(body)})

    def refused(self, head: Head, reason: str) -> None:
        self.reasons.append(f"{head.path}: {reason}")


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Senders:
    """Whoever connects to the server; all of them leave at the end of a test."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.writers: list[asyncio.StreamWriter] = []

    async def opened(self, *parts: bytes) -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        for part in parts:
            writer.write(part)
            await writer.drain()
        return reader, writer

    async def answered(self, *parts: bytes) -> bytes:
        """Send parts of a request; return all that is answered until the server closes."""
        try:
            reader, writer = await self.opened(*parts)
            writer.write_eof()
            return await asyncio.wait_for(reader.read(), 20)
        except OSError:
            return b""

    async def until_answered(self, told: int) -> None:
        """Send a small request until it is answered with a status."""
        async with asyncio.timeout(20):
            found = None
            while found != told:
                await asyncio.sleep(0.01)
                found = status(await self.answered(POST % 1 + b"a"))


@contextlib.asynccontextmanager
async def listening(limits: Limits | None = None) -> AsyncIterator[Senders]:
    async with BoundedServer(Echo(), limits or Limits()).listening("127.0.0.1", 0) as port:
        senders = Senders(port)
        try:
            yield senders
        finally:
            for writer in senders.writers:
                writer.close()
            await asyncio.sleep(0)


def status(answer: bytes) -> int:
    return int(answer.split(b" ")[1]) if answer else 0


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"\x16\x03\x01\x00\xa5 not HTTP at all\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (ODD + b"Content-Length: x\r\n\r\n", 400),
        (ODD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400),
        (ODD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (ODD + b"X: " + b"y" * 100_000, 431),
        (POST % 2_000_000 + b"z" * 2_000_000, 413),
        (POST.replace(b"/a", b"/secret") % 900_000 + b"z" * 900_000, 401),
        (b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab", 202),
    ],
)
@in_loop
async def test_every_request_is_answered_or_refused(sent: bytes, told: int) -> None:
    async with listening() as senders:
        assert status(await senders.answered(sent)) == told
        assert b'"length":2' in await senders.answered(POST % 2 + b"ab")


@in_loop
async def test_requests_in_a_row_are_answered_on_one_connection() -> None:
    async with listening() as senders:
        answers = await senders.answered((POST % 1 + b"a") * 3)
    assert answers.count(b"HTTP/1.1 202") == 3


@in_loop
async def test_a_sender_that_asks_before_it_sends_is_told_to_go_on() -> None:
    head = (POST % 2).replace(b"Host: h", b"Host: h\r\nExpect: 100-continue")
    async with listening() as senders:
        reader, writer = await senders.opened(head)
        assert b"100" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"ab")
        assert b"202" in await asyncio.wait_for(reader.readline(), 20)


@in_loop
async def test_a_slow_head_and_a_slow_body_end_in_time() -> None:
    async with listening(Limits(head_seconds=0.3, body_seconds=0.3)) as senders:
        reader, _ = await senders.opened(b"POST /a HTTP/1.1\r\n", b"Host: h\r\n")
        assert await asyncio.wait_for(reader.read(), 20) == b""
        reader, _ = await senders.opened(POST % 5 + b"ab")
        assert status(await asyncio.wait_for(reader.read(), 20)) == 408


@in_loop
async def test_silent_connections_make_room_for_a_request() -> None:
    async with listening(Limits(connections=4, head_seconds=60)) as senders:
        silent = [await senders.opened(b"POST") for _ in range(10)]
        reader, _ = await senders.opened(POST % 1 + b"a")
        assert b"202" in await asyncio.wait_for(reader.readline(), 20)
        # The ones that have waited longest are gone.
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(silent[0][0].read(), 20) == b""


@in_loop
async def test_connections_that_are_at_work_are_not_given_up_for_new_ones() -> None:
    async with listening(Limits(connections=2, body_seconds=60)) as senders:
        busy = [await senders.opened(POST % 4 + b"ab") for _ in range(2)]
        await senders.until_answered(0)
        for reader, writer in busy:
            writer.write(b"cd")
            assert b"202" in await asyncio.wait_for(reader.readline(), 20)


@in_loop
async def test_bodies_together_have_a_limit() -> None:
    async with listening(Limits(bodies=1_000)) as senders:
        reader, writer = await senders.opened(POST % 2_000 + b"a" * 1_000)
        await senders.until_answered(429)
        writer.write(b"b" * 1_000)
        assert b"429" in await asyncio.wait_for(reader.readline(), 20)
        await senders.until_answered(202)


@in_loop
async def test_the_end_of_the_server_ends_its_connections() -> None:
    async with listening() as senders:
        streams = [await senders.opened(b"POST") for _ in range(3)]
    for reader, _ in streams:
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 20) == b""


@in_loop
async def test_a_sender_that_does_not_read_its_answer_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded_server, "SEND_SECONDS", 0.2)
    async with listening(Limits(connections=1)) as senders:
        reader, _writer = await senders.opened(b"GET /long HTTP/1.1\r\nHost: h\r\n\r\n")
        await senders.until_answered(202)  # the one connection is free again
        with contextlib.suppress(ConnectionError):
            assert len(await reader.read()) < 30_000_000
