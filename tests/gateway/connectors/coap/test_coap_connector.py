"""The CoAP connector against aiocoap's server, and against peers that misbehave."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from gateway.connectors.coap.coap_connector import CoapConnector
from streamsql.mapping.payloads.payload_reader import MAX_PAYLOAD
from tests.gateway.connectors.coap.sensors import Changing, Plain, coap
from tests.gateway.connectors.serving import in_loop, serving, until
from tests.gateway.connectors.udp_peer import udp_peer

AIR = """
CREATE SOURCE air (
  path TEXT FROM '@path',
  celsius DOUBLE FROM 't',
  KEY (path)
) WITH (connector = 'coap', endpoint = 'home', path = '/room/1, room/2', interval = '{interval}')
"""
JSON = 50


def air(interval: str = "1 h") -> str:
    return AIR.format(interval=interval)


def local(port: int, timeout: float = 2) -> dict[str, object]:
    return {"url": f"coap://127.0.0.1:{port}", "timeout": timeout}


def rooms() -> dict[str, Changing]:
    return {f"room/{n}": Changing(b'{"t": %d}' % n, JSON) for n in (1, 2)}


@in_loop
async def test_notifications_become_readings() -> None:
    both = rooms()
    async with coap(both) as port, serving(CoapConnector(), local(port), air()) as served:
        await until(lambda: len(served.readings) == 2)
        assert sorted(served.rows) == [("room/1", 1.0), ("room/2", 2.0)]
        both["room/1"].change(b'{"t": 21.5}')
        await until(lambda: ("room/1", 21.5) in served.rows)
        both["room/2"].change(b'{"t": -3.25}')
        await until(lambda: ("room/2", -3.25) in served.rows)
    assert served.problems == []


@pytest.mark.parametrize(
    ("form", "payload"),
    [
        ("json", b'{"t": 21.5}'),
        ("text", b" 21.5 "),
        ("senml", b'[{"bn": "urn:dev:mac:1:", "n": "t", "u": "Cel", "v": 21.5}]'),
        ("senml+cbor", b"\x81\xa3\x00\x61t\x01\x63Cel\x02\xf9\x4d\x60"),
    ],
)
@in_loop
async def test_payload_formats(form: str, payload: bytes) -> None:
    column = "t DOUBLE" if form == "text" else "t DOUBLE FROM 't'"
    text = f"CREATE SOURCE s ({column}) WITH (connector = 'coap', path = 'p', format = '{form}')"
    async with (
        coap({"p": Changing(payload, 0)}) as port,
        serving(CoapConnector(), local(port), text) as served,
    ):
        await until(lambda: bool(served.readings or served.problems))
    assert (served.rows, served.problems) == ([(21.5,)], [])


@in_loop
async def test_a_resource_that_cannot_be_observed_is_asked_once_an_interval() -> None:
    text = (
        "CREATE SOURCE s (n INTEGER) "
        "WITH (connector = 'coap', path = 'p', format = 'text', interval = '1 s')"
    )
    plain = Plain()
    async with coap({"p": plain}) as port, serving(CoapConnector(), local(port), text) as served:
        await until(lambda: len(served.readings) >= 3)
    assert served.rows[:3] == [(1,), (2,), (3,)]


@in_loop
async def test_a_missing_resource_and_a_bad_payload_are_named_and_the_others_read() -> None:
    one = {"room/1": Changing(b"no JSON", JSON)}
    async with coap(one) as port, serving(CoapConnector(), local(port), air()) as served:
        await until(lambda: len(served.problems) == 2)
        one["room/1"].change(b"[" * 5_000)
        await until(lambda: len(served.problems) == 3)
        one["room/1"].change(b"1" * (MAX_PAYLOAD // 20))
        await until(lambda: len(served.problems) == 4)
        one["room/1"].change(b'{"t": 4}')
        await until(lambda: served.rows == [("room/1", 4.0)])
    assert "resource room/2: 4.04 Not Found" in served.problems


@in_loop
async def test_a_device_that_goes_ends_the_connector_and_comes_back() -> None:
    text = air("1 s")
    async with contextlib.AsyncExitStack() as stack:
        port = await stack.enter_async_context(coap(rooms()))
        async with serving(CoapConnector(), local(port), text) as served:
            await until(lambda: bool(served.readings))
            await stack.aclose()
            assert served.task is not None
            with pytest.raises(ConnectionError, match=r"coap coap://127\.0\.0\.1:\d+: no conn"):
                await asyncio.wait_for(asyncio.shield(served.task), 20)
    async with coap(rooms(), port=port), serving(CoapConnector(), local(port), text) as served:
        await until(lambda: bool(served.readings))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _: b"", id="nothing"),
        pytest.param(lambda _: b"\xff" * 1_000, id="noise"),
        pytest.param(lambda _: b"HTTP/1.1 400 Bad", id="another protocol"),
        pytest.param(lambda r: b"\x68\x45" + r[2:4] + b"\0" * 8 + b"\xff", id="another token"),
        pytest.param(lambda r: b"\x70\0" + r[2:4], id="a reset"),
    ],
)
@in_loop
async def test_garbage_ends_the_connector_in_words(answer: Callable[[bytes], bytes]) -> None:
    async with (
        udp_peer(answer) as peer,
        serving(CoapConnector(), local(peer.port, 0.5), air()) as served,
    ):
        assert served.task is not None
        with pytest.raises(ConnectionError, match=r"coap .*127\.0\.0\.1:\d+: "):
            await asyncio.wait_for(asyncio.shield(served.task), 20)
        assert peer.answered
    assert served.readings == []


@in_loop
async def test_an_echo_is_a_refusal() -> None:
    """Our own request comes back, is refused by us, and the refusal comes back as the answer."""
    async with (
        udp_peer(lambda r: r) as peer,
        serving(CoapConnector(), local(peer.port), air()) as served,
    ):
        await until(lambda: len(served.problems) == 2)
    assert all(text.startswith("resource room/") for text in served.problems)
    assert served.readings == []
