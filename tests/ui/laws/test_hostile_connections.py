"""The real console process against clients that send too much, too slowly, too often."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from broker import free_ports as ports
from ui.connections import MAX_DRAINED, MAX_HEAD

REQUEST_SECONDS = 3.0
STREAMS = 500
MOST = 520
SECONDS = 60.0


class Server:
    """A console process, and raw connections to it."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.port = ports.free_port()
        self.config = folder / "console.json"
        given = {"broker": "mqtt://127.0.0.1:9", "port": self.port, "data_dir": str(folder / "d")}
        self.config.write_text(json.dumps({**given, **settings}))
        command = [sys.executable, "-m", "ui", "--config", str(self.config)]
        self._log = (folder / "log").open("wb")
        self.process = subprocess.Popen(command, stderr=self._log)
        until(self.answers, "the console answers")

    def answers(self) -> bool:
        """Whether it serves somebody who behaves."""
        assert self.process.poll() is None
        with contextlib.suppress(httpx.HTTPError):
            address = f"http://127.0.0.1:{self.port}/api/health"
            return httpx.get(address, trust_env=False, timeout=10).is_success
        return False

    def connect(self) -> socket.socket:
        """Open a connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def descriptors(self) -> int:
        """How many files and sockets the process has open."""
        return psutil.Process(self.process.pid).num_fds()

    def peers(self) -> set[int]:
        """Ports of the clients whose connections it has open."""
        found = psutil.Process(self.process.pid).net_connections("tcp")
        return {each.raddr.port for each in found if each.status == psutil.CONN_ESTABLISHED}

    def log(self) -> str:
        """What it has said until now."""
        return Path(self._log.name).read_text(encoding="utf-8")

    def close(self) -> str:
        """End it; return its log."""
        self.process.terminate()
        self.process.wait(SECONDS)
        self._log.close()
        return self.log()


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.05)


def all_of(connection: socket.socket) -> bytes:
    """Read until the server closes."""
    read = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            read += part
    return read


def head_of(connection: socket.socket) -> bytes:
    """Read until the headers of an answer have come."""
    read = b""
    while b"\r\n\r\n" not in read:
        part = connection.recv(4096)
        if not part:
            break
        read += part
    return read


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(
        tmp_path_factory.mktemp("console"),
        max_connections=MOST,
        max_connections_per_address=MOST,
        request_seconds=REQUEST_SECONDS,
    )
    yield running
    log = running.close()
    assert "Traceback" not in log, log[-3000:]


def post(path: str, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*lines, *headers, "", ""]).encode()


def sent_until_refused(connection: socket.socket, head: bytes, part: bytes, most: int) -> int:
    """Send parts until the server closes or enough were sent; return the bytes it could take."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        connection.sendall(head)
        while sent < most:
            connection.sendall(part)
            sent += len(part)
    return sent


@pytest.mark.parametrize("path", ["/api/validate", "/api/fleet/join", "/api/sign-in"])
def test_who_hangs_up_within_a_body_leaves_no_traceback(server: Server, path: str) -> None:
    with server.connect() as connection:
        port = connection.getsockname()[1]
        until(lambda: port in server.peers(), "the connection is open")
        connection.sendall(post(path, "Content-Length: 100") + b"{")
        assert server.answers()  # it has read by then what came before
    until(lambda: port not in server.peers(), "it knows that nobody is there any more")
    assert server.answers()
    assert "Traceback" not in server.log()


@pytest.mark.parametrize("path", ["/api/validate", "/api/statements", "/api/health", "/nowhere"])
@pytest.mark.parametrize("coding", ["chunked", "Chunked", "CHUNKED", "gzip, Chunked"])
def test_a_body_of_unknown_length_is_bounded_whatever_its_header_is_called(
    server: Server, path: str, coding: str
) -> None:
    part = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with server.connect() as connection:
        head = post(path, f"Transfer-Encoding: {coding}")
        sent = sent_until_refused(connection, head, part, 40 * MAX_DRAINED)
    # What the two kernels hold between us is sent without anybody having taken it.
    assert sent < 4 * MAX_DRAINED
    assert server.answers()


def test_a_get_request_with_a_body_without_end_is_bounded(server: Server) -> None:
    head = b"GET /api/queries HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with server.connect() as connection:
        part = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        assert sent_until_refused(connection, head, part, 40 * MAX_DRAINED) < 4 * MAX_DRAINED


def test_trailers_are_bounded(server: Server) -> None:
    with server.connect() as connection:
        head = post("/api/validate", "Transfer-Encoding: chunked") + b"0\r\n"
        part = b"x: " + b"y" * 65536 + b"\r\n"
        assert sent_until_refused(connection, head, part, 40 * MAX_DRAINED) < 4 * MAX_DRAINED


def test_headers_are_bounded_in_size(server: Server) -> None:
    for part in (b"x: " + b"y" * 1000 + b"\r\n", b"y" * 1000, b"\r\n" * 500):
        with server.connect() as connection:
            head = b"" if part.startswith(b"\r") else b"GET / HTTP/1.1\r\nHost: localhost\r\nx: "
            sent = sent_until_refused(connection, head, part, 1000 * MAX_HEAD)
        assert sent < 400 * MAX_HEAD, part[:3]


UNFINISHED = [
    b"",
    b"GET /api/health HT",
    b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n",
    post("/api/validate", "Content-Length: 100") + b'{"te',
    post("/api/validate", "Transfer-Encoding: chunked") + b"5\r\n",
    b"GET /api/map/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n",
]


def test_requests_that_are_never_finished_end(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in UNFINISHED]
        for connection, begun in zip(connections, UNFINISHED, strict=True):
            connection.sendall(begun)
        for connection in connections:
            all_of(connection)  # returns when the server has closed


def test_a_request_that_dribbles_ends(server: Server) -> None:
    begun = time.monotonic()
    with server.connect() as connection, contextlib.suppress(ConnectionError):
        connection.settimeout(0.2)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nx: ")
        while time.monotonic() - begun < SECONDS:
            connection.sendall(b"y")
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1000):
                    break
    assert time.monotonic() - begun < SECONDS


def test_a_second_request_on_a_connection_has_a_deadline_too(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in head_of(connection)
        connection.sendall(b"\r\n")
        connection.sendall(b"GET /api/he")
        all_of(connection)


def test_a_stream_is_no_request_that_takes_too_long(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /api/map/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        begun = time.monotonic()
        while time.monotonic() - begun < 2 * REQUEST_SECONDS:
            connection.settimeout(3 * REQUEST_SECONDS + 10)
            assert connection.recv(65536)  # at least the heartbeats


@pytest.mark.parametrize("aborted", [False, True])
@pytest.mark.timeout(300)
def test_event_streams_leave_no_descriptors(server: Server, aborted: bool) -> None:
    until(lambda: server.answers() and server.descriptors() < 60, "earlier connections are gone")
    before = server.descriptors()
    request = b"GET /api/alarms/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as stack:
        streams = []
        for _ in range(STREAMS):
            streams.append(stack.enter_context(server.connect()))
            streams[-1].sendall(request)
        for stream in streams:
            assert b"200 OK" in head_of(stream)
        assert server.descriptors() > STREAMS
        if aborted:
            for stream in streams:  # closed with a reset instead of an end
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    until(lambda: server.descriptors() <= before + 2, "the descriptors are given back")
    assert server.answers()


@pytest.mark.timeout(300)
def test_connections_too_many_are_refused_in_words_and_free_again_later(server: Server) -> None:
    until(lambda: server.answers() and server.descriptors() < 60, "earlier connections are gone")
    with contextlib.ExitStack() as stack:
        for _ in range(MOST):
            stream = stack.enter_context(server.connect())
            stream.sendall(b"GET /api/alarms/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in head_of(stream)
        with server.connect() as late:
            late.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = all_of(late)
        assert b"503 Service Unavailable" in answer
        assert b"connections are open" in answer
    until(server.answers, "there is room again")


def test_one_address_does_not_take_all_connections(tmp_path: Path) -> None:
    server = Server(tmp_path, max_connections=20, max_connections_per_address=5)
    try:
        with contextlib.ExitStack() as stack:
            until(server.answers, "it answers")
            others = [stack.enter_context(server.connect()) for _ in range(5)]
            with server.connect() as late:
                late.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert b"from 127.0.0.1" in all_of(late)
            elsewhere = stack.enter_context(socket.socket())
            elsewhere.bind(("127.0.0.2", 0))
            elsewhere.connect(("127.0.0.1", server.port))
            elsewhere.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in head_of(elsewhere)
            assert len(others) == 5
    finally:
        server.close()
