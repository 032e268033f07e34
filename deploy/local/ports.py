"""Ports of this machine: which are free, and who holds one that is not."""

import contextlib
import socket

import psutil

from broker.free_ports import HOST, free_port
from streamsql.errors import DeploymentError


def is_free(port: int) -> bool:
    """Whether somebody could listen on a loopback port now."""
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
