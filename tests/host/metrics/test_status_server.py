"""The server of /metrics and /health: what it answers, and what it does not wait for."""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator

import httpx
import pytest

from broker.free_ports import HOST, free_port
from host.metrics import status_server
from host.metrics.families import Sample, counter
from host.metrics.status_server import MAX_CONNECTIONS, MAX_HEAD, serving_status
from streamsql.errors import DeploymentError
from tests.prometheus_text import parse

ASKED = counter("asked_total", "Requests so far.")


class Figures:
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.problem = ""

    def collect(self) -> Iterator[Sample]:
        """Yield the one figure."""
        self.asked += 1
        yield ASKED.at(self.asked)


async def get(port: int, path: str) -> httpx.Response:
    """Return the answer to a request."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://{HOST}:{port}{path}")


@pytest.mark.anyio
async def test_figures_and_health_are_answered() -> None:
    port, figures = free_port(), Figures()
    async with serving_status(HOST, port, figures.collect, lambda: figures.problem):
        answer = await get(port, "/metrics?name=x")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert parse(answer.text)["asked_total"].values == {(): 1.0}
        assert (await get(port, "/health")).json() == {"status": "ok"}
        figures.problem = "no connection to the broker"
        answer = await get(port, "/health")
        assert answer.status_code == 503
        assert json.loads(answer.text)["problem"] == "no connection to the broker"
        assert (await get(port, "/")).status_code == 404


@pytest.mark.parametrize("method", ["POST", "HEAD", "DELETE"])
@pytest.mark.anyio
async def test_only_get_is_answered(method: str) -> None:
    port = free_port()
    async with (
        serving_status(HOST, port, Figures().collect, str),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        assert (await client.request(method, f"http://{HOST}:{port}/metrics")).status_code == 405


@pytest.mark.parametrize(
    "sent", [b"", b"\0" * 10_000, b"GET /metrics HTTP/1.1\r\n" + b"a" * (2 * MAX_HEAD), b"\r\n\r\n"]
)
@pytest.mark.anyio
async def test_what_is_no_request_does_no_harm(sent: bytes) -> None:
    port, figures = free_port(), Figures()
    async with serving_status(HOST, port, figures.collect, str):
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(sent)
        writer.write_eof()
        answer = await reader.read()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 405 ")
        writer.close()
        assert (await get(port, "/metrics")).status_code == 200


@pytest.mark.anyio
async def test_a_client_that_sends_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_server, "REQUEST_SECONDS", 0.2)
    port = free_port()
    async with serving_status(HOST, port, Figures().collect, str):
        reader, writer = await asyncio.open_connection(HOST, port)
        began = time.monotonic()
        assert await reader.read() == b""
        assert time.monotonic() - began < 5
        writer.close()


@pytest.mark.anyio
async def test_too_many_connections_are_refused() -> None:
    port, figures = free_port(), Figures()
    async with serving_status(HOST, port, figures.collect, str):
        idle = [await asyncio.open_connection(HOST, port) for _ in range(MAX_CONNECTIONS)]
        answer = await get(port, "/metrics")
        assert answer.status_code == 503
        for _, writer in idle:
            writer.close()


@pytest.mark.anyio
async def test_a_port_in_use_is_named() -> None:
    port = free_port()
    async with serving_status(HOST, port, Figures().collect, str):
        with pytest.raises(DeploymentError, match=f"port {port}"):
            async with serving_status(HOST, port, Figures().collect, str):
                pass


@pytest.mark.anyio
async def test_port_0_serves_nothing() -> None:
    async with serving_status("no address", 0, Figures().collect, str):
        pass


@pytest.mark.anyio
async def test_who_sends_nothing_is_cut_off_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_server, "REQUEST_SECONDS", 3_600)
    port = free_port()
    async with serving_status(HOST, port, Figures().collect, str):
        reader, writer = await asyncio.open_connection(HOST, port)
        assert (await get(port, "/health")).status_code == 200  # so the first is accepted, too
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 30) == b""
    writer.close()
