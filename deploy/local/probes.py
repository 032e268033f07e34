"""Ports of this machine, and whether a service can be used already."""

import asyncio
import contextlib
import socket
from urllib.parse import urlsplit

import httpx
import psutil

from broker.free_ports import HOST, free_port
from streamsql.errors import DeploymentError

_SECONDS = 5.0


def is_free(port: int) -> bool:
    """Return True if the loopback port is free now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def holder(port: int) -> str:
    """Return who listens on a port, as far as we may see it, e.g. "pid 12 (python)"."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN
            local = connection.laddr
            if listens and local and local.port == port and connection.pid:
                return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})"
    return "another process"


def require_free(port: int, option: str) -> None:
    """Do nothing when the port is free.

    Raises:
        DeploymentError: It is not; says who holds it and which option changes it.
    """
    if not is_free(port):
        raise DeploymentError(
            f"port {port} is in use by {holder(port)}",
            hint=f"stop that process, or choose another port: {option} {free_port()}",
        )


async def accepts(port: int, host: str = HOST) -> bool:
    """Probe a port of loopback: True if a service accepts connections."""
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        await writer.wait_closed()
        return True
    return False


async def require_reachable(url: str) -> None:
    """Do nothing when a broker accepts connections.

    Raises:
        DeploymentError: The address is none, or nobody answers there.
    """
    parts, port = urlsplit(url), None
    with contextlib.suppress(ValueError):
        port = parts.port or (8883 if parts.scheme == "mqtts" else 1883)
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or port is None:
        raise DeploymentError(
            f"--broker {url!r} is not a broker address",
            hint="write mqtt://host:1883, or embedded or mosquitto to start one",
        )
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, port), _SECONDS)
    except (OSError, TimeoutError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "no answer"
        raise DeploymentError(
            f"no broker answers at {parts.hostname}:{port} ({reason})",
            hint="start it first, or omit --broker to start one",
        ) from error
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def console_answers(client: httpx.AsyncClient) -> bool:
    """Whether the console answers."""
    with contextlib.suppress(httpx.HTTPError):
        return (await client.get("/api/health")).is_success
    return False


async def sites_online(client: httpx.AsyncClient) -> set[str]:
    """Return the sites that the console sees online; none when it does not answer."""
    with contextlib.suppress(httpx.HTTPError, ValueError, KeyError, TypeError):
        sites = (await client.get("/api/sites")).json()
        return {str(site["site"]) for site in sites if site["online"]}
    return set()
