"""Exposure: whether others than the users of this machine reach a console, and its needs then."""

import ipaddress
import shlex
from collections.abc import Sequence
from pathlib import Path

from streamsql.errors import DeploymentError


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address that is listened on."""
    if host.strip().lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip().strip("[]")).is_loopback
    except ValueError:
        return False


def proxies(text: str) -> tuple[str, ...]:
    """Return the addresses and networks of setting trusted_proxy.

    Raises:
        DeploymentError: One is none, or means everybody.
    """
    found = tuple(filter(None, (part.strip() for part in text.split(","))))
    for part in found:
        try:
            network = ipaddress.ip_network(part, strict=False)
        except ValueError:
            network = None
        if network is None or not network.prefixlen:
            raise DeploymentError(
                f"setting trusted_proxy names {part!r:.80}",
                hint="write the addresses from which the reverse proxy connects, with commas: "
                "127.0.0.1, 10.0.0.0/24",
            )
    return found


def check_exposure(
    host: str, trusted: Sequence[str], *, has_accounts: bool, has_tls: bool, config: Path | None
) -> None:
    """Refuse a console that others reach and anybody could use, or whose passwords they could read.

    Args:
        host: Address that is listened on.
        trusted: Reverse proxies, which bring people from elsewhere and speak TLS with them.
        has_accounts: Whether anybody can sign in.
        has_tls: Whether the console itself speaks TLS.
        config: The settings file, for the command that is named.

    Raises:
        DeploymentError: Something is missing; the hint names the commands that make it.
    """
    if is_loopback(host) and not trusted:
        return
    missing, commands = [], []
    if not has_accounts:
        missing.append("accounts")
        place = f" --config {shlex.quote(str(config))}" if config is not None else ""
        commands.append(f"pando user add NAME --role administrator{place}")
    if not has_tls and not trusted:
        missing.append("TLS")
        commands.append(
            "pando ca issue console, then the settings tls_cert and tls_key; or name the address "
            "of a reverse proxy that speaks TLS in the setting trusted_proxy"
        )
    if missing:
        reached = f"{host} is reached by other machines" if not is_loopback(host) else ""
        raise DeploymentError(
            f"the console does not start without {' and '.join(missing)}: "
            f"{reached or 'a reverse proxy brings people from other machines'}",
            hint="; ".join(commands) + ("; or set host to 127.0.0.1" if reached else ""),
            code="exposed_console",
        )
