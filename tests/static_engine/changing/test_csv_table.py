"""INSERT and DELETE on CSV files: what was meant and nothing else, or the old file."""

import os
import stat
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from static_engine.changing import whole_file
from static_engine.changing.change_table import change_table
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_reader import read_table
from streamsql.algebra.expressions import Expression
from streamsql.binder import bind_delete, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Row
from streamsql.syntax import CreateSource, Delete, parse_statement
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.table_changes import TableChange

DESKS = "desk TEXT PRIMARY KEY, room TEXT, n INTEGER"
FILE = 'room,desk,note,n\n"r,1",d1,"kept ""so""",1\n\nr2,d2,,\n'


def table(columns: str = DESKS, options: str = "path = 'desks.csv'") -> SourceDefinition:
    text = f"CREATE TABLE desks ({columns}) WITH (source = 'csv', {options})"
    statement = parse_statement(text)
    assert isinstance(statement, CreateSource)
    found = define(statement, Catalog())
    assert isinstance(found, SourceDefinition)
    return found


def predicate(definition: SourceDefinition, condition: str) -> Expression | None:
    statement = parse_statement(f"DELETE FROM desks WHERE {condition}")
    assert isinstance(statement, Delete)
    catalog = Catalog()
    catalog.define(definition)
    return bind_delete(statement, catalog).predicate


def insert(folder: Path, definition: SourceDefinition, *rows: Row) -> int:
    sent = TableChange("c1", 1, definition, rows)
    return change_table(decode_packed(encode_packed(sent), TableChange), Locations(folder))


def delete(folder: Path, definition: SourceDefinition, condition: str = "") -> int:
    chosen = predicate(definition, condition) if condition else None
    sent = TableChange("c1", 1, definition, delete=True, predicate=chosen)
    return change_table(decode_packed(encode_packed(sent), TableChange), Locations(folder))


def rows_of(folder: Path, definition: SourceDefinition) -> list[Row]:
    found: list[Row] = []
    for batch in read_table(definition, Locations(folder)):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


@pytest.fixture
def desks(tmp_path: Path) -> Path:
    file = tmp_path / "desks.csv"
    file.write_bytes(FILE.encode())
    return file


def test_rows_come_behind_the_others_which_stay_to_the_letter(desks: Path) -> None:
    desks.chmod(0o640)
    assert insert(desks.parent, table(), ("d3", "", None), ("d4", 'a "b"\nc', 4)) == 2
    assert desks.read_text() == FILE + '"",d3,,\n"a ""b""\nc",d4,,4\n'
    assert stat.S_IMODE(desks.stat().st_mode) == 0o640
    assert [file.name for file in desks.parent.iterdir()] == ["desks.csv"]


def test_an_access_list_stays(desks: Path) -> None:
    """Else the group would have what the mode tells of everybody in the list."""
    nobody = 2**32 - 1
    entries = [(1, 6, nobody), (2, 6, 1234), (4, 0, nobody), (16, 6, nobody), (32, 0, nobody)]
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(desks, "system.posix_acl_access", access)
    except OSError:
        pytest.skip("no access lists here")
    insert(desks.parent, table(), ("d3", "r", 1))
    assert os.getxattr(desks, "system.posix_acl_access") == access


def test_a_delete_takes_the_rows_that_fit_and_nothing_else(desks: Path) -> None:
    assert delete(desks.parent, table(), "n > 0") == 1  # NULL > 0 is not true
    assert desks.read_text() == "room,desk,note,n\n\nr2,d2,,\n"
    before = desks.stat().st_ino
    assert delete(desks.parent, table(), "desk = 'nobody'") == 0
    assert desks.stat().st_ino == before
    assert delete(desks.parent, table()) == 1
    assert rows_of(desks.parent, table()) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfdesk,room,n\r\nd1,r1,1", b"\xef\xbb\xbfdesk,room,n\r\nd1,r1,1\r\nd2,,\r\n"),
        (b"desk,room,n\n", b"desk,room,n\nd2,,\n"),
        (b"desk,room,n\nd1,r1,1\n\n", b"desk,room,n\nd1,r1,1\n\nd2,,\n"),
    ],
)
def test_marks_and_ends_of_lines_stay(tmp_path: Path, before: bytes, after: bytes) -> None:
    (tmp_path / "desks.csv").write_bytes(before)
    insert(tmp_path, table(), ("d2", None, None))
    assert (tmp_path / "desks.csv").read_bytes() == after


def test_without_header_and_with_another_delimiter(tmp_path: Path) -> None:
    file = tmp_path / "desks.csv"
    file.write_text("d1;r1;1\n")
    definition = table(options="path = 'desks.csv', header = 'false', delimiter = ';'")
    insert(tmp_path, definition, ("d;2", "r,1", 2))
    assert file.read_text() == 'd1;r1;1\n"d;2";r,1;2\n'
    assert delete(tmp_path, definition, "desk = 'd1'") == 1
    with pytest.raises(TableError, match="is empty"):
        delete(tmp_path, definition)
    assert file.read_text() == '"d;2";r,1;2\n'


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([("d1", "r9", 1)], "duplicate_key"),
        ([("d7", "r9", 1), ("d7", "r8", 1)], "duplicate_key"),
        ([(None, "r9", 1)], "duplicate_key"),
        ([("d7", "\ud800", 1)], "change_failed"),
    ],
)
def test_rows_that_do_not_fit_change_nothing(desks: Path, rows: list[Row], code: str) -> None:
    change = TableChange("c1", 1, table(), tuple(rows))
    with pytest.raises(TableError) as refusal:
        change_table(change, Locations(desks.parent))
    assert refusal.value.code == code
    assert refusal.value.hint or code == "change_failed"
    assert desks.read_text() == FILE
    assert len(list(desks.parent.iterdir())) == 1


def test_a_line_that_csv_cannot_hold_is_refused(tmp_path: Path) -> None:
    (tmp_path / "desks.csv").write_text("room\nr1\n")
    with pytest.raises(TableError, match="cannot hold"):
        insert(tmp_path, table("room TEXT"), (None,))
    assert (tmp_path / "desks.csv").read_text() == "room\nr1\n"


def test_what_is_read_in_two_ways_is_left_alone(desks: Path) -> None:
    desks.write_text('desk,room,n\nd1,"a"b,1\n')
    with pytest.raises(TableError) as refusal:
        insert(desks.parent, table(), ("d2", "r", 1))
    assert refusal.value.code == "change_failed"
    assert desks.read_text() == 'desk,room,n\nd1,"a"b,1\n'


def test_files_that_are_not_changed_here(desks: Path) -> None:
    folder = desks.parent
    (folder / "many").mkdir()
    (folder / "many" / "one.csv").write_text(FILE)
    (folder / "desks.csv.gz").write_bytes(b"")
    for path in ("many", "desks.csv.gz"):
        with pytest.raises(TableError) as refusal:
            insert(folder, table(options=f"path = '{path}'"), ("d3", "r", 1))
        assert refusal.value.code == "not_writable"
    desks.chmod(0o440)
    with pytest.raises(TableError, match="is read-only"):
        insert(folder, table(), ("d3", "r", 1))
    desks.chmod(0o640)
    os.link(desks, folder / "other.csv")
    with pytest.raises(TableError, match="2 names"):
        insert(folder, table(), ("d3", "r", 1))
    assert desks.read_text() == FILE


def test_a_full_disk_leaves_the_old_file(desks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TableError, match="No space left on device; it is unchanged") as refusal:
        insert(desks.parent, table(), ("d3", "r", 1))
    assert refusal.value.code == "change_failed"
    assert desks.read_text() == FILE
    assert len(list(desks.parent.iterdir())) == 1


def test_a_change_of_somebody_else_meanwhile_is_not_lost(
    desks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def meanwhile(number: int) -> None:
        real(number)
        desks.write_text(FILE + "r9,d9,,9\n")

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(TableError, match="another process"):
        insert(desks.parent, table(), ("d3", "r", 1))
    assert desks.read_text() == FILE + "r9,d9,,9\n"


def test_too_large_a_file_is_refused(desks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_file, "MAX_BYTES", 10)
    with pytest.raises(TableError, match="the max for changes is 10"):
        delete(desks.parent, table())


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
ROWS = st.lists(
    st.tuples(
        st.none() | TEXT,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.integers(0, 2**50),
        st.none() | st.booleans(),
        st.none() | TEXT,
    ),
    min_size=1,
    max_size=5,
)
WIDE = "a TEXT, b INTEGER, c DOUBLE, d TIMESTAMP, e BOOLEAN, f TEXT"


@settings(max_examples=20)
@given(first=ROWS, second=ROWS, limit=st.integers(-10, 10))
def test_rows_read_back_are_those_inserted(first: list[Row], second: list[Row], limit: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "desks.csv").write_text("f,a,b,c,d,e\n")
        definition = table(WIDE)
        insert(folder, definition, *first)
        insert(folder, definition, *second)
        expected = [*first, *second]
        assert rows_of(folder, definition) == expected
        kept = [row for row in expected if not (isinstance(row[1], int) and row[1] > limit)]
        assert delete(folder, definition, f"b > {limit}") == len(expected) - len(kept)
        assert rows_of(folder, definition) == kept
