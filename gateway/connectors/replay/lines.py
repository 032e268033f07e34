"""The lines of a recording, gzip or plain, each bounded and named by its number."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from streamsql.errors import DeploymentError

MAX_LINE = 1_000_000
"""Bytes of one line."""

Problem = Callable[[str], None]
"""Is told of a bad line, which is then left out."""


def open_text(path: Path) -> IO[str]:
    """Open a text file, gzip or plain.

    Raises:
        DeploymentError: It cannot be opened.
    """
    with _explained(path):
        if _is_packed(path):
            return gzip.open(path, "rt", encoding="utf-8", newline="")
        return path.open("r", encoding="utf-8", newline="")


def numbered_lines(path: Path, problem: Problem) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text) of every line; nothing is held but one line.

    Args:
        path: The file.
        problem: Told of lines that are no UTF-8 text.

    Raises:
        DeploymentError: The file cannot be read on: it is damaged, or a line is too long.
    """
    number = 0
    with _explained(path), gzip.open(path) if _is_packed(path) else path.open("rb") as file:
        while True:
            number += 1
            try:
                line = file.readline(MAX_LINE + 1)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise DeploymentError(
                    f"{path} line {number}: the compressed data is broken: {error}"
                ) from error
            if not line:
                return
            if len(line) > MAX_LINE:
                raise DeploymentError(f"{path} line {number}: longer than {MAX_LINE} bytes")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                problem(f"{path} line {number}: not UTF-8 text at byte {error.start}")
            else:
                yield number, text


def refuse(complaint: str) -> None:
    """Be the `Problem` that stops at the first bad line.

    Raises:
        DeploymentError: Always.
    """
    raise DeploymentError(complaint)


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DeploymentError(f"cannot read recording {path}: {error.strerror or error}") from error
