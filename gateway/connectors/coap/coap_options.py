"""Options of endpoints and sources of the CoAP connector."""

import re
from urllib.parse import urlsplit

import msgspec

from gateway.connectors.options import Seconds
from gateway.connectors.polling import MAX_INTERVAL
from host.files.settings_file import require

MAX_PATHS = 100
_PATH = re.compile(r"/?[A-Za-z0-9._~!$&'()*+;=:@%/?-]{1,500}")


class CoapEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A device.

    Attributes:
        url: `coap://host:5683`.
        timeout: How long an answer may take, with the repeats that a lost packet needs.
    """

    url: str
    timeout: Seconds = Seconds(10)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        require(
            parts.scheme == "coap"
            and bool(parts.hostname)
            and parts.path in {"", "/"}
            and not parts.query,
            "url must be like coap://host:5683; the path is an option of the source",
        )
        require(0.1 <= self.timeout <= 120, "timeout must be between 0.1 s and 120 s")


class CoapSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which resources are observed.

    Attributes:
        path: Of resources, with commas between them.
        interval: At least so often a resource is asked anew: it may have lost the observer, or know
            none.
    """

    path: str
    interval: Seconds = Seconds(60)

    def __post_init__(self) -> None:
        paths = self.paths()
        require(0 < len(paths) <= MAX_PATHS, f"path holds 1 to {MAX_PATHS} paths")
        require(
            all(_PATH.fullmatch(path) is not None for path in paths),
            "path is a list such as 'sensors/temperature, sensors/door'",
        )
        require(1 <= self.interval <= MAX_INTERVAL, "interval must be between 1 s and 1 day")

    def paths(self) -> tuple[str, ...]:
        """Return the paths, each once, without the slash in front."""
        parts = (part.strip().removeprefix("/") for part in self.path.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))
