"""A replaced file has the old content or the new, never a part; nothing is left behind."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from host.files.atomic_file import replace_file

OLD, NEW = b"old", b"new, and longer"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "rows.csv"
    file.write_bytes(OLD)
    return file


def fails(*_: object) -> None:
    raise OSError(28, "No space left on device")


def writes_a_part(output: BinaryIO) -> None:
    output.write(NEW[:3])
    fails()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("new", [NEW, lambda output: output.write(NEW)])
def test_a_file_is_replaced(file: Path, new: bytes | Callable[[BinaryIO], object]) -> None:
    assert replace_file(file, new)
    assert content(file.parent) == {"rows.csv": NEW}


def test_a_new_file_is_made(tmp_path: Path) -> None:
    assert replace_file(tmp_path / "rows.csv", NEW)
    assert content(tmp_path) == {"rows.csv": NEW}


def test_what_cannot_be_written_leaves_the_old_one(file: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, writes_a_part)
    assert content(file.parent) == {"rows.csv": OLD}


def test_what_cannot_be_synced_leaves_the_old_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, NEW)
    assert content(file.parent) == {"rows.csv": OLD}


def test_what_fails_its_check_leaves_the_old_one(file: Path) -> None:
    def check(written: Path) -> None:
        assert written.parent == file.parent
        assert written.read_bytes() == NEW
        assert file.read_bytes() == OLD
        raise ValueError("no table any more")

    with pytest.raises(ValueError, match="no table"):
        replace_file(file, NEW, check=check)
    assert content(file.parent) == {"rows.csv": OLD}


def test_while_it_is_written_no_pattern_finds_it(file: Path) -> None:
    found: list[list[Path]] = []
    replace_file(file, NEW, check=lambda _: found.append(list(file.parent.glob("[!.]*"))))
    assert found == [[file]]


def test_what_a_killed_process_has_left_is_not_in_the_way(file: Path) -> None:
    target = file.with_name("elsewhere")
    left: list[Path] = []
    replace_file(file, OLD, check=left.append)
    left[0].symlink_to(target)
    assert replace_file(file, NEW)
    assert content(file.parent) == {"rows.csv": NEW}


def test_leftovers_of_files_with_ever_new_names_may_have_one_name(tmp_path: Path) -> None:
    def check(written: Path) -> None:
        assert written == tmp_path / ".rows.new"

    replace_file(tmp_path / "rows-1.csv", NEW, temporary=tmp_path / ".rows.new", check=check)
    assert content(tmp_path) == {"rows-1.csv": NEW}


@pytest.mark.parametrize(("mode", "expected"), [(None, 0o640), (0o600, 0o600), (0o644, 0o644)])
def test_its_mode_is_as_asked_or_by_the_umask(
    tmp_path: Path, mode: int | None, expected: int
) -> None:
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "rows.csv", NEW, mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "rows.csv").stat().st_mode) == expected


def test_a_folder_that_cannot_be_synced_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = os.fsync

    def only_files(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            fails()
        real(number)

    monkeypatch.setattr(os, "fsync", only_files)
    assert not replace_file(file, NEW)
    assert content(file.parent) == {"rows.csv": NEW}, "it counts already"
    assert "may be lost if power fails now" in caplog.text


WRITER = """
import sys
from pathlib import Path
from host.files.atomic_file import replace_file
print("begins", flush=True)
while True:
    for letter in b"ab":
        replace_file(Path(sys.argv[1]), bytes([letter]) * 300_000)
"""


def test_a_reader_sees_a_whole_file_also_when_the_writer_is_killed(file: Path) -> None:
    file.write_bytes(b"a" * 300_000)
    whole = {b"a" * 300_000, b"b" * 300_000}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, env=os.environ
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        seen = {file.read_bytes() for _ in range(300)}
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert seen <= whole
    assert file.read_bytes() in whole
    assert replace_file(file, NEW)
    assert content(file.parent) == {"rows.csv": NEW}
