"""A web server that people use (uvicorn, Starlette's static files) over a folder of the test."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from broker.free_ports import free_port
from tests.gateway.connectors.serving import until


class Statuses:
    """Notes the status of each answer."""

    def __init__(self, app: Any, seen: list[int]) -> None:
        self._app = app
        self._seen = seen

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._seen.append(message["status"])
            await send(message)

        await self._app(scope, receive, noted)


class QuietServer(uvicorn.Server):
    """Leaves the signals of the process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@contextlib.asynccontextmanager
async def web_server(
    folder: Path, certificate: Path | None = None, key: Path | None = None
) -> AsyncIterator[tuple[str, list[int]]]:
    """Serve a folder's files with ETag; yields the address and the statuses of its answers."""
    statuses: list[int] = []
    app = Starlette(
        routes=[Mount("/", StaticFiles(directory=folder))],
        middleware=[Middleware(Statuses, seen=statuses)],
    )
    settings: dict[str, Any] = {"ssl_certfile": certificate, "ssl_keyfile": key}
    if certificate is not None:
        settings["ssl_version"] = ssl.PROTOCOL_TLS_SERVER
    port = free_port()
    config = uvicorn.Config(app, port=port, log_level="error", lifespan="off", **settings)
    server = QuietServer(config)
    task = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started)
        yield f"{'http' if certificate is None else 'https'}://127.0.0.1:{port}", statuses
    finally:
        server.should_exit = True
        await task
