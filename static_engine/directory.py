"""The data folder of a static engine: locked while the process lives, remembers the epoch."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO

from streamsql.errors import DeploymentError


class DataDirectory:
    """A folder that one process at a time uses.

    The lock is the operating system's, so it goes with the process, however that ends.

    Raises:
        DeploymentError: Another process uses it, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] = (path / "lock").open("a+", encoding="ascii")
        except OSError as error:
            raise DeploymentError(
                f"cannot use data_dir {path}: {error.strerror}",
                hint="check that it is writable and that the disk is not full",
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise DeploymentError(
                f"data_dir {path} is in use by another static engine",
                hint="stop that one, or give this one a folder of its own",
            ) from None

    def close(self) -> None:
        """Give the folder free."""
        self._lock.close()

    def __enter__(self) -> "DataDirectory":
        """Return itself."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Give the folder free."""
        self.close()


def next_epoch(file: Path) -> int:
    """Return a number larger than at any earlier start, and remember it on disk.

    Raises:
        DeploymentError: It cannot be read or written, or holds something else.
    """
    try:
        text = file.read_text(encoding="ascii").strip() if file.exists() else "0"
        epoch = int(text) + 1
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(file.name + ".new")
        with temporary.open("w", encoding="ascii") as output:
            output.write(f"{epoch}\n")
            output.flush()
            os.fsync(output.fileno())
        temporary.replace(file)
    except ValueError as error:
        # Starting again at 1 would make every receiver ignore us.
        raise DeploymentError(
            f"epoch file {file} holds no number",
            hint="write a number larger than any epoch used before into it",
        ) from error
    except OSError as error:
        raise DeploymentError(
            f"cannot remember the epoch in {file}: {error.strerror}",
            hint="free some disk space and start again",
        ) from error
    return epoch
