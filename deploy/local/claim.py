"""The right to run on a data directory, and what a federation that was killed left there."""

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import IO

import psutil

from streamsql.errors import DeploymentError

_ATTEMPTS = 10
_PAUSE_SECONDS = 0.02


class Claim:
    """A lock on a data directory; the kernel gives it up with the process, however that ends.

    The file holds the process id of who has it, and is there only while somebody does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None
        self._made_folder = False

    @property
    def held(self) -> bool:
        """Whether we have it."""
        return self._file is not None

    def take(self) -> None:
        """Take the lock.

        Raises:
            DeploymentError: The directory cannot be used, or another federation runs there.
        """
        folder = self.path.parent
        try:
            self._made_folder = not folder.exists()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = self._locked()
        except OSError as error:
            raise DeploymentError(
                f"cannot use data directory {folder}: {error.strerror}",
                hint="choose another one with --data",
            ) from error
        if self._file is None:
            raise DeploymentError(
                f"another federation{_owner(self.path)} runs on data directory {folder}",
                hint="stop it, or choose another directory with --data",
            )
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Give the lock back; an empty directory that we made goes too."""
        if self._file is None:
            return
        self.path.unlink(missing_ok=True)
        self._file.close()
        self._file = None
        if self._made_folder:
            with contextlib.suppress(OSError):  # it is not empty
                self.path.parent.rmdir()

    def _locked(self) -> IO[str] | None:
        """Return the locked file, or None when somebody else has it.

        Who had it before removes the file when done; a lock on a removed file is worth nothing.
        Who only asks whether somebody has it (`is_claimed` in `ui.cli.federations`) holds it for a
        moment.
        """
        for _ in range(_ATTEMPTS):
            file = self.path.open("a+", encoding="ascii")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                time.sleep(_PAUSE_SECONDS)
                continue
            with contextlib.suppress(FileNotFoundError):
                if self.path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                    return file
            file.close()
        return None


def leftovers(processes: Path) -> list[psutil.Process]:
    """Return services of a federation that was killed which have not ended yet.

    Args:
        processes: The file of their process ids and commands. A process counts only if it still
            runs that command: ids are used again.
    """
    try:
        listed = json.loads(processes.read_text(encoding="utf-8"))
        known = [(int(facts["pid"]), list(facts["command"])) for facts in listed.values()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []
    found = []
    for pid, command in known:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.cmdline() == command:
                found.append(process)
    return found


def end_leftovers(processes: list[psutil.Process], seconds: float) -> None:
    """Wait for processes to end, and help those that do not."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=seconds)


def _owner(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return f" (pid {int(path.read_text(encoding='ascii'))})"
    return ""
