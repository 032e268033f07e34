"""Epochs grow whatever happens to the file; one process at a time owns a directory."""

import errno
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from host.files.epoch_file import next_epoch
from host.files.site_directory import SiteDirectory
from streamsql.errors import DeploymentError
from streamsql.wire.bounds import MAX_EPOCH


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


DAMAGED = [b"", b"\xff\xfe", b"many", b"-3", b"9" * 30, b"9" * 5_000, b"%d" % MAX_EPOCH, b"1\n2"]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_leads_to_an_epoch_above_all_that_were_counted(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "epoch"
    file.write_bytes(content)
    with SiteDirectory(tmp_path) as directory:
        epoch = directory.next_epoch()
        assert 1_700_000_000 * 4_096 < epoch < MAX_EPOCH
        assert directory.next_epoch() == epoch + 1, "it is remembered"
    assert f"{file} holds no epoch" in caplog.text
    assert str(epoch) in caplog.text
    assert (tmp_path / "epoch.broken").read_bytes() == content


def test_a_file_that_is_damaged_again_leads_above_the_epochs_since_the_first_time(
    tmp_path: Path,
) -> None:
    file = tmp_path / "epoch"
    file.write_text("?")
    first = next_epoch(file, clock=lambda: 1_800_000_000.0)
    starts = [next_epoch(file) for _ in range(100)]
    file.write_text("?")
    assert next_epoch(file, clock=lambda: 1_800_000_001.0) > max(first, *starts)


def test_an_epoch_is_never_one_that_receivers_would_refuse(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="are used up"):
        next_epoch(tmp_path / "epoch", above=MAX_EPOCH - 1)


def test_two_processes_cannot_share_a_directory(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from host.files.site_directory import SiteDirectory\n"
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
        (tmp_path / ".epoch.new").mkdir()
        with pytest.raises(DeploymentError, match="cannot save the epoch"):
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
        assert "cannot save epoch 2" in caplog.text
        assert directory.next_epoch(above=7) == 8, "as the broker knows"
