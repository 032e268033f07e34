"""The lock of a data directory, and services that a killed federation left running."""

import contextlib
import json
from pathlib import Path

import psutil

from host.files.file_lock import FileLock, owner_of
from streamsql.errors import DeploymentError


class Claim:
    """A lock on a data directory.

    The file holds the process id of who has it, and is there only while somebody does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path)
        self._made_folder = False

    @property
    def held(self) -> bool:
        """Whether we have it."""
        return self._lock.held

    def take(self) -> None:
        """Take the lock.

        Raises:
            DeploymentError: The directory cannot be used, or another federation runs there.
        """
        folder = self.path.parent
        try:
            self._made_folder = not folder.exists()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_ours = self._lock.take(sign=True)
        except OSError as error:
            raise DeploymentError(
                f"cannot use data directory {folder}: {error.strerror}",
                hint="choose another one with --data",
            ) from error
        if not is_ours:
            owner = owner_of(self.path)
            named = "" if owner is None else f" (pid {owner})"
            raise DeploymentError(
                f"another federation{named} runs on data directory {folder}",
                hint="stop it, or choose another directory with --data",
            )

    def release(self) -> None:
        """Release the lock, and remove the directory if we made it and it is empty."""
        if not self._lock.held:
            return
        self._lock.release(remove=True)
        if self._made_folder:
            with contextlib.suppress(OSError):  # it is not empty
                self.path.parent.rmdir()


def leftovers(processes: Path) -> list[psutil.Process]:
    """Return the services of a killed federation that still run.

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
    """End processes, with SIGKILL those that do not end in time."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=seconds)
