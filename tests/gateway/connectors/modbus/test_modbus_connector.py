"""The Modbus connector against pymodbus' server, and against peers that misbehave."""

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable

import pytest
from pymodbus.simulator import SimData, SimDevice
from pymodbus.simulator.simutils import DataType

from gateway.connectors.modbus.modbus_connector import ModbusConnector
from tests.gateway.connectors.modbus.meters import (
    Asked,
    answering,
    device,
    float32,
    modbus,
    registers,
)
from tests.gateway.connectors.serving import serving, until

METER = """
CREATE SOURCE meter (
  unit    INTEGER FROM '@unit',
  voltage DOUBLE  FROM 'holding:100' FORMAT 'float32' UNIT 'V',
  energy  DOUBLE  FROM 'holding:102' FORMAT 'uint32 swap' IN 'Wh' UNIT 'kWh',
  celsius DOUBLE  FROM 'input:5' FORMAT 'int16' SCALE 0.1,
  pump    BOOLEAN FROM 'coil:3',
  KEY (unit)
) WITH (connector = 'modbus', endpoint = 'home', unit = '{units}', interval = '{interval}')
"""


def meter(units: str = "1", interval: str = "100 ms") -> str:
    return METER.format(units=units, interval=interval)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())


def whole_device(unit: int, asked: Asked | None = None) -> SimDevice:
    return device(
        unit,
        holding=[registers(100, *float32(230.5), 34_464, 1)],
        inputs=[registers(5, 65_536 - 125)],
        coils=[SimData(0, values=[False, False, False, True], datatype=DataType.BITS)],
        asked=asked,
    )


def local(port: int) -> dict[str, object]:
    return {"host": "127.0.0.1", "port": port, "timeout": 0.3}


def test_units_become_rows_and_adjacent_registers_one_request() -> None:
    async def scenario() -> None:
        asked: Asked = []
        async with (
            modbus(whole_device(1, asked), whole_device(2, asked)) as port,
            serving(ModbusConnector(), local(port), meter("1..2", "1 h")) as served,
        ):
            await until(lambda: len(served.readings) >= 2)
        assert served.rows == [(1, 230.5, 100.0, -12.5, True), (2, 230.5, 100.0, -12.5, True)]
        assert served.problems == []
        # One request each for holding registers, input registers and coils, of each unit.
        assert sorted(asked) == [
            (unit, *request) for unit in (1, 2) for request in ((1, 3, 1), (3, 100, 4), (4, 5, 1))
        ]

    run(scenario)


def test_a_missing_register_is_named_and_its_neighbours_are_read() -> None:
    async def scenario() -> None:
        part = device(1, holding=[registers(100, *float32(49.9))])
        async with modbus(part) as port, serving(ModbusConnector(), local(port), meter()) as served:
            await until(lambda: len(served.readings) >= 2)
        assert served.rows[0] == (1, pytest.approx(49.9, abs=1e-5), None, None, None)
        assert set(served.problems) == {
            f"unit 1, {place}: the device has no such address (exception 2)"
            for place in ("holding:102..103", "input:5", "coil:3")
        }

    run(scenario)


def test_a_silent_unit_does_not_stop_the_others() -> None:
    async def scenario() -> None:
        def answer(request: bytes) -> bytes:
            number, _, _, unit, _, _, count = struct.unpack(">HHHBBHH", request[:12])
            if unit == 1:
                return b""
            words = struct.pack(f">{count}H", *range(count))
            return struct.pack(">HHHBBB", number, 0, 3 + len(words), unit, 3, len(words)) + words

        text = (
            "CREATE SOURCE s (unit INTEGER FROM '@unit', a INTEGER FROM 'holding:0', "
            "b INTEGER FROM 'holding:1', KEY (unit)) "
            "WITH (connector = 'modbus', unit = '1, 2', interval = '100 ms')"
        )
        async with (
            answering(answer) as port,
            serving(ModbusConnector(), local(port), text) as served,
        ):
            await until(lambda: len(served.readings) >= 3)
        assert set(served.rows) == {(2, 0, 1)}
        assert served.problems == [
            "unit 1 sends no valid answer to holding:0..1 within 0.3 s; it is asked again in 30 s"
        ]

    run(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _: b"", id="nothing"),
        pytest.param(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
        pytest.param(lambda _: b"\xff" * 5_000, id="noise"),
        pytest.param(lambda _: b"\0" * 5_000, id="zeros"),
        pytest.param(lambda r: r[:4] + b"\0\3" + r[6:7] + b"\3\0", id="no registers"),
        pytest.param(lambda r: r[:4] + b"\0\5" + r[6:7] + b"\3\2\0\1", id="too few registers"),
        pytest.param(lambda r: r[:4] + b"\0\5" + r[6:7] + b"\3\xff\0\1", id="a wrong count"),
        pytest.param(lambda r: r[:4] + b"\0\4" + b"\x63\3\1\0", id="another unit"),
        pytest.param(lambda r: b"\x77\x77" + r[2:], id="another transaction"),
        pytest.param(lambda r: r, id="an echo"),
    ],
)
def test_garbage_ends_the_connection_in_words_and_gives_no_row(
    answer: Callable[[bytes], bytes],
) -> None:
    async def scenario() -> None:
        text = (
            "CREATE SOURCE s (a INTEGER FROM 'holding:0' FORMAT 'uint32') "
            "WITH (connector = 'modbus', unit = '1..5', interval = '100 ms')"
        )
        async with (
            answering(answer) as port,
            serving(ModbusConnector(), local(port), text) as served,
        ):
            assert served.task is not None
            with pytest.raises(ConnectionError, match=r"modbus 127\.0\.0\.1:\d+: "):
                await asyncio.wait_for(asyncio.shield(served.task), 10)
        assert served.readings == []

    run(scenario)


def test_values_that_are_no_numbers_are_null_with_a_reason() -> None:
    async def scenario() -> None:
        broken = device(1, holding=[registers(100, 0x7FC0, 0, 5, 0)])
        text = (
            "CREATE SOURCE s (nan DOUBLE FROM 'holding:100' FORMAT 'float32', "
            "mode TEXT FROM 'holding:102' VALUES ('1' = 'on'), n INTEGER FROM 'holding:103') "
            "WITH (connector = 'modbus', interval = '1 h')"
        )
        async with modbus(broken) as port, serving(ModbusConnector(), local(port), text) as served:
            await until(lambda: bool(served.readings))
        assert served.rows == [(None, None, 0)]
        assert len(served.problems) == 2, served.problems

    run(scenario)


def test_a_device_that_goes_ends_the_connector_and_comes_back() -> None:
    async def scenario() -> None:
        async with contextlib.AsyncExitStack() as stack:
            port = await stack.enter_async_context(modbus(whole_device(1)))
            async with serving(ModbusConnector(), local(port), meter()) as served:
                await until(lambda: bool(served.readings))
                await stack.aclose()
                assert served.task is not None
                with pytest.raises(ConnectionError, match="the connection was lost"):
                    await asyncio.wait_for(asyncio.shield(served.task), 10)
        async with serving(ModbusConnector(), local(port), meter()) as served:
            assert served.task is not None
            with pytest.raises(ConnectionError, match="no connection; check address"):
                await asyncio.wait_for(asyncio.shield(served.task), 10)
        async with (
            modbus(whole_device(1), port=port),
            serving(ModbusConnector(), local(port), meter()) as served,
        ):
            await until(lambda: bool(served.readings))

    run(scenario)


def test_a_wrong_address_leaves_out_its_source_only() -> None:
    async def scenario() -> None:
        wrong = "CREATE SOURCE w (x INTEGER FROM 'register:1') WITH (connector = 'modbus')"
        async with (
            modbus(whole_device(1)) as port,
            serving(ModbusConnector(), local(port), f"{wrong}; {meter()}") as served,
        ):
            await until(lambda: bool(served.readings))
        assert served.problems == [
            "column x: FROM 'register:1' is no address: write 'holding:100', 'input:5', 'coil:3' "
            "or 'discrete:1', counted from 0"
        ]

    run(scenario)


def test_nothing_is_read_while_nothing_is_kept() -> None:
    async def scenario() -> None:
        async with (
            modbus(whole_device(1)) as port,
            serving(ModbusConnector(), local(port), meter(), keeping=False) as served,
        ):
            await until(lambda: bool(served.readings))
            await asyncio.sleep(0.5)  # time passes: it would have read four times
            assert len(served.readings) == 1
            served.may_keep.set()
            await until(lambda: len(served.readings) >= 3)

    run(scenario)


def test_it_stops_in_the_middle_of_its_requests() -> None:
    """Among so many answers some cancellations come together with one."""

    async def scenario() -> None:
        text = (
            "CREATE SOURCE s (unit INTEGER FROM '@unit', a INTEGER FROM 'holding:0') "
            "WITH (connector = 'modbus', unit = '1..255', interval = '100 ms')"
        )
        async with answering(lambda r: r[:4] + b"\0\5" + r[6:7] + b"\3\2\0\1") as port:
            for _ in range(30):
                async with serving(ModbusConnector(), local(port), text) as served:
                    await until(lambda: bool(served.readings))

    run(scenario)
