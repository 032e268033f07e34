"""Read a calendar's text from a file or an http(s) address, bounded in size and time."""

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import TypeVar

from gateway.connectors.own_thread import OwnThread
from streamsql.errors import DeploymentError

MAX_BYTES = 10_000_000
FETCH_SECONDS = 20.0
_CHUNK = 65_536


T = TypeVar("T")


def fetch(location: str, *, seconds: float = FETCH_SECONDS, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a calendar.

    Args:
        location: Path of a file, or an http(s) address.
        seconds: How long an address may take altogether.
        limit: Largest size in bytes.

    Raises:
        DeploymentError: It cannot be read in time, or is too large.
    """
    if location.lower().startswith(("http:", "https:")):
        return _from_address(location, seconds, limit)
    return _from_file(Path(location), limit)


def _from_file(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise DeploymentError(f"cannot read calendar {path}: {error.strerror}") from error
    except ValueError as error:
        raise DeploymentError(f"cannot read calendar {str(path)!r:.200}: {error}") from error
    return _bounded(content, str(path), limit)


def _from_address(address: str, seconds: float, limit: int) -> bytes:
    deadline = time.monotonic() + seconds
    content = b""
    try:
        with urllib.request.urlopen(address, timeout=seconds) as answer:  # noqa: S310
            while len(content) <= limit and (chunk := answer.read1(_CHUNK)):
                content += chunk
                if time.monotonic() > deadline:
                    raise DeploymentError(f"calendar {address} took longer than {seconds:g} s")
            missing = answer.length if len(content) <= limit else 0
    except (OSError, HTTPException, ValueError) as error:
        raise DeploymentError(f"cannot fetch calendar {address}: {error}") from error
    if missing:
        raise DeploymentError(f"cannot fetch calendar {address}: {missing} bytes are missing")
    return _bounded(content, address, limit)


def _bounded(content: bytes, name: str, limit: int) -> bytes:
    if len(content) > limit:
        raise DeploymentError(f"calendar {name} is larger than {limit} bytes")
    return content


async def in_background(call: Callable[[], T], name: str) -> T:
    """Run a call in a thread of its own and return what it returns, or raise what it raises.

    A wait that is cancelled discards the result.
    """
    # Not asyncio.to_thread: its threads are waited for when the process stops, and a server that
    # never finishes its answer must not delay that.
    thread = OwnThread(name)
    try:
        return await thread.run(call)
    finally:
        thread.end(lambda: None)
