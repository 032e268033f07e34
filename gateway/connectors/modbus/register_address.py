"""Address of a value at a Modbus device, and the number type of its registers."""

import re
import struct
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

_ADDRESS = re.compile(r"([a-z]+):(\d{1,5})", re.ASCII)
_MAX_REGISTER = 65_535


class Table(StrEnum):
    """The four tables of a device."""

    HOLDING = "holding"
    INPUT = "input"
    COIL = "coil"
    DISCRETE = "discrete"

    @property
    def has_bits(self) -> bool:
        """Whether its cells are bits, not registers of 16."""
        return self in {Table.COIL, Table.DISCRETE}


class RegisterType(StrEnum):
    """Number type of registers; the high byte and, without `swap`, the high word come first."""

    UINT16 = "uint16"
    INT16 = "int16"
    UINT32 = "uint32"
    INT32 = "int32"
    UINT64 = "uint64"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"


_CODES = {
    RegisterType.UINT16: ">H",
    RegisterType.INT16: ">h",
    RegisterType.UINT32: ">I",
    RegisterType.INT32: ">i",
    RegisterType.UINT64: ">Q",
    RegisterType.INT64: ">q",
    RegisterType.FLOAT32: ">f",
    RegisterType.FLOAT64: ">d",
}
_TYPES = ", ".join(RegisterType)


class RegisterAddress(NamedTuple):
    """One value of a device.

    Attributes:
        text: Of FROM.
        table: Where it is.
        first: Address of its first cell, from 0, as requests carry it.
        size: Number of its cells.
        code: Of `struct`; empty for a bit.
        swapped: Whether the low word comes first.
    """

    text: str
    table: Table
    first: int
    size: int
    code: str = ""
    swapped: bool = False

    def value(self, cells: Sequence[int]) -> int | float | bool:
        """Return the value in its cells."""
        if not self.code:
            return bool(cells[0])
        words = cells[::-1] if self.swapped else cells
        value: int | float = struct.unpack(self.code, struct.pack(f">{len(words)}H", *words))[0]
        return value


def parse_address(text: str, form: str) -> RegisterAddress:
    """Return the value that FROM and FORMAT mean.

    Raises:
        ValueError: One of them is wrong.

    Examples:
        >>> parse_address("holding:100", "uint32 swap").value([1, 2])
        131073
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or match[1] not in set(Table):
        raise ValueError(
            f"FROM {text!r:.60} is no address: write 'holding:100', 'input:5', 'coil:3' or "
            "'discrete:1', counted from 0"
        )
    table, first = Table(match[1]), int(match[2])
    if table.has_bits:
        if form:
            raise ValueError(f"FORMAT is for registers; {text} is one bit")
        return RegisterAddress(text, table, _checked(text, first, 1), 1)
    name, _, order = form.partition(" ")
    name = name or RegisterType.UINT16
    if name not in set(RegisterType) or order not in {"", "swap"}:
        raise ValueError(
            f"FORMAT {form!r:.60} is no type of registers: {_TYPES}; the low word first: "
            "'uint32 swap'"
        )
    code = _CODES[RegisterType(name)]
    count = struct.calcsize(code) // 2
    return RegisterAddress(text, table, _checked(text, first, count), count, code, order == "swap")


def _checked(text: str, first: int, count: int) -> int:
    if first + count - 1 > _MAX_REGISTER:
        raise ValueError(f"FROM {text!r} reaches beyond the last address, {_MAX_REGISTER}")
    return first
