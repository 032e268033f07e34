"""INSERT and DELETE on JSON lines: what stays is kept byte for byte."""

import os
from pathlib import Path

import pytest

from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition
from tests.static_engine.changing.changes import insert, rows_of, run, table
from tests.static_engine.changing.other_writers import touching

DESKS = "desk TEXT, room TEXT, n INTEGER, at TIMESTAMP"
JSON = "source = 'json', path = 'desks.jsonl'"
FILE = (
    b'{"Desk" :"d1", "room":"r1","n": 1.0,"at":"2026-01-01T00:00:00Z", "more":[1,  2]}\n'
    b"\n"
    b'{"at":null,"n":"2","Desk":"d2"}\n'
)


def begin(folder: Path, content: bytes = FILE) -> tuple[Path, SourceDefinition]:
    file = folder / "desks.jsonl"
    file.write_bytes(content)
    return file, table(DESKS, JSON)


def test_other_lines_stay_byte_for_byte(tmp_path: Path) -> None:
    file, definition = begin(tmp_path)
    assert insert(tmp_path, definition, ("d3", 'a "b"\n\u2028é', None, 1_500_000)) == 1
    line = (
        '{"Desk":"d3","room":"a \\"b\\"\\n\u2028é","n":null,"at":"1970-01-01T00:00:01.500000Z"}\n'
    )
    assert file.read_bytes() == FILE + line.encode()
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 2") == 1
    assert file.read_bytes() == FILE.splitlines(keepends=True)[0] + line.encode()
    before = file.stat().st_ino
    assert run(tmp_path, definition, "DELETE FROM desks WHERE n = 2") == 0
    assert file.stat().st_ino == before
    assert run(tmp_path, definition, "DELETE FROM desks") == 2
    assert file.read_bytes() == b""
    insert(tmp_path, definition, ("d3", None, 1, None))
    assert file.read_bytes() == b'{"desk":"d3","room":null,"n":1,"at":null}\n'


def test_line_ends_and_times_are_like_those_that_are_there(tmp_path: Path) -> None:
    first = b'\xef\xbb\xbf{"desk":"d1","room":"r","n":1,"at":7}\r\n{"desk":"d2"}'
    file, definition = begin(tmp_path, first)
    insert(tmp_path, definition, ("d3", None, None, 8))
    assert file.read_bytes() == first + b'\r\n{"desk":"d3","room":null,"n":null,"at":8}\r\n'
    assert [row[3] for row in rows_of(tmp_path, definition)] == [7, None, 8]


def test_what_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, definition = begin(tmp_path)
    keyed = table("desk TEXT PRIMARY KEY, n INTEGER", JSON)
    with pytest.raises(TableError, match="already") as refusal:
        insert(tmp_path, keyed, ("d1", 1))
    assert refusal.value.code == "duplicate_key"
    # The line that stays has no room at all: a column that no line has is an error.
    with pytest.raises(TableError, match=r"would no longer be a table: .*no column room"):
        run(tmp_path, definition, "DELETE FROM desks WHERE desk = 'd1'")
    file.chmod(0o440)
    with pytest.raises(TableError, match="read-only"):
        run(tmp_path, definition, "DELETE FROM desks")
    file.chmod(0o640)
    monkeypatch.setattr(os, "fsync", touching(file))
    with pytest.raises(TableError, match="another process"):
        insert(tmp_path, definition, ("d3", "r", 1, None))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TableError, match="No space left on device; it is unchanged"):
        insert(tmp_path, definition, ("d3", "r", 1, None))
    assert file.read_bytes() == FILE
    assert [found.name for found in tmp_path.iterdir()] == ["desks.jsonl"]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("desks.jsonl", b' [{"desk":"d1"}]', "not_writable"),
        ("desks.txt", FILE, "not_writable"),
        ("desks.jsonl", b'{"desk":"d1"}\n{"desk":\n', "table_error"),
        ("desks.jsonl", b'{"desk":"d1"}\r{"desk":"d2"}\n', "table_error"),
    ],
)
def test_files_that_are_not_changed(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "desks.json").write_bytes(b'{"desk":"d1"}\n')
    with pytest.raises(TableError) as refusal:
        run(tmp_path, table("desk TEXT", f"source = 'json', path = '{name}'"), "DELETE FROM desks")
    assert refusal.value.code == code
    assert refusal.value.hint
    assert (tmp_path / name).read_bytes() == content
    with pytest.raises(TableError, match="folder of json files") as refusal:
        run(tmp_path, table("desk TEXT", "source = 'json', path = 'folder'"), "DELETE FROM desks")
    assert refusal.value.code == "not_writable"
