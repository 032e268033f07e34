"""A password at the broker that changes while a service runs: a file with the newest one first.

While it changes the file has two lines. The broker takes one of them; when it takes the first, the
second is removed.
"""

import logging
import threading
from pathlib import Path

from host.files.atomic_file import PRIVATE, replace_file
from streamsql.errors import DeploymentError

log = logging.getLogger(__name__)

MAX_BYTES = 4_096
MAX_PASSWORDS = 2


class PasswordFile:
    """Passwords of one client; of its methods `replace` may be called on another thread.

    Args:
        path: Of the file, read for its owner only.

    Raises:
        DeploymentError: It cannot be read, or has not one or two lines.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._passwords = _read(path)
        self._turn = 0

    def next(self) -> str:
        """Return the password to try now."""
        with self._lock:
            return self._passwords[self._turn % len(self._passwords)]

    def refused(self) -> None:
        """Note that the broker does not take the one that was tried; try the other.

        A file that somebody else has written meanwhile, as when a gateway joins again, is read.
        """
        with self._lock:
            try:
                found = _read(self._path)
            except DeploymentError as error:
                log.warning("%s", error.message)
                found = self._passwords
            if found != self._passwords:
                self._passwords, self._turn = found, 0
            else:
                self._turn = (self._turn + 1) % len(self._passwords)

    def accepted(self) -> None:
        """Note that the broker takes the one that was tried; the new one replaces the old."""
        with self._lock:
            if self._turn or len(self._passwords) == 1:
                return
            self._passwords = self._passwords[:1]
            try:
                self._write()
            except OSError as error:
                log.warning("%s keeps an old password: %s", self._path, error.strerror)

    def replace(self, password: str) -> None:
        """Add a new password, which the broker will take soon; the present one stays good.

        Raises:
            ValueError: It is empty or has more than one line.
            OSError: The file cannot be written.
        """
        if not password or not password.isprintable():
            raise ValueError("a password is one line of printable characters")
        with self._lock:
            present = self._passwords[self._turn % len(self._passwords)]
            self._passwords = (password, present)
            self._write()
            self._turn = 0  # the broker cuts us off when it takes it

    def _write(self) -> None:
        replace_file(
            self._path, "".join(f"{each}\n" for each in self._passwords).encode(), mode=PRIVATE
        )


def password_file(path: str) -> PasswordFile | None:
    """Return the passwords of a setting; None where it names no file.

    Raises:
        DeploymentError: The file cannot be used.
    """
    return PasswordFile(Path(path)) if path else None


def _read(path: Path) -> tuple[str, ...]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        lines = tuple(filter(None, content.decode().splitlines()))
    except OSError as error:
        raise DeploymentError(f"cannot read password file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DeploymentError(f"password file {path} is not text in UTF-8") from error
    if len(content) > MAX_BYTES or not 1 <= len(lines) <= MAX_PASSWORDS:
        raise DeploymentError(
            f"password file {path}: it has to have one line, the password at the broker"
        )
    return lines
