"""How others find a running broker, and how one learns why it cannot start."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from types import TracebackType

import psutil

from host.files.atomic_file import replace_file


class Presence:
    """While entered, `DIR/broker.json` tells process id and address; without a DIR does nothing.

    Raises:
        ValueError: The folder cannot be written.
    """

    def __init__(self, folder: Path | None, host: str, port: int) -> None:
        self._file = folder / "broker.json" if folder is not None else None
        self._content = {"pid": os.getpid(), "url": f"mqtt://{host}:{port}"}

    def __enter__(self) -> None:
        """Write the file."""
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._file, (json.dumps(self._content) + "\n").encode())
        except OSError as error:
            message = f"cannot write {self._file}: {error.strerror}; choose another --data folder"
            raise ValueError(message) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def port_is_taken(host: str, port: int, error: OSError) -> str:
    """Explain why listening failed: what holds the port and what to do."""
    if error.errno == errno.EACCES:
        return f"no permission to listen on port {port}; choose a port above 1023 with --port"
    if error.errno != errno.EADDRINUSE:
        return f"cannot listen on {host}:{port}: {error.strerror or error}"
    return (
        f"port {port} is taken by {_holder(port)}. Stop that process, choose another port "
        "with --port, or, if it is a broker, use it (pando up --broker "
        f"mqtt://{host}:{port})"
    )


def _holder(port: int) -> str:
    """Name the process that listens on a port, as far as the system lets us see."""
    unseen = "a process of another user"
    try:
        pids = {
            connection.pid
            for connection in psutil.net_connections(kind="tcp")
            if connection.status == psutil.CONN_LISTEN
            and connection.laddr
            and connection.laddr.port == port
        }
    except psutil.AccessDenied:
        return unseen
    for pid in sorted(pid for pid in pids if pid is not None):
        try:
            command = " ".join(psutil.Process(pid).cmdline())[:120]
        except psutil.Error:
            return f"process {pid}"
        return f"process {pid} ({command})"
    return unseen
