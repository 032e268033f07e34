"""The file by which others find a running broker, and the reason why one cannot start."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from host.files.atomic_file import replace_file


@contextmanager
def presence(folder: Path | None, url: str) -> Iterator[None]:
    """Keep process id and address in `DIR/broker.json` while entered; no DIR: do nothing.

    Raises:
        ValueError: The folder cannot be written.
    """
    if folder is None:
        yield
        return
    file = folder / "broker.json"
    content = {"pid": os.getpid(), "url": url}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(file, (json.dumps(content) + "\n").encode())
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}; choose another --data folder"
        raise ValueError(message) from error
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


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
