"""Options of endpoints and sources of the BACnet connector."""

import re
from typing import Literal

import msgspec

from gateway.connectors.options import Seconds
from gateway.connectors.polling import MAX_INTERVAL, MIN_INTERVAL
from host.files.settings_file import require

_IPV4 = r"\d{1,3}(?:\.\d{1,3}){3}"
_ADDRESS = re.compile(rf"{_IPV4}(?::\d{{1,5}})?", re.ASCII)
_LOCAL = re.compile(rf"{_IPV4}/\d{{1,2}}(?::\d{{1,5}})?", re.ASCII)
_MAX_INSTANCE = 4_194_302


class BacnetEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A device.

    Attributes:
        address: `192.0.2.70`, or with the port behind a colon; 47808 without one.
        local: The gateway's own address in that network with the length of its mask, and a port of
            its own for each endpoint: `192.0.2.5/24:47809`.
        instance: Of the device that the gateway is; another one in the whole network.
        timeout: How long an answer may take, before one more try.
    """

    address: str
    local: str
    instance: int = 4_194_000
    timeout: Seconds = Seconds(3)

    def __post_init__(self) -> None:
        require(
            _ADDRESS.fullmatch(self.address) is not None, "address must be like 192.0.2.70:47808"
        )
        require(_LOCAL.fullmatch(self.local) is not None, "local must be like 192.0.2.5/24:47809")
        require(0 <= self.instance <= _MAX_INSTANCE, "instance must be between 0 and 4194302")
        require(0.1 <= self.timeout <= 60, "timeout must be between 0.1 s and 60 s")


class BacnetSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of a source.

    Attributes:
        interval: From one read of all properties to the next one.
        cov: Whether changes of present values are subscribed to, too.
    """

    interval: Seconds = Seconds(60)
    cov: Literal["yes", "no"] = "yes"

    def __post_init__(self) -> None:
        require(
            MIN_INTERVAL <= self.interval <= MAX_INTERVAL,
            "interval must be between 0.1 s and 1 day",
        )


class BacnetBrowse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of a listing: the device whose objects it shows.

    Attributes:
        device: Instance of the device, where it does not tell it.
    """

    device: int | None = None

    def __post_init__(self) -> None:
        require(
            self.device is None or 0 <= self.device <= _MAX_INSTANCE,
            "device must be between 0 and 4194302",
        )
