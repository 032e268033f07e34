"""What is sent becomes rows, 202 means kept, and whoever sends wrongly is told so."""

import asyncio
import contextlib
import gzip
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from gateway.connectors.http_push.push_connector import PushConnector
from streamsql.errors import DeploymentError
from tests.certificates import make_certificate
from tests.gateway.connectors.serving import Served, in_loop, serving, until

ROOM = """
CREATE SOURCE room (room TEXT, celsius DOUBLE FROM 't', KEY (room))
WITH (connector = 'http_push', endpoint = 'home', path = '/rooms/{room}')
"""
BATCH = """
CREATE SOURCE batch (room TEXT, celsius DOUBLE FROM 't', KEY (room))
WITH (connector = 'http_push', endpoint = 'home', rows = '[*]')
"""
LINES = """
CREATE SOURCE lines (room TEXT, celsius DOUBLE FROM 't', KEY (room))
WITH (connector = 'http_push', endpoint = 'home')
"""
TOKEN = "tok-of-rooms"
OTHER = "tok-of-others"
ENDPOINT = {"port": 0, "tokens": {"room": TOKEN}, "token": OTHER}


@contextlib.asynccontextmanager
async def pushed(
    text: str = ROOM, *, keeping: bool = True, token: str = TOKEN
) -> AsyncIterator[tuple[Served, httpx.AsyncClient]]:
    """Run the connector; yield what it does, and a client that shows a token."""
    async with serving(PushConnector(), ENDPOINT, text, keeping=keeping) as served:
        await until(lambda: bool(served.notes))
        url = f"http://{served.notes[0].removeprefix('listening on ')}"
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as client:
            yield served, client


@in_loop
async def test_a_request_is_answered_when_its_readings_are_kept() -> None:
    async with pushed(keeping=False) as (served, client):
        request = asyncio.create_task(client.post("/rooms/1.04", content='{"t": 21.5}'))
        assert await served.until_rows(1) == [("1.04", 21.5)]
        await asyncio.sleep(0.2)  # time passes: an answer would have come
        assert not request.done()
        served.may_keep.set()
        answer = await request
    assert answer.status_code == 202
    assert answer.json() == {"rows": 1, "problems": 0}
    assert served.steps == ["emit", "kept"]


TWO = b'[{"room": "a", "t": 1}, {"room": "b", "t": 2}]'
TWO_LINES = b'{"room": "a", "t": 1}\n{"room": "b", "t": 2}\n\n'


@pytest.mark.parametrize(
    ("name", "body", "headers"),
    [
        ("batch", TWO, {}),
        ("batch", gzip.compress(TWO, mtime=0), {"Content-Encoding": "gzip"}),
        ("lines", TWO_LINES, {"Content-Type": "application/x-ndjson; charset=utf-8"}),
    ],
)
@in_loop
async def test_a_body_may_hold_many_rows(name: str, body: bytes, headers: dict[str, str]) -> None:
    async with pushed(f"{BATCH};{LINES}", token=OTHER) as (served, client):
        answer = await client.post(f"/{name}", content=body, headers=headers)
    assert answer.json() == {"rows": 2, "problems": 0}
    assert served.rows == [("a", 1.0), ("b", 2.0)]


@in_loop
async def test_a_chunked_body_and_a_basic_login_are_read() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"t"'
        yield b": 3}"

    async with pushed() as (served, client):
        for _ in range(3):
            answer = await client.post("/rooms/x", content=chunks(), auth=("any", TOKEN))
            assert answer.status_code == 202
    assert served.rows == [("x", 3.0)] * 3


@in_loop
async def test_a_batch_with_a_bad_row_keeps_the_others_and_says_how_many() -> None:
    async with pushed(BATCH, token=OTHER) as (served, client):
        answer = await client.post("/batch", content='[{"room": "a", "t": 1}, {"t": 2}, 7]')
        assert answer.status_code == 202
        assert answer.json() == {"rows": 1, "problems": 2}
    assert served.rows == [("a", 1.0)]


BOMB = gzip.compress(b" " * 5_000_000, mtime=0)
NESTED = '{"t":' * 70 + "1" + "}" * 70
AUTH = "Authorization"
PACKED = "Content-Encoding"


@pytest.mark.parametrize(
    ("request_line", "body", "headers", "status", "said"),
    [
        ("POST /nowhere", "{}", {}, 404, "no source with this token has this path"),
        ("POST /nowhere", "{}", {AUTH: "Bearer wrong-token"}, 401, "send Authorization"),
        ("POST /nowhere", "{}", {AUTH: ""}, 401, "send Authorization"),
        ("GET /rooms/1", "", {}, 405, "send a POST"),
        ("POST /rooms/1", "{}", {AUTH: "Bearer wrong-token"}, 401, "send Authorization"),
        ("POST /rooms/1", "{}", {AUTH: f"Bearer {OTHER}"}, 401, "send Authorization"),
        ("POST /rooms/1", "{}", {AUTH: ""}, 401, "send Authorization"),
        ("POST /rooms/1", "{}", {AUTH: "Basic %%%"}, 401, "send Authorization"),
        ("POST /rooms/1", "x" * 1_000_001, {}, 413, "more than 1,000,000 bytes"),
        ("POST /rooms/1", BOMB, {PACKED: "gzip"}, 413, "more than 1,000,000 bytes"),
        ("POST /rooms/1", b"junk", {PACKED: "gzip"}, 415, "is damaged"),
        ("POST /rooms/1", "{}", {PACKED: "br"}, 415, "only gzip and deflate"),
        ("POST /rooms/1", "no JSON", {}, 400, "it is no JSON"),
        ("POST /rooms/1", '{"t": NaN}', {}, 400, "it is no JSON"),
        ("POST /rooms/1", "[" * 100_000, {}, 400, "it is no JSON"),
        ("POST /rooms/1", NESTED, {}, 400, "nested deeper than 64"),
        ("POST /rooms/1", b'{"t": "\xff"}', {}, 400, "it is no JSON"),
        ("POST /rooms/1", b"{}", {"Content-Type": "a/b; charset=idna"}, 400, "is not read"),
    ],
)
@in_loop
async def test_a_wrong_request_is_refused_and_the_next_one_taken(
    request_line: str, body: str | bytes, headers: dict[str, str], status: int, said: str
) -> None:
    method, path = request_line.split()
    async with pushed() as (served, client):
        answer = await client.request(method, path, content=body, headers=headers)
        assert answer.status_code == status
        assert said in answer.json()["error"]
        after = await client.post("/rooms/1.04", content='{"t": 1}')
        assert after.status_code == 202
    assert served.rows == [("1.04", 1.0)]


@in_loop
async def test_paths_cannot_be_found_out() -> None:
    """A path of nobody, and one of a source with another token, give one answer."""
    async with pushed(f"{ROOM};{BATCH}") as (_, client):
        for headers, status in (({AUTH: "Bearer wrong-token"}, 401), ({AUTH: ""}, 401), ({}, 404)):
            answers = [
                await client.post(path, content="[]", headers=headers)
                for path in ("/batch", "/nowhere")
            ]
            assert {each.status_code for each in answers} == {status}
            assert answers[0].content == answers[1].content


@pytest.mark.parametrize("in_one_file", [False, True])
@in_loop
async def test_with_a_certificate_the_server_speaks_https(
    tmp_path: Path, in_one_file: bool
) -> None:
    for name in ("ca", "gateway"):
        make_certificate(tmp_path, name, name)
    certificate, key = tmp_path / "gateway.crt", tmp_path / "gateway.key"
    endpoint: dict[str, object] = {**ENDPOINT, "certificate": str(certificate)}
    if in_one_file:
        certificate.write_text(certificate.read_text() + key.read_text())
    else:
        endpoint["certificate_key"] = str(key)
    trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    async with serving(PushConnector(), endpoint, ROOM) as served:
        await until(lambda: bool(served.notes))
        place = served.notes[0].removeprefix("listening on ")
        headers = {AUTH: f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(verify=trusted, headers=headers, trust_env=False) as client:
            answer = await client.post(f"https://{place}/rooms/1", content='{"t": 2}')
            assert answer.status_code == 202
            with pytest.raises(httpx.RemoteProtocolError):
                await client.post(f"http://{place}/rooms/1", content='{"t": 3}')
        async with httpx.AsyncClient(trust_env=False) as stranger:
            with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
                await stranger.post(f"https://{place}/rooms/1", content='{"t": 4}')
    assert served.rows == [("1", 2.0)]


@in_loop
async def test_a_gateway_that_is_behind_asks_to_come_later_and_loses_nothing() -> None:
    async with pushed(keeping=False) as (served, client):
        requests = [
            asyncio.create_task(client.post(f"/rooms/{number}", content='{"t": 1}'))
            for number in range(32)
        ]
        await served.until_rows(32)
        answer = await client.post("/rooms/late", content='{"t": 1}')
        assert answer.status_code == 429
        assert answer.headers["Retry-After"] == "1"
        served.may_keep.set()
        assert [(await request).status_code for request in requests] == [202] * 32
        assert (await client.post("/rooms/late", content='{"t": 1}')).status_code == 202
    assert len(served.rows) == 33


@in_loop
async def test_one_request_may_feed_several_sources() -> None:
    other = ROOM.replace("SOURCE room", "SOURCE other").replace(
        "celsius DOUBLE FROM 't'", "u INTEGER"
    )
    async with serving(PushConnector(), {"port": 0, "token": TOKEN}, f"{ROOM};{other}") as served:
        await until(lambda: bool(served.notes))
        url = f"http://{served.notes[0].removeprefix('listening on ')}/rooms/a"
        async with httpx.AsyncClient(trust_env=False) as client:
            headers = {AUTH: f"Bearer {TOKEN}"}
            answer = await client.post(url, content=json.dumps({"t": 2, "u": 5}), headers=headers)
    assert answer.json() == {"rows": 2, "problems": 0}
    found = sorted((each.source, *each.values.values()) for each in served.readings)
    assert found == [("other", "a", 5), ("room", "a", 2.0)]


@in_loop
async def test_a_source_without_a_token_is_said_and_takes_nothing() -> None:
    async with serving(PushConnector(), {"port": 0}, ROOM) as served:
        await until(lambda: bool(served.notes))
    assert served.problems == ["the endpoint has no token for room: add it to its `tokens`"]


@in_loop
async def test_a_port_that_is_taken_is_said() -> None:
    async with pushed() as (served, _):
        port = int(served.notes[0].rpartition(":")[2])
        with pytest.raises(DeploymentError, match=f"cannot listen on 127.0.0.1:{port}: "):
            async with serving(PushConnector(), {**ENDPOINT, "port": port}, ROOM) as other:
                await until(lambda: other.task is not None and other.task.done())
