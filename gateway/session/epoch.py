"""Epochs: a number that grows with every start of a site, kept on disk."""

import errno
import fcntl
import logging
import os
from pathlib import Path
from types import TracebackType
from typing import IO

from streamsql.errors import DeploymentError

log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)

MAX_EPOCH = 2**53
"""Larger ones are no epochs of ours; every JSON reader can hold this."""


class SiteDirectory:
    """The data directory of one site, locked while the process lives.

    The lock is the operating system's, so it is gone with the process, however that ends.

    Raises:
        DeploymentError: Another process uses the directory, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] = (path / "lock").open("a+", encoding="ascii")
        except OSError as error:
            raise DeploymentError(
                f"cannot use data directory {path}: {error.strerror}",
                hint="check that it exists, is writable, and that the disk is not full",
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise DeploymentError(
                f"data directory {path} is in use by another process of the same site",
                hint="stop that process, or give this site a data directory of its own",
            ) from None

    def next_epoch(self, above: int = 0) -> int:
        """Return a number larger than at any earlier start, and remember it on disk.

        A file that cannot be understood counts as none, and on a full disk the number is not
        remembered: the site then learns its last epoch from the broker, which keeps its state.

        Args:
            above: Be larger than this too.

        Raises:
            DeploymentError: It cannot be written.
        """
        file = self.path / "epoch"
        epoch = above + 1
        try:
            epoch = max(_number(file), above) + 1
            temporary = file.with_suffix(".new")
            with temporary.open("wb") as new:
                new.write(b"%d\n" % epoch)
                new.flush()
                os.fsync(new.fileno())
            os.replace(temporary, file)  # noqa: PTH105  (atomic, also over an existing file)
        except OSError as error:
            if error.errno not in _FULL:
                raise DeploymentError(
                    f"cannot remember the epoch in {self.path}: {error.strerror}",
                    hint="check that this process may write there",
                ) from error
            log.warning("cannot remember epoch %d in %s: %s", epoch, self.path, error.strerror)
        return epoch

    def close(self) -> None:
        """Give the directory free."""
        self._lock.close()

    def __enter__(self) -> "SiteDirectory":
        """Return itself."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Give the directory free."""
        self.close()


def _number(file: Path) -> int:
    """Return the epoch in a file, 0 when there is none."""
    if not file.exists():
        return 0
    with file.open("rb") as old:
        content = old.read(40).strip()
    return int(content) if content.isdigit() and int(content) < MAX_EPOCH else 0
