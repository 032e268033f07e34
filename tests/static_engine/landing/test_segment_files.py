"""Segments on disk: whole or not there, and never more than there is room for."""

import errno
import os
import re
from pathlib import Path

import duckdb
import pytest

from static_engine.landing import segment_files
from static_engine.landing.segment_files import (
    LandedMessage,
    NoRoom,
    SegmentError,
    SegmentWriter,
    folder_bytes,
    read_segment,
    segments,
)

MIB = 1 << 20
NOON = 1_795_780_800.0  # 2026-11-27T12:00:00 UTC
MESSAGES = [
    LandedMessage("pando/v1/house/gw/gw-1/obs/climate", b'{"epoch":1}', 1_795_780_799_000_001),
    LandedMessage("pando/v1/house/gw/gw-1/state", b"\x00\xff not text", 1_795_780_799_500_000),
]


def writer(folder: Path, epoch: int = 4, **bounds: int) -> SegmentWriter:
    """Return the writer of a lander."""
    return SegmentWriter(folder, "lander-a", epoch, **{"max_bytes": 64 * MIB, **bounds})


def test_a_segment_holds_what_was_written_in_order(tmp_path: Path) -> None:
    path = writer(tmp_path / "segments").write(MESSAGES, NOON)
    pattern = r"20261127T120000-lander-a-4-[0-9a-f]{6}-000000001\.parquet"
    assert re.fullmatch(pattern, path.name)
    rows = read_segment(path).to_pylist()
    assert [(row["topic"], row["payload"]) for row in rows] == [
        (message.topic, message.payload) for message in MESSAGES
    ]


def test_others_read_a_segment_without_our_code(tmp_path: Path) -> None:
    path = writer(tmp_path).write(MESSAGES, NOON)
    query = "SELECT topic, payload, epoch_us(arrived) FROM read_parquet(?)"
    assert duckdb.execute(query, [str(path)]).fetchall() == [
        (message.topic, message.payload, message.arrived) for message in MESSAGES
    ]


def test_names_differ_though_the_clock_stands_or_jumps_back(tmp_path: Path) -> None:
    first, again = writer(tmp_path), writer(tmp_path, epoch=5)
    names = {first.write(MESSAGES, NOON).name, first.write(MESSAGES, NOON).name}
    names |= {again.write(MESSAGES, NOON).name, again.write(MESSAGES, NOON - 3600).name}
    assert len(names) == len(segments(tmp_path)) == 4


def test_a_start_that_has_lost_its_count_replaces_no_segment(tmp_path: Path) -> None:
    """Its folder was lost, and the clock says the same second once more."""
    paths = {writer(tmp_path).write(MESSAGES, NOON) for _ in range(5)}
    assert len(segments(tmp_path)) == len(paths) == 5


def test_what_a_killed_lander_left_is_no_segment_and_goes_at_its_next_start(tmp_path: Path) -> None:
    left = tmp_path / ".20261127T120000-lander-a-3-000000009.parquet.tmp"
    others = tmp_path / ".20261127T120000-lander-b-3-000000009.parquet.tmp"
    left.write_bytes(b"half")
    others.write_bytes(b"half")
    assert segments(tmp_path) == []
    writer(tmp_path)
    assert not left.exists()
    assert others.exists()


def test_a_folder_that_is_full_takes_nothing_and_then_goes_on(tmp_path: Path) -> None:
    full = writer(tmp_path, max_bytes=2_000)
    path = full.write(MESSAGES, NOON)
    big = [LandedMessage("t", os.urandom(1_500), 0)]
    with pytest.raises(NoRoom, match="max_folder_bytes"):
        full.write(big, NOON)
    assert segments(tmp_path) == [path]
    path.unlink()
    full.write(big, NOON)
    assert folder_bytes(tmp_path) > 1_500


def test_a_full_disk_is_told_in_words_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_full_disk = writer(tmp_path)

    def fails(_number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("host.files.atomic_file.os.fsync", fails)
        with pytest.raises(NoRoom, match="disk full") as refused:
            on_full_disk.write(MESSAGES, NOON)
    assert "make room" in refused.value.hint
    assert list(tmp_path.iterdir()) == []
    on_full_disk.write(MESSAGES, NOON)


def test_room_for_others_stays_free(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    with pytest.raises(NoRoom, match="spare_bytes"):
        writer(tmp_path, spare_bytes=disk.f_blocks * disk.f_frsize).write(MESSAGES, NOON)


def test_a_folder_that_cannot_be_synced_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_files, "replace_file", lambda *_given, **_named: False)
    with pytest.raises(SegmentError, match="cannot be synced"):
        writer(tmp_path).write(MESSAGES, NOON)


@pytest.mark.parametrize("content", [b"", b"PAR1 broken PAR1", os.urandom(300)])
def test_a_damaged_segment_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "20261127T120000-lander-a-3-000000009.parquet"
    path.write_bytes(content)
    with pytest.raises(SegmentError, match=path.name):
        read_segment(path)


def test_a_parquet_file_of_something_else_is_no_segment(tmp_path: Path) -> None:
    path = tmp_path / "rooms.parquet"
    duckdb.execute(f"COPY (SELECT 1 AS room) TO '{path}'")
    with pytest.raises(SegmentError, match="no segment"):
        read_segment(path)
