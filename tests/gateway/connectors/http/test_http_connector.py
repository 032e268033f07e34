"""Pages become rows; hosts that are slow, wrong or hostile are said, and nobody waits for them."""

import asyncio
import base64
import gzip
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway.connectors.http.http_connector import HttpConnector
from tests.gateway.connectors.http.pages import Pages, answer, pages
from tests.gateway.connectors.serving import in_loop, serving, until

ROOM = """
CREATE SOURCE room (
  room    TEXT,
  celsius DOUBLE FROM 't',
  KEY (room)
) WITH (connector = 'http', endpoint = 'here', path = '/room', interval = '0.1 s')
"""
CHAMBER = '{"room": "1.04", "t": 21.5}'
ROW = ("1.04", 21.5)


@pytest.fixture
def web_server(tmp_path: Path) -> Iterator[str]:
    """The address of Python's own HTTP server over the test's folder."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@in_loop
async def test_a_page_of_a_web_server_is_read_again_only_when_it_has_changed(
    web_server: str, tmp_path: Path
) -> None:
    page = tmp_path / "room"
    page.write_text(CHAMBER)
    async with serving(HttpConnector(), {"url": web_server}, ROOM) as seen:
        assert await seen.until_rows(1) == [ROW]
        # It is asked some more times, and says 304 (Last-Modified has seconds).
        later = page.stat().st_mtime + 10
        page.write_text('{"room": "1.05", "t": 19}')
        os.utime(page, (later, later))
        assert (await seen.until_rows(2))[1] == ("1.05", 19.0)
    assert seen.problems == []


@in_loop
async def test_a_host_is_told_the_etag_it_gave_and_304_gives_no_row() -> None:
    async with pages() as server:
        server.put(
            "/room",
            answer(CHAMBER, 'ETag: "v1"'),
            answer("", status="304 Not Modified"),
            answer("", status="304 Not Modified"),
            answer('{"room": "2", "t": 1}', 'ETag: "v2"'),
        )
        async with serving(HttpConnector(), {"url": server.url}, ROOM) as seen:
            assert (await seen.until_rows(2))[:2] == [ROW, ("2", 1.0)]
    assert "if-none-match" not in server.asked[0].lower()
    assert ['If-None-Match: "v1"' in asked for asked in server.asked[1:4]] == [True] * 3


@in_loop
async def test_one_statement_reads_the_same_page_of_many_hosts() -> None:
    text = ROOM.replace("FROM 't'", "FROM 't', port TEXT FROM '@url'").replace(
        "'/room'", "'/r?a=1'"
    )
    async with pages() as one, pages() as two:
        one.put("/r?a=1", answer('{"room": "a", "t": 1}'))
        two.put("/r?a=1", answer('{"room": "b", "t": 2}'))
        hosts = f"hosts = '127.0.0.1:{one.port}, 127.0.0.1:{two.port}'"
        text = text.replace("interval", f"{hosts}, interval")
        async with serving(HttpConnector(), {"url": "http://{host}"}, text) as seen:
            await until(lambda: len({row[0] for row in seen.rows}) == 2)
    assert {(row[0], row[2]) for row in seen.rows} == {
        ("a", f"{one.url}/r?a=1"),
        ("b", f"{two.url}/r?a=1"),
    }


@pytest.mark.parametrize(
    ("login", "header"),
    [
        (
            {"user": "me", "password": "pw"},
            "Authorization: Basic " + base64.b64encode(b"me:pw").decode(),
        ),
        ({"token": "t0k"}, "Authorization: Bearer t0k"),
        ({"headers": {"X-Api-Key": "k"}}, "X-Api-Key: k"),
    ],
)
@in_loop
async def test_the_login_of_the_endpoint_is_sent(login: dict[str, object], header: str) -> None:
    async with pages() as server:
        server.put("/room", answer(CHAMBER))
        async with serving(HttpConnector(), {"url": server.url, **login}, ROOM) as seen:
            await seen.until_rows(1)
    assert header in server.asked[0]


@in_loop
async def test_a_digest_login_answers_the_challenge() -> None:
    challenge = 'WWW-Authenticate: Digest realm="pdu", nonce="abc", qop="auth", algorithm=MD5'
    async with pages() as server:
        server.put("/room", answer("", challenge, status="401 Unauthorized"), answer(CHAMBER))
        endpoint = {"url": server.url, "user": "me", "password": "pw", "login": "digest"}
        async with serving(HttpConnector(), endpoint, ROOM) as seen:
            assert (await seen.until_rows(1))[0] == ROW
    assert 'Digest username="me", realm="pdu"' in server.asked[1]
    assert "pw" not in server.asked[1].split("response=")[0]


async def drip(_request: str, writer: asyncio.StreamWriter) -> None:
    """Answer a byte at a time, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


async def endless(_request: str, writer: asyncio.StreamWriter) -> None:
    """Answer without an end, as fast as it is read."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


GERMAN = '{"room": "Büro", "t": 1}'.encode("latin-1")
JSON = "Content-Type: application/json"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (answer("no", status="404 Not Found"), "/room: status 404 Not Found"),
        (answer("", status="401 Unauthorized"), "check user and password, or token"),
        (drip, "no answer within 0.5 s"),
        (endless, "more than 1,000,000 bytes"),
        (answer(b"x" * 1_000_001), "more than 1,000,000 bytes"),
        (
            answer(gzip.compress(b" " * 50_000_000, mtime=0), "Content-Encoding: gzip"),
            "more than 1,000,000 bytes",
        ),
        (answer(gzip.compress(b"[]", mtime=0)[:-9], "Content-Encoding: gzip"), "ends too early"),
        (answer(b"\0junk", "Content-Encoding: gzip"), "the packed body is damaged"),
        (answer("{}", "Content-Encoding: br"), "only gzip and deflate are read"),
        (answer(GERMAN, JSON), "payload: it is no JSON"),
        (answer(GERMAN, f"{JSON}; charset=punycode"), "charset 'punycode' is not read"),
        (answer(CHAMBER, f"{JSON}; charset=utf-16"), "it is no text in utf-16"),
        (answer("[" * 100_000), "payload: it is no JSON"),
        (answer('{"a":' * 70 + "1" + "}" * 70), "nested deeper than 64"),
        (answer('{"room": "1", "t": NaN}'), "payload: it is no JSON"),
        (answer('{"t": 1}'), "the key column room has no value"),
        (answer("<p>Login</p>", "Content-Type: text/html"), "HTML page; is a login needed?"),
        (b"SSH-2.0-dropbear\r\n\r\n", "no answer: "),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "no answer: "),
        (answer("", "Location: http://10.9.8.7/x", status="302 Found"), "which is not followed"),
        (answer("", "Location: ftp://127.0.0.1/x", status="302 Found"), "not followed"),
        (answer("", "Location: /room", status="302 Found"), "more than 3 redirects"),
    ],
)
@in_loop
async def test_what_a_host_does_wrong_is_said_and_the_next_answer_is_read(
    given: bytes, said: str
) -> None:
    async with pages() as server:
        server.put("/room", *[given] * (4 if "redirects" in said else 1), answer(CHAMBER))
        endpoint = {"url": server.url, "timeout": 0.5 if said == "no answer within 0.5 s" else 20}
        async with serving(HttpConnector(), endpoint, ROOM) as seen:
            assert (await seen.until_rows(1))[0] == ROW
    assert any(said in problem for problem in seen.problems), seen.problems


@in_loop
async def test_texts_in_other_charsets_are_read_as_the_header_says() -> None:
    async with pages() as server:
        server.put("/room", answer(GERMAN, f"{JSON}; charset=iso-8859-1"))
        async with serving(HttpConnector(), {"url": server.url}, ROOM) as seen:
            assert (await seen.until_rows(1))[0][0] == "Büro"


@in_loop
async def test_redirects_of_a_host_to_itself_are_followed() -> None:
    async with pages() as server:
        server.put("/room", answer("", "Location: /new/room", status="301 Moved Permanently"))
        server.put("/new/room", answer(CHAMBER))
        async with serving(HttpConnector(), {"url": server.url}, ROOM) as seen:
            assert (await seen.until_rows(1))[0] == ROW


@in_loop
async def test_a_host_that_asks_for_time_gets_it() -> None:
    busy = answer("", "Retry-After: 600", status="429 Too Many Requests")
    both = ROOM + ";" + ROOM.replace("SOURCE room", "SOURCE other").replace("'/room'", "'/other'")
    async with pages() as server:
        server.put("/room", busy)
        server.put("/other", answer(CHAMBER))
        async with serving(HttpConnector(), {"url": server.url}, both) as seen:
            await seen.until_rows(5)
    assert sum("GET /room " in asked for asked in server.asked) == 1


@in_loop
async def test_a_host_gets_one_request_at_a_time() -> None:
    async def late(_request: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0)
        writer.write(answer(CHAMBER))

    both = ROOM + ";" + ROOM.replace("SOURCE room", "SOURCE other").replace("'/room'", "'/other'")
    async with pages() as server:
        server.put("/room", late)
        server.put("/other", late)
        async with serving(HttpConnector(), {"url": server.url}, both) as seen:
            await until(lambda: {reading.source for reading in seen.readings} == {"room", "other"})
    assert server.most_at_once == 1


@in_loop
async def test_a_gateway_that_is_behind_is_not_given_more() -> None:
    async with pages() as server:
        server.put("/room", answer(CHAMBER))
        async with serving(HttpConnector(), {"url": server.url}, ROOM, keeping=False) as seen:
            await seen.until_rows(1)
            await asyncio.sleep(0.5)  # time passes: several polls would have come
            assert len(server.asked) == 1
            seen.may_keep.set()
            await seen.until_rows(2)


@in_loop
async def test_a_host_that_is_away_is_found_again() -> None:
    async with pages() as server:
        port = server.port
    async with serving(HttpConnector(), {"url": f"http://127.0.0.1:{port}"}, ROOM) as seen:
        await seen.until_problem("no answer")
        back = Pages(port)
        back.put("/room", answer(CHAMBER))
        again = await asyncio.start_server(back.serve, "127.0.0.1", port)
        try:
            assert (await seen.until_rows(1))[0] == ROW
        finally:
            again.close()


@in_loop
async def test_hosts_that_do_not_fit_the_endpoint_are_the_sources_problem() -> None:
    async with serving(HttpConnector(), {"url": "http://{host}"}, ROOM) as seen:
        await seen.until_problem("the endpoint's url has {host}; write hosts = ")
