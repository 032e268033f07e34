"""Logs of the services of `pando up` in files: bounded, rotated, read by `pando logs`."""

import logging
import os
import time
from collections import deque
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

from streamsql.errors import DeploymentError

MAX_BYTES = 4_000_000
"""Of a file; so many older files are kept beside it:"""
OLDER_FILES = 3
MAX_LINES = 100_000
"""That `--lines` may ask for."""
POLL_SECONDS = 0.2


class ServiceLogs:
    """Appends lines to a file per service."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, RotatingFileHandler] = {}
        self.problem = ""

    def write(self, service: str, line: str) -> None:
        """Append a line; a full disk loses lines of logs, not the service."""
        try:
            self._file(service).emit(logging.makeLogRecord({"msg": line}))
        except OSError as error:
            self.problem = f"cannot write the log of {service}: {error.strerror}"

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _file(self, service: str) -> RotatingFileHandler:
        if service not in self._files:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._files[service] = _Bounded(
                log_file(self._folder, service),
                maxBytes=MAX_BYTES,
                backupCount=OLDER_FILES,
                encoding="utf-8",
                errors="replace",
            )
        return self._files[service]


class _Bounded(RotatingFileHandler):
    """A rotated file whose errors reach whoever writes."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, ARG002 - its name
        raise  # noqa: PLE0704 - called while an error is handled


def log_file(folder: Path, service: str) -> Path:
    """Return the file that a service's newest lines are in."""
    return folder / f"{service}.log"


def last_lines(folder: Path, service: str, count: int) -> list[str]:
    """Return a service's newest lines, oldest first, older files included.

    Raises:
        DeploymentError: There is no log of that service, or `count` is out of range.
    """
    if not 0 <= count <= MAX_LINES:
        raise DeploymentError(f"--lines {count}; write a number from 0 to {MAX_LINES}")
    newest = log_file(folder, service)
    if not newest.exists():
        known = sorted(path.stem for path in folder.glob("*.log"))
        raise DeploymentError(
            f"there is no log of {service!r:.80} in {folder}",
            hint=f"one of: {', '.join(known)}" if known else "start a federation with `pando up`",
        )
    lines: deque[str] = deque(maxlen=count)
    for number in range(OLDER_FILES, -1, -1):
        path = newest.with_name(f"{newest.name}.{number}") if number else newest
        if path.exists():
            with path.open(encoding="utf-8", errors="replace") as file:
                lines.extend(line.rstrip("\n") for line in file)
    return list(lines)


def new_lines(folder: Path, service: str) -> Iterator[str | None]:
    """Yield lines that are appended from now on, for ever; None while there is none.

    A file that is rotated meanwhile is read to its end before the new one.
    """
    path = log_file(folder, service)
    file = path.open(encoding="utf-8", errors="replace")
    file.seek(0, 2)
    pending = ""
    try:
        while True:
            piece = file.readline()
            if piece:
                pending += piece
                if pending.endswith("\n"):
                    yield pending.rstrip("\n")
                    pending = ""
                continue
            if path.exists() and not os.path.samestat(path.stat(), os.fstat(file.fileno())):
                file.close()
                file = path.open(encoding="utf-8", errors="replace")
                continue
            yield None
    finally:
        file.close()


def follow(folder: Path, service: str) -> Iterator[str]:
    """Yield lines as they are appended, until interrupted."""
    for line in new_lines(folder, service):
        if line is None:
            time.sleep(POLL_SECONDS)
        else:
            yield line
