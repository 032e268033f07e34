"""Options of endpoints and sources of the Modbus connector."""

import re

import msgspec

from gateway.connectors.options import Seconds
from gateway.connectors.polling import MAX_INTERVAL, MIN_INTERVAL
from host.files.settings_file import require

_UNITS = re.compile(r"(\d{1,3})(?:\s*\.\.\s*(\d{1,3}))?", re.ASCII)
_MAX_UNIT = 255


class ModbusEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A device, or a gateway to a bus of devices.

    Attributes:
        host: Name or IP address.
        port: Of TCP.
        timeout: How long an answer may take.
    """

    host: str
    port: int = 502
    timeout: Seconds = Seconds(2)

    def __post_init__(self) -> None:
        require(0 < len(self.host) <= 253, "host is a name or an IP address")
        require(0 < self.port < 65_536, "port must be between 1 and 65535")
        require(0.05 <= self.timeout <= 60, "timeout must be between 0.05 s and 60 s")


class ModbusSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of a source: units, and when they are read.

    Attributes:
        unit: Ids with commas between them, and ranges: `1, 2, 5..9`. Each unit is a row.
        interval: From one read to the next one.
        gap: Registers that nobody asked for and that may be read, too, to save a request.
    """

    unit: str = "1"
    interval: Seconds = Seconds(10)
    gap: int = 0

    def __post_init__(self) -> None:
        self.units()
        require(
            MIN_INTERVAL <= self.interval <= MAX_INTERVAL,
            "interval must be between 0.1 s and 1 day",
        )
        require(0 <= self.gap <= 100, "gap must be between 0 and 100 registers")

    def units(self) -> tuple[int, ...]:
        """Return the ids of `unit`, each once, in their order.

        Raises:
            ValueError: It is malformed.
        """
        found: dict[int, None] = {}
        for part in self.unit.split(","):
            match = _UNITS.fullmatch(part.strip())
            require(match is not None, "unit is a list such as '1, 2, 5..9'")
            assert match is not None  # noqa: S101
            first = int(match[1])
            last = int(match[2] or first)
            require(first <= last <= _MAX_UNIT, "units are 0 to 255, the lower one first")
            found |= dict.fromkeys(range(first, last + 1))
        return tuple(found)
