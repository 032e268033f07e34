"""The names by which browsers may ask a console."""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit


class Hosts:
    """The names by which a console may be asked.

    A page of somebody else's can have its own name resolve to our address (DNS rebinding); its
    requests then come from the user's browser, and only the Host header tells.

    Args:
        bound: The address that is listened on.
        allowed: Further names or addresses, without port.
    """

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        self._names = {"localhost", *map(_plain, (bound, *allowed))}
        address = _address(_plain(bound))
        # An address written out is no name that somebody could let point here. Behind forwarded
        # ports (containers) it is none of our own, so all are taken where all are listened on.
        self._any_address = address is not None and address.is_unspecified

    def allow(self, host: str) -> bool:
        """Whether the value of a Host header, with or without port, names this console."""
        name = host_name(host)
        address = _address(name)
        if address is not None and (self._any_address or address.is_loopback):
            return True
        return bool(name) and name in self._names


def host_name(host: str) -> str:
    """Return the host of `host:port` in lower case; empty where it is malformed.

    Examples:
        >>> host_name("LocalHost.:80"), host_name("[::1]:8420"), host_name("a@b"), host_name("a:x")
        ('localhost', '::1', '', '')
    """
    if any(sign in host for sign in "@/?#\\, \t"):
        return ""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # refuses what is no number
    except ValueError:
        return ""
    return _plain(parts.hostname or "")


def _plain(name: str) -> str:
    return name.strip().strip("[]").rstrip(".").lower()


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
