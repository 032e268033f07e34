"""What of a file is a row: what comes before the names of its columns is none."""

import os
from pathlib import Path

import pytest

from gateway.connectors.file.file_options import Each, FileSource
from gateway.connectors.file.folder import Folder
from gateway.connectors.file.place import BATCH_BYTES

TWO = FileSource("*.csv", skip=2)


def payloads(folder: Folder) -> list[bytes]:
    return [payload for news in folder.news() for payload in news.payloads]


@pytest.mark.parametrize("width", [10, 3 * BATCH_BYTES])
def test_lines_before_the_names_are_left_out_in_whatever_pieces_they_come(
    tmp_path: Path, width: int
) -> None:
    folder = Folder(tmp_path, TWO, has_header=True, memory=None)
    pieces: tuple[tuple[str, list[bytes]], ...] = (
        ("\ufeff# a logger\n{" + "x" * width, []),
        ("}\n", []),
        ("a;b", []),
        ("\r\n1;2\r\n3;", [b"a;b\r\n1;2"]),
        ("4\n", [b"a;b\r\n3;4"]),
    )
    for piece, expected in pieces:
        with (tmp_path / "day.csv").open("ab") as file:
            file.write(piece.encode())
        assert payloads(folder) == expected
    later = Folder(tmp_path, TWO, has_header=True, memory=folder.to_remember())
    assert payloads(later) == []
    with (tmp_path / "day.csv").open("ab") as file:
        file.write(b"5;6\n")
    assert payloads(later) == [b"a;b\r\n5;6"]


def test_a_line_that_never_ends_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_bytes(b"x" * 25 * BATCH_BYTES + b"\n\na\n1\n")
    folder = Folder(tmp_path, TWO, has_header=True, memory=None)
    assert payloads(folder) == []


def test_lines_without_names_and_whole_files_begin_behind_them_too(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_bytes(b"one\ntwo\n1;2\n3;4\n")
    assert payloads(Folder(tmp_path, TWO, has_header=False, memory=None)) == [b"1;2", b"3;4"]
    whole = FileSource("*.csv", each=Each.FILE, skip=2)
    folder = Folder(tmp_path, whole, has_header=False, memory=None)
    assert payloads(folder) + payloads(folder) == [b"1;2\n3;4\n"]
    (tmp_path / "day.csv").write_bytes(b"one\ntwo")
    assert payloads(folder) + payloads(folder) == []


@pytest.mark.parametrize("inode", ["the same", "another"])
def test_a_file_that_is_written_anew_with_the_same_size_is_read(tmp_path: Path, inode: str) -> None:
    file = tmp_path / "now.csv"
    folder = Folder(tmp_path, FileSource("*.csv"), has_header=False, memory=None)
    found = []
    for number in range(3):
        if inode == "another":
            file.unlink(missing_ok=True)
        file.write_bytes(b"2%d.5\n" % number)
        os.utime(file, ns=(number, number))
        found.append(payloads(folder))
        assert payloads(folder) == []
    assert found == [[b"20.5"], [b"21.5"], [b"22.5"]]
    file.write_bytes(b"23.5\n")
    later = Folder(tmp_path, FileSource("*.csv"), has_header=False, memory=folder.to_remember())
    assert payloads(later) == [b"23.5"]
