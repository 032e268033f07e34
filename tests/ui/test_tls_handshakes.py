"""The console over TLS: connections that never finish their handshake take nothing from others."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from tests.certificates import make_certificate
from tests.server_sent_events import wait_for
from ui import tls_handshakes
from ui.connections import ConnectionLimits, bounded
from ui.tls_handshakes import LIMITS, over_tls


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder, "ca", "An authority")
    make_certificate(folder, "console", "127.0.0.1")
    return folder


@pytest.fixture
def port(certificates: Path) -> Iterator[int]:
    """Serve an application that says by which scheme it was asked, and with what body."""

    async def app(scope: object, receive: object, send: object) -> None:
        request = Request(scope, receive)  # type: ignore[arg-type]
        text = f"{request.url.scheme} {len(await request.body())}"
        await PlainTextResponse(text)(scope, receive, send)  # type: ignore[arg-type]

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "console.crt", certificates / "console.key")
    protocol = over_tls(bounded(ConnectionLimits(per_address=20)), context)
    config = uvicorn.Config(app, http=protocol, lifespan="off", log_level="warning", ws="none")
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    serving = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True
    )
    serving.start()
    wait_for(lambda: server.started, "the server listens")
    yield listener.getsockname()[1]
    server.should_exit = True
    serving.join(30)


def client(port: int, certificates: Path) -> httpx.Client:
    trusted = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    return httpx.Client(
        base_url=f"https://127.0.0.1:{port}", verify=trusted, trust_env=False, timeout=20
    )


def closes(connection: socket.socket) -> bool:
    """Whether the server closes a connection, within twenty seconds."""
    connection.settimeout(20)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_requests_are_answered_over_tls(port: int, certificates: Path) -> None:
    with client(port, certificates) as asking:
        for size in (0, 1, 500_000):
            assert asking.post("/", content=b"x" * size).text == f"https {size}"


def test_a_request_that_comes_with_the_handshake_is_answered(port: int, certificates: Path) -> None:
    """Client's last message and its request in one packet, which is usual on slow links."""
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
        tls.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        connection.sendall(outgoing.read())  # both at once
        said = b""
        while b"https 0" not in said:
            received = connection.recv(65_536)
            assert received, said
            incoming.write(received)
            with contextlib.suppress(ssl.SSLWantReadError):
                while more := tls.read(65_536):
                    said += more


def test_silent_connections_are_few_and_short_and_others_are_answered(
    port: int, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_handshakes, "SECONDS", 1.0)
    with contextlib.ExitStack() as opened:
        silent = [
            opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            for _ in range(LIMITS.per_address)
        ]
        # One too many from this address is closed at once, the others when they took too long.
        one_more = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        assert closes(one_more)
        assert all(closes(each) for each in silent)
        with client(port, certificates) as asking:
            assert asking.get("/").text == "https 0"


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 99]
)
def test_what_is_no_tls_is_closed(port: int, certificates: Path, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(said)
        with contextlib.suppress(ConnectionError):
            while connection.recv(1_000):
                pass
    with client(port, certificates) as asking:
        assert asking.get("/").text == "https 0"


def test_connections_that_speak_are_bounded_as_without_tls(port: int, certificates: Path) -> None:
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    with contextlib.ExitStack() as opened:
        for _ in range(20):
            plain = socket.create_connection(("127.0.0.1", port), timeout=20)
            opened.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
        with client(port, certificates) as asking:
            assert asking.get("/").status_code == 503
