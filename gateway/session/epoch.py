"""Epochs: a number that grows with every start of a site, kept on disk."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO

from streamsql.errors import DeploymentError


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

    def next_epoch(self) -> int:
        """Return a number larger than at any earlier start, and remember it on disk.

        Raises:
            DeploymentError: It cannot be written.
        """
        file = self.path / "epoch"
        try:
            text = file.read_text(encoding="ascii").strip() if file.exists() else "0"
            epoch = (int(text) if text.isdigit() else 0) + 1
            temporary = file.with_suffix(".new")
            temporary.write_text(f"{epoch}\n", encoding="ascii")
            os.replace(temporary, file)  # noqa: PTH105  (atomic, also over an existing file)
        except OSError as error:
            raise DeploymentError(
                f"cannot remember the epoch in {self.path}: {error.strerror}",
                hint="free some disk space and start again",
            ) from error
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
