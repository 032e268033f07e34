"""The Modbus connector: registers that are polled to readings, a row for each unit."""

import asyncio
from collections.abc import Mapping

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.modbus.modbus_line import ModbusLine, RefusedError, SilentError
from gateway.connectors.modbus.modbus_options import ModbusEndpoint, ModbusSource
from gateway.connectors.modbus.read_blocks import Block, blocks_of
from gateway.connectors.modbus.register_address import RegisterAddress, parse_address
from gateway.connectors.polling import Poll, poll_until_lost
from gateway.connectors.reading import Reading
from gateway.connectors.record_columns import record_columns

SILENT_SECONDS = 30.0
"""For so long a unit that was silent is not asked, so that the others do not wait for it."""


class ModbusConnector:
    """Serves one device, or the units behind one gateway to a bus."""

    kind = "modbus"
    endpoint_options = ModbusEndpoint
    source_options = ModbusSource

    async def run(self, context: ConnectorContext) -> None:
        """Poll the device until the connection is lost.

        Raises:
            ConnectionError: It was lost, or could not be made.
        """
        line = ModbusLine(context.endpoint_as(ModbusEndpoint))
        polls = []
        for source in context.sources:
            try:
                polled = PolledUnits(source, line)
            except ValueError as error:
                source.problem(str(error))
            else:
                polls.append(Poll(polled.options.interval, polled.read))
        try:
            await line.open()
            await poll_until_lost(context, polls, line.until_lost())
        finally:
            line.close()


class PolledUnits:
    """A source, and what of which units it reads.

    Raises:
        ValueError: An address of a column is wrong; names the column.
    """

    def __init__(self, source: DeclaredSource, line: ModbusLine) -> None:
        self.options = source.options_as(ModbusSource)
        self._source = source
        self._line = line
        blocks = blocks_of(_addresses(source), self.options.gap)
        self._blocks = dict.fromkeys(self.options.units(), blocks)
        self._silent_until: dict[int, float] = {}

    async def read(self) -> list[Reading]:
        """Read all units one after the other; return a row for each that answers."""
        found: list[Reading] = []
        now = asyncio.get_running_loop().time()
        for unit in self._blocks:
            if self._silent_until.get(unit, 0.0) > now:
                continue
            values = await self._values(unit)
            if values:
                found += self._source.read_record(values, unit=unit)
        return found

    async def _values(self, unit: int) -> Mapping[str, object]:
        values: dict[str, object] = {}
        kept: list[Block] = []
        waiting = list(reversed(self._blocks[unit]))
        while waiting:
            block = waiting.pop()
            try:
                cells = await self._line.read(unit, block)
            except RefusedError as error:
                if error.in_parts and len(block.addresses) > 1:
                    waiting += reversed(block.alone())
                    continue
                self._source.problem(f"unit {unit}, {block}: {error}")
            except SilentError as error:
                self._silent_until[unit] = asyncio.get_running_loop().time() + SILENT_SECONDS
                self._source.problem(f"{error}; it is asked again in {SILENT_SECONDS:g} s")
                return {}
            else:
                values |= {
                    address.text: address.value(cells[start : start + address.size])
                    for address in block.addresses
                    for start in (address.first - block.first,)
                }
            kept.append(block)
        self._blocks[unit] = tuple(kept)
        return values


def _addresses(source: DeclaredSource) -> list[RegisterAddress]:
    found: dict[str, RegisterAddress] = {}
    for name, text, form in record_columns(source.definition):
        try:
            address = parse_address(text, form)
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from None
        if found.setdefault(text, address) != address:
            raise ValueError(f"column {name}: FROM {text!r} has another FORMAT in another column")
    return list(found.values())
