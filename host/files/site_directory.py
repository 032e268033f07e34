"""A service's data directory: locked while its process lives, with its epoch."""

from pathlib import Path
from types import TracebackType

from host.files.epoch_file import next_epoch
from host.files.file_lock import FileLock
from streamsql.errors import DeploymentError


class SiteDirectory:
    """The data directory of one service, locked while the process lives.

    Raises:
        DeploymentError: Another process uses the directory, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path / "lock")
            is_ours = self._lock.take()
        except OSError as error:
            raise DeploymentError(
                f"cannot use data directory {path}: {error.strerror}",
                hint="check that it exists, is writable, and that the disk is not full",
            ) from error
        if not is_ours:
            raise DeploymentError(
                f"data directory {path} is in use by another process of the same site",
                hint="stop that process, or give this site its own data directory",
            )

    def next_epoch(self, above: int = 0) -> int:
        """Return a new epoch, kept in the directory; see `next_epoch`."""
        return next_epoch(self.path / "epoch", above)

    def close(self) -> None:
        """Unlock the directory."""
        self._lock.release()

    def __enter__(self) -> "SiteDirectory":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()
