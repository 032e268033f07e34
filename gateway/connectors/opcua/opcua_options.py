"""Options of endpoints and sources of the OPC UA connector."""

from urllib.parse import urlsplit

import msgspec

from gateway.connectors.options import Seconds
from gateway.connectors.polling import MAX_INTERVAL, MIN_INTERVAL
from host.files.settings_file import require


class OpcuaEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A server.

    Attributes:
        url: `opc.tcp://host:4840/path`.
        username: Empty: anonymous.
        password: Of the user; encrypted where the server asks for it.
        timeout: How long an answer may take.
    """

    url: str
    username: str = ""
    password: str = ""
    timeout: Seconds = Seconds(4)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        require(
            parts.scheme == "opc.tcp" and bool(parts.hostname) and "@" not in self.url,
            "url must be like opc.tcp://host:4840/path, without user and password",
        )
        require(0.05 <= self.timeout <= 60, "timeout must be between 0.05 s and 60 s")
        require(bool(self.username) or not self.password, "a password needs a username")


class OpcuaSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of a source: how often the server reports changes.

    Attributes:
        interval: The server collects changes for so long; the newest value of each node counts.
    """

    interval: Seconds = Seconds(1)

    def __post_init__(self) -> None:
        require(
            MIN_INTERVAL <= self.interval <= MAX_INTERVAL,
            "interval must be between 0.1 s and 1 day",
        )
