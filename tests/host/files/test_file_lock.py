"""A lock of one process at a time."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from host.files.file_lock import FileLock, is_locked, owner_of

HOLDER = """
import sys
from pathlib import Path
from host.files.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
print(lock.take(sign=True), flush=True)
sys.stdin.read()
"""


def test_it_is_taken_once_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock, other = FileLock(path), FileLock(path)
    assert not is_locked(path)
    assert lock.take()
    assert lock.held
    assert is_locked(path)
    assert not other.take()
    assert not other.held
    lock.release()
    lock.release()
    assert not is_locked(path)
    assert other.take()
    other.release(remove=True)
    assert not path.exists()


def test_it_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "True\n"
        assert is_locked(path)
        assert owner_of(path) == process.pid
        assert not FileLock(path).take()
    finally:
        process.kill()
        process.communicate()
    assert not is_locked(path)
    lock = FileLock(path)
    assert lock.take(sign=True)
    assert owner_of(path) == os.getpid()
    lock.release()


def test_who_only_asks_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    path.touch()
    asking = path.open("r", encoding="ascii")
    fcntl.flock(asking, fcntl.LOCK_SH | fcntl.LOCK_NB)
    monkeypatch.setattr("host.files.file_lock.time.sleep", lambda _: asking.close())
    lock = FileLock(path)
    assert lock.take()
    lock.release()


def test_a_lock_on_a_removed_file_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    first, second, real = FileLock(path), FileLock(path), fcntl.flock
    assert first.take()

    def release_before(file: int, operation: int) -> None:
        first.release(remove=True)  # between the other's open and its lock
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", release_before)
    assert second.take()
    assert is_locked(path)
    second.release()


@pytest.mark.parametrize("content", ["", "no number"])
def test_an_owner_that_is_not_named_is_none(tmp_path: Path, content: str) -> None:
    assert owner_of(tmp_path / "lock") is None
    (tmp_path / "lock").write_text(content)
    assert owner_of(tmp_path / "lock") is None


def test_a_signature_that_cannot_be_written_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"

    def full() -> int:
        raise OSError(28, "No space left on device")

    lock = FileLock(path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", full)
        with pytest.raises(OSError, match="No space left"):
            lock.take(sign=True)
    assert not lock.held
    assert not is_locked(path)
