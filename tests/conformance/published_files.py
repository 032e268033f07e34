"""SQLite's published sqllogictest files, as an old version of an npm package carries them.

No file of theirs is in this repository: npm, which knows its registry, fetches the package by name
and version; its hash is ours. Nothing of it is run.
"""

import contextlib
import gzip
import hashlib
import os
import shutil
import signal
import subprocess
import tarfile
import zlib
from pathlib import Path

PACKAGE = "alasql@0.1.10"
SHA256 = "f00d56242ffc5a89120fe191e1b41297bb974480b53952ceaf73e650b069b068"
FOLDER = "package/test-sql/sqllogic/test/"
SECONDS = 120.0
"""That npm may take; its own limit for one request is longer."""
MOST_BYTES = 8_000_000
"""Of one file; the largest has half of it."""


class NotReachedError(Exception):
    """npm is not here, or does not reach its registry."""


def fetched(folder: Path, seconds: float = SECONDS) -> list[Path]:
    """Fetch the package into a folder and unpack its `.test` files; return them, sorted.

    Raises:
        NotReachedError: It could not be fetched, or not in so many seconds.
        ValueError: What was fetched is something else.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NotReachedError("there is no npm on the PATH")
    command = [npm, "pack", PACKAGE, "--ignore-scripts", "--silent", "--fetch-retries=1"]
    status = _ended(command, folder, seconds)
    if status is None:
        raise NotReachedError(f"npm did not fetch {PACKAGE} in {seconds:g} s")
    archives = list(folder.glob("*.tgz"))
    if status or not archives:
        raise NotReachedError(f"npm did not fetch {PACKAGE} (exit {status})")
    (archive,) = archives
    return unpacked(archive, folder)


def _is_whole(archive: Path) -> bool:
    """Whether a file is more than the beginning of one that gzip has written."""
    try:
        with gzip.open(archive) as file:
            while file.read(1 << 20):
                pass
    except EOFError:
        return False
    except (gzip.BadGzipFile, zlib.error):  # it is of another kind
        return True
    return archive.stat().st_size > 0


def _ended(command: list[str], folder: Path, seconds: float) -> int | None:
    """Run a command; return its exit status, or None when it had to be killed with its children.

    What is named `npm` may be a script that starts the real one: that must not go on alone, and
    must not be waited for because it holds our pipe.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def unpacked(archive: Path, folder: Path, sha256: str = SHA256) -> list[Path]:
    """Unpack the `.test` files of an archive with this hash, and nothing else of it.

    Raises:
        NotReachedError: Only its beginning is there.
        ValueError: It is whole, but something else.
    """
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != sha256:
        if not _is_whole(archive):
            raise NotReachedError(f"{archive.name} was cut on its way")
        raise ValueError(f"{archive.name} has the hash {found}, not {sha256}")
    files = []
    with tarfile.open(archive) as tar:
        for member in tar:
            inside = member.name.startswith(FOLDER) and ".." not in member.name
            if not (inside and member.isfile() and member.name.endswith(".test")):
                continue
            if member.size > MOST_BYTES:
                raise ValueError(f"{member.name} has {member.size} bytes")
            content = tar.extractfile(member)
            assert content is not None
            target = folder / member.name.removeprefix(FOLDER)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
            files.append(target)
    return sorted(files)
