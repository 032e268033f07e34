"""Epochs grow whatever happens to the file; one process at a time owns a directory."""

import errno
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateway.session.epoch import MAX_EPOCH, SiteDirectory
from streamsql.errors import DeploymentError


def test_epochs_grow_with_every_start(tmp_path: Path) -> None:
    epochs = []
    for _ in range(3):
        with SiteDirectory(tmp_path / "site") as directory:
            epochs.append(directory.next_epoch())
    assert epochs == [1, 2, 3]


def test_an_epoch_can_be_taken_above_one_known_elsewhere(tmp_path: Path) -> None:
    with SiteDirectory(tmp_path) as directory:
        assert directory.next_epoch(above=41) == 42
        assert directory.next_epoch(above=7) == 43


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"many", b"-3", b"9" * 30, str(MAX_EPOCH).encode(), b"1\n2"]
)
def test_a_file_that_cannot_be_understood_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "epoch").write_bytes(content)
    with SiteDirectory(tmp_path) as directory:
        assert directory.next_epoch() == 1


def test_two_processes_cannot_share_a_directory(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from gateway.session.epoch import SiteDirectory\n"
        f"d = SiteDirectory(Path({str(tmp_path)!r})); print('locked', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    guard = threading.Timer(30, process.kill)
    guard.start()
    assert process.stdout.readline() == b"locked\n"
    with pytest.raises(DeploymentError, match="in use by another process"):
        SiteDirectory(tmp_path)
    process.kill()
    process.communicate()
    guard.cancel()
    SiteDirectory(tmp_path).close()  # the lock went with the process


def test_a_path_that_is_no_directory_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeploymentError, match="cannot use data directory"):
        SiteDirectory(tmp_path / "file")


def test_an_epoch_that_cannot_be_remembered_is_explained(tmp_path: Path) -> None:
    with SiteDirectory(tmp_path) as directory:
        (tmp_path / "epoch.new").mkdir()
        with pytest.raises(DeploymentError, match="cannot remember the epoch"):
            directory.next_epoch()


def test_a_full_disk_does_not_keep_a_site_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with SiteDirectory(tmp_path) as directory:
        assert directory.next_epoch() == 1
        monkeypatch.setattr("os.fsync", full)
        assert directory.next_epoch() == 2
        assert "cannot remember epoch 2" in caplog.text
        assert directory.next_epoch(above=7) == 8, "as the broker knows"
