"""Options of endpoints and sources of the SNMP connector."""

from typing import Literal

import msgspec

from gateway.connectors.options import Seconds
from gateway.connectors.polling import MAX_INTERVAL, MIN_INTERVAL
from host.files.settings_file import require

Authentication = Literal["MD5", "SHA", "SHA224", "SHA256", "SHA384", "SHA512"]
Privacy = Literal["DES", "AES", "AES192", "AES256"]
_SHORTEST_KEY = 8


class SnmpEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An agent.

    Attributes:
        host: Name or IPv4 address.
        port: Of UDP.
        version: "2c" with a community, "3" with a user.
        community: It crosses the network as it is.
        username: Of version 3.
        auth: How messages are authenticated, with `auth_key`; without a key they are not.
        priv: How messages are encrypted, with `priv_key`; without a key they are not.
        context: Of version 3: which of several devices behind one agent.
        timeout: How long an answer may take.
        retries: How often a request without an answer is sent again.
    """

    host: str
    port: int = 161
    version: Literal["2c", "3"] = "2c"
    community: str = "public"
    username: str = ""
    auth: Authentication = "SHA"
    auth_key: str = ""
    priv: Privacy = "AES"
    priv_key: str = ""
    context: str = ""
    timeout: Seconds = Seconds(2)
    retries: int = 2

    def __post_init__(self) -> None:
        require(0 < len(self.host) <= 253, "host is a name or an IPv4 address")
        require(0 < self.port < 65_536, "port must be between 1 and 65535")
        require(0.05 <= self.timeout <= 60, "timeout must be between 0.05 s and 60 s")
        require(0 <= self.retries <= 10, "retries must be between 0 and 10")
        require(self.version != "3" or bool(self.username), "version 3 needs a username")
        for name, key in (("auth_key", self.auth_key), ("priv_key", self.priv_key)):
            require(not key or len(key) >= _SHORTEST_KEY, f"{name} has at least 8 characters")
        require(bool(self.auth_key) or not self.priv_key, "priv_key needs auth_key")


class SnmpSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of a source: how often an agent is polled.

    Attributes:
        interval: From one read to the next one.
    """

    interval: Seconds = Seconds(30)

    def __post_init__(self) -> None:
        require(
            MIN_INTERVAL <= self.interval <= MAX_INTERVAL,
            "interval must be between 0.1 s and 1 day",
        )
