"""Replace a file as a whole: a reader finds the old content or the new one, also after a crash."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

log = logging.getLogger(__name__)

PUBLIC = 0o644
PRIVATE = 0o600


def replace_file(
    file: Path,
    content: bytes | Callable[[BinaryIO], object],
    *,
    mode: int | None = None,
    check: Callable[[Path], object] | None = None,
    temporary: Path | None = None,
) -> bool:
    """Write a file next to another one, sync it and rename it over the other.

    One process at a time may replace a file: hold a lock on its folder. The file need not exist.

    Args:
        file: What is replaced.
        content: All of it, or what writes all of it.
        mode: Permissions, set before the content is written; None leaves them to the umask.
        check: Called with the new file before it takes the other's place; what it raises leaves
            the old one there.
        temporary: The new file until then, in the same folder. By default its name begins with a
            dot, so that no pattern for tables finds it. A killed process leaves it behind and the
            next one overwrites it: give a fixed name where those of files are ever new.

    Returns:
        Whether a power cut cannot bring back the old content; otherwise the log says why.

    Raises:
        OSError: It cannot be written; the old content stays.
    """
    new = temporary or file.with_name(f".{file.name}.new")
    try:
        new.unlink(missing_ok=True)
        number = os.open(
            new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else PRIVATE
        )
        with os.fdopen(number, "wb") as output:
            if mode is not None:
                os.fchmod(number, mode)
            if isinstance(content, bytes):
                output.write(content)
            else:
                content(output)
            output.flush()
            os.fsync(number)
        if check is not None:
            check(new)
        new.replace(file)
    except BaseException:
        remove_file(new)
        raise
    return _sync_folder(file.parent)


def settle_file(written: Path, file: Path) -> bool:
    """Sync a file that is written and rename it over another; return whether the rename lasts.

    Raises:
        OSError: It cannot be; the other file stays.
    """
    with written.open("rb") as content:
        os.fsync(content.fileno())
    written.replace(file)
    return _sync_folder(file.parent)


def remove_file(file: Path) -> None:
    """Remove a file if it is there; the log says why one cannot be removed."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s cannot be removed: %s", file, error.strerror)


def _sync_folder(folder: Path) -> bool:
    """Let a rename in a folder outlive a power cut; return whether it does."""
    try:
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        log.warning("a new file in %s may be lost if power fails now: %s", folder, error)
        return False
    return True
