"""Which values are read in one request: those whose registers are adjacent."""

from collections.abc import Iterable
from typing import NamedTuple

from gateway.connectors.modbus.register_address import RegisterAddress, Table

MAX_REGISTERS = 125
"""In one request, by the protocol."""
MAX_BITS = 2_000


class Block(NamedTuple):
    """Cells that are read in one request, and the values in them."""

    table: Table
    first: int
    size: int
    addresses: tuple[RegisterAddress, ...]

    def __str__(self) -> str:
        """Return the cells, for texts: `holding:100..103`."""
        last = self.first + self.size - 1
        return f"{self.table}:{self.first}" + (f"..{last}" if self.size > 1 else "")

    def alone(self) -> "tuple[Block, ...]":
        """Return a block for each value."""
        return tuple(Block(a.table, a.first, a.size, (a,)) for a in self.addresses)


def blocks_of(addresses: Iterable[RegisterAddress], gap: int = 0) -> tuple[Block, ...]:
    """Return the requests that read all values.

    Args:
        addresses: Of the values.
        gap: How many cells that hold none of them may be read, too, to save a request.
    """
    found: list[Block] = []
    for address in sorted(addresses, key=lambda a: (a.table, a.first, a.size)):
        last = found[-1] if found else None
        end = address.first + address.size
        most = MAX_BITS if address.table.has_bits else MAX_REGISTERS
        if (
            last is not None
            and last.table == address.table
            and address.first <= last.first + last.size + gap
            and end - last.first <= most
        ):
            size = max(last.size, end - last.first)
            found[-1] = Block(last.table, last.first, size, (*last.addresses, address))
        else:
            found.append(Block(address.table, address.first, address.size, (address,)))
    return tuple(found)
