"""A lock that is gone with its process, however that ends."""

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import IO

_ATTEMPTS = 10
_PAUSE_SECONDS = 0.02


class FileLock:
    """An exclusive lock on a file, of one process at a time; the kernel releases it at its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    @property
    def held(self) -> bool:
        """Whether we have it."""
        return self._file is not None

    def take(self, *, sign: bool = False) -> bool:
        """Take the lock; return False when another process has it. `sign` it for `owner_of`.

        Raises:
            OSError: The file cannot be opened, or not be written.
        """
        for _ in range(_ATTEMPTS):
            file = self.path.open("a+", encoding="ascii")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                # Another one has it, or only asks (`is_locked`): that takes a moment.
                time.sleep(_PAUSE_SECONDS)
                continue
            with contextlib.suppress(FileNotFoundError):
                # Who had it before may have removed the file: a lock on that is worth nothing.
                if self.path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                    if sign:
                        _sign(file)
                    self._file = file
                    return True
            file.close()
        return False

    def release(self, *, remove: bool = False) -> None:
        """Release the lock; `remove` its file too."""
        if self._file is None:
            return
        if remove:
            self.path.unlink(missing_ok=True)
        self._file.close()
        self._file = None


def _sign(file: IO[str]) -> None:
    try:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
    except OSError:
        with contextlib.suppress(OSError):  # what could not be written is tried again here
            file.close()
        raise


def is_locked(path: Path) -> bool:
    """Whether a process has the lock, as far as one may look."""
    try:
        with path.open("r", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def owner_of(path: Path) -> int | None:
    """Return the id of the process that signed a lock, None when it cannot be read."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
