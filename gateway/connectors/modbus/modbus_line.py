"""One Modbus TCP connection: blocks of registers of its units."""

import asyncio
import logging
from collections.abc import Sequence

from pymodbus.client import AsyncModbusTcpClient
from pymodbus.exceptions import ModbusException

from gateway.connectors.lost_cancellation import raise_if_cancelled
from gateway.connectors.modbus.modbus_options import ModbusEndpoint
from gateway.connectors.modbus.read_blocks import Block
from gateway.connectors.modbus.register_address import Table

MAX_UNANSWERED = 3
"""Requests in a row without an answer, after which the connection counts as lost."""

_REASONS = {
    1: "the device does not know this function",
    2: "the device has no such address",
    3: "the device refuses the length of the request",
    4: "the device failed",
    5: "the device is still at work",
    6: "the device is busy",
    8: "the device's memory is damaged",
    10: "the gateway has no path to the unit",
    11: "the unit does not answer the gateway",
}
_SPLITTABLE = frozenset({2, 3})

# What it logs of each lost answer is a problem in our words already.
logging.getLogger("pymodbus.logging").setLevel(logging.CRITICAL)


class RefusedError(Exception):
    """The device answers with an exception.

    Attributes:
        in_parts: Whether its parts may be read though the whole is not.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"{_REASONS.get(code, 'the device refuses')} (exception {code})")
        self.in_parts = code in _SPLITTABLE


class SilentError(Exception):
    """The unit gives no valid answer in time."""


class ModbusLine:
    """A connection; when it is lost, `read` raises ConnectionError."""

    def __init__(self, endpoint: ModbusEndpoint) -> None:
        self._name = f"modbus {endpoint.host}:{endpoint.port}"
        self._timeout = float(endpoint.timeout)
        self._unanswered = 0
        self._lost = asyncio.Event()
        self._client = AsyncModbusTcpClient(
            endpoint.host,
            port=endpoint.port,
            timeout=self._timeout,
            retries=0,
            reconnect_delay=0,  # the gateway makes another connection
            trace_connect=self._connected,
        )
        self._readers = {
            Table.HOLDING: self._client.read_holding_registers,
            Table.INPUT: self._client.read_input_registers,
            Table.COIL: self._client.read_coils,
            Table.DISCRETE: self._client.read_discrete_inputs,
        }

    async def open(self) -> None:
        """Connect.

        Raises:
            ConnectionError: Nothing accepts the connection.
        """
        if not await self._client.connect():
            raise ConnectionError(
                f"{self._name}: no connection; check address and port, and whether the device "
                "takes another client"
            )

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    async def until_lost(self) -> None:
        """Wait until the connection is lost.

        Raises:
            ConnectionError: It is.
        """
        await self._lost.wait()
        raise ConnectionError(f"{self._name}: the connection was lost")

    async def read(self, unit: int, block: Block) -> Sequence[int]:
        """Return the cells of a block.

        Raises:
            ConnectionError: The connection is lost, or nothing answers any more.
            RefusedError: The device answers with an exception.
            SilentError: This unit gives no valid answer.
        """
        try:
            answer = await self._readers[block.table](block.first, count=block.size, device_id=unit)
        except ModbusException as error:
            if not self._client.connected:
                raise ConnectionError(f"{self._name}: the connection was lost") from None
            raise self._unanswered_by(unit, block) from error
        raise_if_cancelled()
        if answer.isError():
            self._unanswered = 0
            raise RefusedError(int(getattr(answer, "exception_code", 0)))
        cells = answer.bits if block.table.has_bits else answer.registers
        if len(cells) < block.size:
            raise self._unanswered_by(unit, block)
        self._unanswered = 0
        return cells

    def _unanswered_by(self, unit: int, block: Block) -> Exception:
        self._unanswered += 1
        text = f"unit {unit} sends no valid answer to {block} within {self._timeout:g} s"
        if self._unanswered >= MAX_UNANSWERED:
            return ConnectionError(f"{self._name}: {text}; nothing else answers")
        return SilentError(text)

    def _connected(self, connected: bool) -> None:
        if not connected:
            self._lost.set()
