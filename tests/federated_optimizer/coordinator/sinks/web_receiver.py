"""A receiver of webhooks on loopback that fails by chance, as a test says."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SECRET = "whsec_" + base64.b64encode(b"a secret of many bytes").decode()
KEY = b"a secret of many bytes"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver does with a request.

    Attributes:
        status: Of the answer; 0: the connection ends without one.
        takes: Whether the messages count as received.
        wait: Seconds before it answers.
        missing: Bytes of the body that it announces and never sends.
    """

    status: int = 200
    takes: bool = True
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    wait: float = 0.0
    missing: int = 0


@dataclass
class WebReceiver:
    """Serves HTTP on a free port; also an asynchronous context manager.

    Attributes:
        decide: Called with the messages of each request.
        requests: Bodies, in the order of arrival.
        ids: `webhook-id` of each request.
        lengths: Bytes of each request's body.
        taken: Messages that it has taken, in order.
        connections: How many were made.
        gate: Answers wait until it is set.
    """

    decide: Callable[[list[dict[str, Any]]], Answer] = lambda _messages: Answer()
    requests: list[dict[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/pando"

    @property
    def rows(self) -> dict[str, Any]:
        """The newest row of each key, of upserts."""
        found: dict[str, Any] = {}
        for message in self.taken:
            key = json.dumps(message["key"])
            if message["row"] is None:
                found.pop(key, None)
            else:
                found[key] = message["row"]
        return found

    async def __aenter__(self) -> "WebReceiver":
        self.gate.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Listen no more."""
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head, reader, writer)
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first, *lines = head.decode().split("\r\n")
        assert first == "POST /pando HTTP/1.1"
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        name, stamp = headers["webhook-id"], headers["webhook-timestamp"]
        signed = hmac.new(KEY, f"{name}.{stamp}.".encode() + body, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(signed).decode()
        said = json.loads(body)
        self.requests.append(said)
        self.ids.append(name)
        self.lengths.append(len(body))
        answer = self.decide(said["messages"])
        if answer.takes:
            self.taken += said["messages"]
        await asyncio.sleep(answer.wait)  # time passes: a slow receiver
        await self.gate.wait()
        if not answer.status:
            writer.transport.abort()
            return
        extra = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
        writer.write(
            f"HTTP/1.1 {answer.status} said\r\n"
            f"content-length: {len(answer.body) + answer.missing}\r\n"
            f"{extra}\r\n{answer.body}".encode()
        )
        await writer.drain()
