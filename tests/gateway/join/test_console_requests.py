"""Whom a gateway trusts before it sends the secret of its token, and what it believes."""

import datetime as dt
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.join.console_requests import (
    ConsoleAddress,
    console_address,
    fetch_authority,
    send_request,
)
from gateway.join.joined_files import check_folder, write_joined
from gateway.join.joining import join
from host.certificates.authority import Authority, make_authority
from host.certificates.certificate_files import certificate_paths, write_issued
from streamsql.errors import DeploymentError
from streamsql.wire.enrolment import EnrolmentToken, JoinAnswer, JoinRequest

NOW = dt.datetime.now(dt.UTC)
SECRET = "s" * 43
ANSWER = JoinAnswer("house", "gw-4", "mqtts://broker.example:8883", "", "", "the-password")


class Console:
    """An HTTPS server that answers as it is told, and remembers what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.authority = b""
        self.answer: tuple[int, bytes] = (200, b"{}")
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"


@contextmanager
def serving(folder: Path, authority: Authority, name: str = "localhost") -> Iterator[Console]:
    console = Console()
    console.authority = authority.certificate
    paths = certificate_paths(folder, "console")
    write_issued(paths, authority.issue_server("console", [name], NOW))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, console.authority)

        def do_POST(self) -> None:
            console.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*console.answer)

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Say nothing."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust us hangs up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(paths.certificate, paths.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        console.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield console
        finally:
            server.shutdown()
            thread.join()


def token(authority: Authority) -> str:
    return EnrolmentToken("gw-4", SECRET, authority.facts.fingerprint).encode()


def test_a_gateway_joins_at_the_console_of_its_token(tmp_path: Path) -> None:
    authority = make_authority("ours", NOW)
    with serving(tmp_path, authority) as console:
        console.answer = (200, json.dumps(_plain(ANSWER)).encode())
        settings = join(console.url, token(authority), tmp_path / "gw-4", metrics_port=9464)
        (body,) = console.bodies
    assert SECRET not in settings.read_text()
    written = json.loads(settings.read_text())
    assert (written["gateway"], written["metrics_port"]) == ("gw-4", 9464)
    assert (tmp_path / "gw-4" / "broker_password").read_text() == "the-password\n"
    assert "PRIVATE" not in body.decode()


def test_a_console_with_another_authority_never_gets_the_secret(tmp_path: Path) -> None:
    ours, theirs = make_authority("ours", NOW), make_authority("ours", NOW)
    with serving(tmp_path, theirs) as console:
        with pytest.raises(DeploymentError, match="is not the one that made the token"):
            join(console.url, token(ours), tmp_path / "gw-4")
        console.authority = ours.certificate  # it shows the right one, and has not its key
        with pytest.raises(DeploymentError, match="its certificate is not accepted"):
            join(console.url, token(ours), tmp_path / "gw-4")
        assert console.bodies == []


def test_a_console_under_a_name_that_its_certificate_lacks_gets_nothing(tmp_path: Path) -> None:
    authority = make_authority("ours", NOW)
    with serving(tmp_path, authority, "console.example") as console:
        with pytest.raises(DeploymentError, match="its certificate is not accepted"):
            join(console.url, token(authority), tmp_path / "gw-4")
        assert console.bodies == []


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            403,
            b'{"error": {"message": "no", "code": "join_refused"}}',
            "refuses: no",
        ),
        (500, b"<html>", "answered with status 500"),
        (200, b"[]", "answered something else"),
        (200, b"x" * 300_000, "more than 200000 bytes"),
    ],
)
def test_what_a_console_may_answer(tmp_path: Path, status: int, body: bytes, said: str) -> None:
    authority = make_authority("ours", NOW)
    with serving(tmp_path, authority) as console:
        console.answer = (status, body)
        with pytest.raises(DeploymentError, match=said):
            join(console.url, token(authority), tmp_path / "gw-4")
    assert not (tmp_path / "gw-4" / "gateway.json").exists()


def test_an_answer_for_another_gateway_is_not_taken(tmp_path: Path) -> None:
    authority = make_authority("ours", NOW)
    with serving(tmp_path, authority) as console:
        console.answer = (200, json.dumps({**_plain(ANSWER), "gateway": "base"}).encode())
        with pytest.raises(DeploymentError, match="answered for 'base'"):
            join(console.url, token(authority), tmp_path / "gw-4")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://console.example", "is not encrypted"),
        ("http://10.0.0.1:8420", "is not encrypted"),
        ("ftp://console.example", "no address of a console"),
        ("https://", "no address of a console"),
        ("https://a:port", "no address of a console"),
    ],
)
def test_addresses_that_are_none_or_in_clear_are_refused(url: str, said: str) -> None:
    with pytest.raises(DeploymentError, match=said):
        console_address(url)


def test_addresses() -> None:
    assert console_address("console.example:8420") == ConsoleAddress("console.example", 8420, True)
    assert str(console_address("http://127.0.0.1:8420")) == "http://127.0.0.1:8420"
    assert console_address("https://[::1]").host == "::1"


def test_a_console_that_is_not_there_is_named() -> None:
    request = JoinRequest("pando1.x", "")
    with pytest.raises(DeploymentError, match="nothing listens there"):
        send_request(ConsoleAddress("127.0.0.1", 9, True), request, "", None)
    with pytest.raises(DeploymentError, match="cannot be reached"):
        fetch_authority(ConsoleAddress("no-such-host.invalid", 443, True), "0" * 64)


def test_a_folder_is_of_one_gateway_and_keeps_its_endpoints(tmp_path: Path) -> None:
    check_folder(tmp_path / "a", "gw-4")
    settings = write_joined(tmp_path / "a", ANSWER, b"key")
    endpoints = {"hooks": {"connector": "http_push", "port": 1}}
    written = {**json.loads(settings.read_text()), "endpoints": endpoints, "tick_ms": 5}
    settings.write_text(json.dumps(written))
    check_folder(tmp_path / "a", "gw-4")
    write_joined(tmp_path / "a", ANSWER, b"key")
    after = json.loads(settings.read_text())
    assert (after["endpoints"], after["tick_ms"]) == (endpoints, 5)
    with pytest.raises(DeploymentError, match="is the one of gateway 'gw-4'"):
        check_folder(tmp_path / "a", "gw-5")


def _plain(answer: JoinAnswer) -> dict[str, str]:
    return {name: getattr(answer, name) for name in answer.__struct_fields__}
