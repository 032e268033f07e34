"""Replace a file as a whole: after a crash it is the old one or the new one."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from static_engine.sources.errors import TableError

MAX_BYTES = 16_000_000
"""A file that is changed is held in memory."""


def read_whole(file: Path, where: str) -> bytes:
    """Return the contents of a file that may be replaced.

    Raises:
        TableError: It may not be written, or is too large.
    """
    try:
        status = file.stat()
        if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(
            file, os.W_OK
        ):
            raise _failed(f"{where} is read-only", "let the static engine's user write it")
        if status.st_nlink > 1:
            raise _failed(
                f"{where} has {status.st_nlink} names (hard links), of which one would change",
                "make it a file of its own",
            )
        if status.st_size > MAX_BYTES:
            raise _failed(
                f"{where} has {status.st_size} bytes, at most {MAX_BYTES} are changed here",
                "change it with a tool of its own, or keep the table in a database",
            )
        return file.read_bytes()
    except OSError as error:
        raise _failed(f"{where} cannot be read: {error.strerror or error}") from error


def replace_whole(file: Path, content: bytes, check: Callable[[Path], None], where: str) -> None:
    """Write a file beside another one and put it in its place, with its owner and permissions.

    Args:
        file: What is replaced.
        content: What it will hold.
        check: Looks at the new file before it counts; what it raises leaves the old one there.
        where: The file, for errors.

    Raises:
        TableError: It cannot be written; the old one stays.
    """
    temporary = file.with_name(f".{file.name}.new")
    try:
        status = file.stat()
        temporary.unlink(missing_ok=True)  # what a killed process has left
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as new:
            new.write(content)
            own = os.fstat(number)
            if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
                os.fchown(number, status.st_uid, status.st_gid)
            os.fchmod(number, stat.S_IMODE(status.st_mode))
            new.flush()
            os.fsync(number)
        check(temporary)
        temporary.replace(file)
    except OSError as error:
        raise _failed(
            f"{where} cannot be written: {error.strerror or error}; it is as it was",
            "check the free space, and that the static engine may write in its folder",
        ) from error
    finally:
        _remove(temporary)
    _sync_folder(file.parent)


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError:
        return  # a folder that may not be written: then there is none, or it is overwritten later


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _failed(message: str, hint: str = "") -> TableError:
    return TableError(message, hint=hint, code="change_failed")
