"""Change a file of a table: it is replaced as a whole and keeps owner and permissions."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from host.files.atomic_file import PRIVATE, replace_file
from static_engine.changing.change_checks import failed

MAX_BYTES = 16_000_000
"""A file that is changed is held in memory."""


def check_may_write(file: Path, where: str) -> os.stat_result:
    """Check that a file may be written, and return its status.

    The permissions count for the superuser, too: a removed permission is meant.

    Raises:
        TableError: It may not.
    """
    try:
        status = file.stat()
    except OSError as error:
        raise failed(f"{where} cannot be read: {error.strerror or error}") from error
    if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(
        file, os.W_OK
    ):
        raise failed(f"{where} is read-only", "make it writable for the static engine's user")
    return status


def read_whole(file: Path, where: str) -> bytes:
    """Return the contents of a file that may be replaced.

    Raises:
        TableError: It may not be written, or is too large.
    """
    status = check_may_write(file, where)
    if status.st_nlink > 1:
        raise failed(
            f"{where} has {status.st_nlink} names (hard links), but the change would "
            "affect only one of them",
            "replace it by a separate file",
        )
    if status.st_size > MAX_BYTES:
        raise failed(
            f"{where} has {status.st_size} bytes; the max for changes is {MAX_BYTES}",
            "change it with another tool, or store the table in a database",
        )
    try:
        return file.read_bytes()
    except OSError as error:
        raise failed(f"{where} cannot be read: {error.strerror or error}") from error


def replace_whole(
    file: Path, write: Callable[[BinaryIO], object], check: Callable[[Path], None], where: str
) -> None:
    """Write a file next to another one and replace that, keeping its owner and permissions.

    Args:
        file: What is replaced.
        write: Writes what it will hold.
        check: Looks at the new file before it counts; what it raises leaves the old one there.
        where: The file, for errors.

    Raises:
        TableError: It cannot be written; the old one stays.
    """
    if file.is_symlink():  # of a folder's file; of a table that is one file it was followed
        raise failed(
            f"{where} is a symbolic link: its target would stay unchanged",
            "move the file itself into the folder, or declare a table over the target",
        )
    _write(file, file, write, check, where)


def add_file(
    file: Path,
    like: Path,
    write: Callable[[BinaryIO], object],
    check: Callable[[Path], None],
    where: str,
) -> None:
    """Write a new file, which is there as a whole or not at all.

    Args:
        file: The new one, in the folder of `like`.
        like: An existing file, whose owner and permissions it gets.
        write: See `replace_whole`.
        check: See `replace_whole`.
        where: The new file, for errors.

    Raises:
        TableError: It cannot be written; then there is none.
    """
    _write(file, like, write, check, where)


def _write(
    file: Path,
    like: Path,
    write: Callable[[BinaryIO], object],
    check: Callable[[Path], None],
    where: str,
) -> None:
    def write_alike(new: BinaryIO) -> None:
        write(new)
        _liken(new.fileno(), like)

    # Named after the old file: that name is used again after a crash, those of new files never.
    temporary = like.with_name(f".{like.name}.new")
    try:
        replace_file(file, write_alike, mode=PRIVATE, check=check, temporary=temporary)
    except OSError as error:
        raise failed(
            f"{where} cannot be written: {error.strerror or error}; it is unchanged",
            "check the free space, and that the static engine may write in its folder",
        ) from error


def _liken(number: int, like: Path) -> None:
    """Give an open file the owner, permissions and attributes of another one."""
    own, status = os.fstat(number), like.stat()
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(number, status.st_uid, status.st_gid)
    os.fchmod(number, stat.S_IMODE(status.st_mode))
    _copy_attributes(like, number)


def _copy_attributes(like: Path, number: int) -> None:
    """Copy access lists and a user's own attributes; of the rest the system takes care.

    Without its access list the file's group would get the permissions of everybody in the list.
    """
    if not hasattr(os, "listxattr"):  # not on this system
        return
    try:
        names = os.listxattr(like)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return
        raise
    for name in names:
        if name == "system.posix_acl_access" or name.startswith("user."):
            os.setxattr(number, name, os.getxattr(like, name))
