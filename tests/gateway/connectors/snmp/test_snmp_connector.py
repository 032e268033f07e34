"""The SNMP connector against snmpsim, and against peers that misbehave."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from gateway.connectors.snmp.snmp_connector import SnmpConnector
from gateway.connectors.snmp.snmp_options import Authentication, Privacy
from tests.gateway.connectors.serving import in_loop, serving, until
from tests.gateway.connectors.snmp.agents import agent
from tests.gateway.connectors.udp_peer import udp_peer

pytestmark = pytest.mark.end_to_end

SYSTEM = """
CREATE SOURCE system (
  name TEXT FROM '1.3.6.1.2.1.1.5.0',
  uptime DOUBLE FROM '1.3.6.1.2.1.1.3.0' SCALE 0.01 UNIT 's',
  address TEXT FROM '1.3.6.1.2.1.99.1',
  mac TEXT FROM '1.3.6.1.2.1.99.2',
  kind TEXT FROM '1.3.6.1.2.1.1.2.0',
  octets INTEGER FROM '1.3.6.1.2.1.99.3'
) WITH (connector = 'snmp', endpoint = 'home', interval = '200 ms')
"""
PORTS = """
CREATE SOURCE ports (
  device TEXT FROM '1.3.6.1.2.1.1.5.0',
  port INTEGER FROM '@index',
  name TEXT FROM '1.3.6.1.2.1.2.2.1.2',
  octets INTEGER FROM '1.3.6.1.2.1.2.2.1.10',
  KEY (device, port)
) WITH (connector = 'snmp', endpoint = 'home', interval = '1 h')
"""
RECORDS = (
    "1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.318.1",
    "1.3.6.1.2.1.1.3.0|67|123456",
    "1.3.6.1.2.1.1.5.0|4|rack 7",
    "1.3.6.1.2.1.99.1|64x|c0000207",
    "1.3.6.1.2.1.99.2|4x|00c0b7fffe01",
    "1.3.6.1.2.1.99.3|70|9007199254740993",
    *(f"1.3.6.1.2.1.2.2.1.2.{n}|4|eth{n}" for n in range(1, 61)),
    *(f"1.3.6.1.2.1.2.2.1.10.{n}|65|{n}00" for n in range(2, 61)),
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with agent(tmp_path_factory.mktemp("agent"), *RECORDS) as found:
        yield found


def local(port: int, **more: object) -> dict[str, object]:
    return {
        "host": "127.0.0.1",
        "port": port,
        "community": "pdu",
        "timeout": 0.5,
        "retries": 1,
        **more,
    }


SECURE = {
    "version": "3",
    "username": "pando",
    "auth_key": "authpass1",
    "priv_key": "privpass1",
    "context": "pdu",
}


@pytest.mark.parametrize("version", [{}, SECURE], ids=["2c", "3"])
@in_loop
async def test_objects_become_a_row(port: int, version: dict[str, object]) -> None:
    async with serving(SnmpConnector(), local(port, **version), SYSTEM) as served:
        await until(lambda: len(served.readings) >= 2)
    row = ("rack 7", 1234.56, "192.0.2.7", "00c0b7fffe01", "1.3.6.1.4.1.318.1", 2**53 + 1)
    assert set(served.rows) == {row}
    assert served.problems == []


PROTOCOLS = [
    *((auth, "AES") for auth in get_args(Authentication)),
    *(("SHA256", priv) for priv in get_args(Privacy) if priv != "AES"),
    ("SHA", ""),
]


@pytest.fixture(scope="module")
def secure_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """An agent with a user for each protocol."""
    users = [(f"u-{auth}-{priv}", auth, priv) for auth, priv in PROTOCOLS]
    with agent(tmp_path_factory.mktemp("secure"), *RECORDS, users=users) as port:
        yield port


@pytest.mark.parametrize(("auth", "priv"), PROTOCOLS)
@in_loop
async def test_every_protocol_of_version_3(secure_port: int, auth: str, priv: str) -> None:
    user: dict[str, object] = {**SECURE, "username": f"u-{auth}-{priv}", "auth": auth}
    user = {**user, "priv": priv} if priv else {**user, "priv_key": ""}
    async with serving(SnmpConnector(), local(secure_port, **user), SYSTEM) as served:
        await until(lambda: bool(served.readings))
    assert served.rows[0][0] == "rack 7"
    assert served.problems == []


@pytest.mark.parametrize(
    ("auth", "priv", "other"), [("SHA", "AES", "MD5"), ("MD5", "AES", "AES256")]
)
@in_loop
async def test_another_protocol_than_the_agents_is_refused(
    secure_port: int, auth: str, priv: str, other: str
) -> None:
    changed = "priv" if other in get_args(Privacy) else "auth"
    user = {**SECURE, "username": f"u-{auth}-{priv}", "auth": auth, "priv": priv, changed: other}
    async with serving(SnmpConnector(), local(secure_port, **user), SYSTEM) as served:
        assert served.task is not None
        with pytest.raises(ConnectionError, match=r"snmp 127\.0\.0\.1:\d+: "):
            await asyncio.wait_for(asyncio.shield(served.task), 20)


@in_loop
async def test_a_table_becomes_a_row_for_each_index(port: int) -> None:
    async with serving(SnmpConnector(), local(port), PORTS) as served:
        await until(lambda: len(served.readings) >= 60)
    assert served.rows == [
        ("rack 7", n, f"eth{n}", None if n == 1 else n * 100) for n in range(1, 61)
    ]
    assert served.problems == []


@in_loop
async def test_missing_objects_are_named_and_the_others_read(port: int) -> None:
    text = SYSTEM.replace("1.3.6.1.2.1.99.1'", "1.3.6.1.2.1.98.1'")
    wrong = "CREATE SOURCE w (x INTEGER FROM 'sysUpTime.0') WITH (connector = 'snmp')"
    async with serving(SnmpConnector(), local(port), f"{wrong}; {text}") as served:
        await until(lambda: bool(served.readings))
    assert served.rows[0][:3] == ("rack 7", 1234.56, None)
    assert served.problems[:2] == [
        "column x: FROM 'sysUpTime.0' is no OID, such as '1.3.6.1.2.1.1.3.0'",
        "1.3.6.1.2.1.98.1: the agent has no such object",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"community": "other"},
        {**SECURE, "auth_key": "hunter2hunter2"},
        {**SECURE, "username": "nobody"},
    ],
)
@in_loop
async def test_who_is_not_let_in_is_told_so_without_secrets(
    port: int, wrong: dict[str, object]
) -> None:
    async with serving(SnmpConnector(), local(port, **wrong), SYSTEM) as served:
        assert served.task is not None
        with pytest.raises(ConnectionError, match=r"snmp 127\.0\.0\.1:\d+: ") as caught:
            await asyncio.wait_for(asyncio.shield(served.task), 20)
    assert "hunter2" not in str(caught.value)
    assert served.readings == []


@in_loop
async def test_an_agent_that_goes_ends_the_connector_and_comes_back(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(agent(tmp_path, *RECORDS))
        async with serving(SnmpConnector(), local(port), SYSTEM) as served:
            await until(lambda: bool(served.readings))
            stack.close()
            assert served.task is not None
            with pytest.raises(ConnectionError, match="before timeout"):
                await asyncio.wait_for(asyncio.shield(served.task), 20)
    with agent(tmp_path, *RECORDS, port=port):
        async with serving(SnmpConnector(), local(port), SYSTEM) as served:
            await until(lambda: bool(served.readings))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _: b"", id="nothing"),
        pytest.param(lambda _: b"\xff" * 1_000, id="noise"),
        pytest.param(lambda _: b"\x30\x84\xff\xff\xff\xff" + b"\0" * 50, id="an endless sequence"),
        pytest.param(lambda _: b"\x30\x80" * 400, id="deeply nested"),
        pytest.param(lambda r: r, id="an echo"),
    ],
)
@in_loop
async def test_garbage_ends_the_connector_in_words(answer: Callable[[bytes], bytes]) -> None:
    async with (
        udp_peer(answer) as peer,
        serving(SnmpConnector(), local(peer.port), SYSTEM) as served,
    ):
        assert served.task is not None
        with pytest.raises(ConnectionError, match=r"snmp .*127\.0\.0\.1:\d+: "):
            await asyncio.wait_for(asyncio.shield(served.task), 20)
        assert peer.answered
    assert served.readings == []


@in_loop
async def test_a_table_that_never_ends_is_read_in_part() -> None:
    """An agent that answers each request with the same row, in the request's own frame."""

    def answer(request: bytes) -> bytes:
        # version, community, then the PDU: request id, two numbers, one OID with NULL
        body = request[2:]
        at = body.index(b"\xa5") if b"\xa5" in body else body.index(b"\xa0")
        head, pdu = body[:at], body[at + 2 :]
        number = pdu[: 2 + pdu[1]]
        oid = bytes.fromhex("060a2b060102010202010201")
        bind = b"\x30" + bytes([len(oid) + 3]) + oid + b"\x02\x01\x05"
        binds = b"\x30" + bytes([len(bind)]) + bind
        inner = number + b"\x02\x01\0\x02\x01\0" + binds
        whole = head + b"\xa2" + bytes([len(inner)]) + inner
        return b"\x30" + bytes([len(whole)]) + whole

    text = (
        "CREATE SOURCE s (port INTEGER FROM '@index', v INTEGER FROM '1.3.6.1.2.1.2.2.1.2') "
        "WITH (connector = 'snmp', interval = '1 h')"
    )
    async with (
        udp_peer(answer) as peer,
        serving(SnmpConnector(), local(peer.port), text) as served,
    ):
        await until(lambda: bool(served.readings))
    assert served.rows == [(1, 5)]
    assert served.problems == ["1.3.6.1.2.1.2.2.1.2: the agent does not count on; read in part"]
