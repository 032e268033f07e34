"""The OPC UA connector against asyncua's server."""

import asyncio
import contextlib

import pytest
from asyncua import ua

from gateway.connectors.opcua.opcua_connector import OpcuaConnector
from tests.gateway.connectors.opcua.machines import Machine, OneUser, machine
from tests.gateway.connectors.serving import in_loop, serving, until

PRESS = """
CREATE SOURCE press (
  temperature DOUBLE FROM 'ns=2;s=Press.Temperature' UNIT 'Cel',
  running BOOLEAN FROM 'ns=2;s=Press.Running',
  job TEXT FROM 'ns=2;s=Press.Job'
) WITH (connector = 'opcua', endpoint = 'home', interval = '100 ms')
"""
VALUES = {"Press.Temperature": 21.5, "Press.Running": False, "Press.Job": "none"}


def endpoint(at: Machine, **more: object) -> dict[str, object]:
    return {"url": at.url, "timeout": 2, **more}


@in_loop
async def test_changes_become_rows_of_all_nodes() -> None:
    async with (
        machine(VALUES) as press,
        serving(OpcuaConnector(), endpoint(press), PRESS) as served,
    ):
        await until(lambda: (21.5, False, "none") in served.rows)
        await press.set("Press.Temperature", 180.25)
        await until(lambda: (180.25, False, "none") in served.rows)
        await press.set("Press.Running", True)
        await until(lambda: (180.25, True, "none") in served.rows)
    assert served.problems == []


@in_loop
async def test_the_time_is_that_of_the_server() -> None:
    timed = PRESS.replace("job TEXT FROM 'ns=2;s=Press.Job'", "ts TIMESTAMP")
    async with (
        machine(VALUES) as press,
        serving(OpcuaConnector(), endpoint(press), timed) as served,
    ):
        await until(lambda: bool(served.readings))
        value = ua.DataValue(ua.Variant(30.0), SourceTimestamp=ua.DateTime(2100, 1, 1))
        await press.set("Press.Temperature", value)
        await until(lambda: served.rows[-1][0] == 30.0)
    assert served.rows[-1][2] == 4_102_444_800_000_000


@in_loop
async def test_a_missing_node_and_a_broken_sensor_are_named_and_the_others_read() -> None:
    part = {"Press.Temperature": 21.5, "Press.Job": "none"}
    async with machine(part) as press, serving(OpcuaConnector(), endpoint(press), PRESS) as served:
        await until(lambda: (21.5, None, "none") in served.rows)
        assert served.problems == ["node ns=2;s=Press.Running: BadNodeIdUnknown"]
        await press.fail("Press.Temperature")
        await until(lambda: (None, None, "none") in served.rows)
        assert served.problems[1:] == ["node ns=2;s=Press.Temperature: BadSensorFailure"]


@in_loop
async def test_values_of_other_types_are_null_with_a_reason() -> None:
    odd = {"Press.Temperature": "hot", "Press.Running": [True, False], "Press.Job": b"\xff"}
    async with machine(odd) as press, serving(OpcuaConnector(), endpoint(press), PRESS) as served:
        await until(lambda: bool(served.readings))
        await press.set("Press.Temperature", "21.5")
        await until(lambda: (21.5, None, "ff") in served.rows)
    assert len({text.split(":")[0] for text in served.problems}) == 2, served.problems


@in_loop
async def test_users_are_let_in_or_refused_in_words_without_the_password() -> None:
    async with machine(VALUES, users=OneUser()) as press:
        known = endpoint(press, username="pando", password="secret")
        async with serving(OpcuaConnector(), known, PRESS) as served:
            await until(lambda: bool(served.readings))
        for wrong in ({}, {"username": "pando", "password": "hunter2"}):
            async with serving(OpcuaConnector(), endpoint(press, **wrong), PRESS) as served:
                assert served.task is not None
                with pytest.raises(
                    ConnectionError, match=r"opcua opc\.tcp://.*(?i:user)"
                ) as caught:
                    await asyncio.wait_for(asyncio.shield(served.task), 20)
                assert "hunter2" not in str(caught.value)


@in_loop
async def test_a_server_that_goes_ends_the_connector_and_comes_back() -> None:
    async with contextlib.AsyncExitStack() as stack:
        press = await stack.enter_async_context(machine(VALUES))
        async with serving(OpcuaConnector(), endpoint(press), PRESS) as served:
            await until(lambda: bool(served.readings))
            await stack.aclose()
            assert served.task is not None
            with pytest.raises(ConnectionError, match=r"opcua opc\.tcp://127"):
                await asyncio.wait_for(asyncio.shield(served.task), 20)
    async with serving(OpcuaConnector(), endpoint(press), PRESS) as served:
        assert served.task is not None
        with pytest.raises(ConnectionError, match="nothing listens there"):
            await asyncio.wait_for(asyncio.shield(served.task), 20)
    port = int(press.url.split(":")[2].split("/")[0])
    async with (
        machine(VALUES, port=port) as again,
        serving(OpcuaConnector(), endpoint(again), PRESS) as served,
    ):
        await until(lambda: bool(served.readings))


@pytest.mark.parametrize(
    "noise", [b"", b"HTTP/1.1 400 Bad\r\n\r\n", b"\xff" * 5_000, b"\0" * 5_000]
)
@in_loop
async def test_a_peer_that_speaks_something_else_ends_the_connector_in_words(noise: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while await reader.read(1_000):
                writer.write(noise)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"opc.tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with serving(OpcuaConnector(), {"url": url, "timeout": 0.5}, PRESS) as served:
            assert served.task is not None
            with pytest.raises(ConnectionError, match=r"opcua opc\.tcp://127"):
                await asyncio.wait_for(asyncio.shield(served.task), 20)
    assert served.readings == []


@in_loop
async def test_a_wrong_address_leaves_out_its_source_only() -> None:
    wrong = "CREATE SOURCE w (x INTEGER FROM 'Press.Job') WITH (connector = 'opcua')"
    text = f"{wrong}; {PRESS}"
    async with machine(VALUES) as press, serving(OpcuaConnector(), endpoint(press), text) as served:
        await until(lambda: bool(served.readings))
    assert served.problems == [
        "column x: FROM 'Press.Job' is no node id, such as 'ns=2;s=Line.Speed' or 'ns=3;i=1001'"
    ]
