"""Damaged and hostile files of every kind: rows, or an error of the table, and soon."""

import io
import tempfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from static_engine.sources.table_errors import TableError
from tests.static_engine.sources.documents.document_tables import rows

GEOJSON = b'{"type":"FeatureCollection","features":[{"type":"Feature","id":1,"properties":{"name":"a"},"geometry":{"type":"Point","coordinates":[1,2]}}]}'  # noqa: E501


def _zip() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("manifest.json", '{"language": "en"}')
        opened.writestr("unit.geojson", GEOJSON)
    return made.getvalue()


def _parquet() -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table({"name": ["a", "b", None], "n": [1, 2, 3]}), made)
    return made.getvalue()


SAMPLES: dict[str, tuple[str, Callable[[], bytes], dict[str, str]]] = {
    "csv": ("t.csv", lambda: b'name,n\r\n"a ""b""",1\r\nc,2\r\n', {}),
    "json": ("t.jsonl", lambda: b'{"name": "a"}\n{"name": null}\n', {}),
    "parquet": ("t.parquet", _parquet, {}),
    "geojson": ("t.geojson", lambda: GEOJSON, {}),
    "imdf": ("t.zip", _zip, {"layer": "unit"}),
    "ics": (
        "t.ics",
        lambda: (
            b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a\r\nSUMMARY:s\r\n"
            b"DTSTART:20260101T100000Z\r\nRRULE:FREQ=WEEKLY;COUNT=3\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        ),
        {"since": "2026-01-01", "until": "2026-02-01"},
    ),
    "rdf": ("t.ttl", lambda: b'@prefix a: <urn:a:> .\na:b a a:C ; a:d "x", 1.5 .\n', {}),
}
COLUMN = {"ics": "summary TEXT", "rdf": "subject TEXT"}
OPTIONS = {"rdf": {"layer": "triples"}}
EDIT = st.tuples(st.integers(0, 10_000), st.integers(0, 3), st.binary(max_size=4))


def _damaged(content: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for place, gone, put in edits:
        at = place % (len(content) + 1)
        content = content[:at] + put + content[at + gone :]
    return content


@pytest.mark.parametrize("kind", SAMPLES)
@settings(max_examples=40, deadline=None)
@given(edits=st.lists(EDIT, min_size=1, max_size=4))
def test_a_damaged_file_is_rows_or_an_error(kind: str, edits: list[tuple[int, int, bytes]]) -> None:
    name, make, more = SAMPLES[kind]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(_damaged(make(), edits))
        options = {"source": kind, "path": name, **more, **OPTIONS.get(kind, {})}
        try:
            rows(Path(folder), COLUMN.get(kind, "name TEXT"), **options)
        except TableError as error:
            assert error.message  # noqa: PT017 - rows are as right as an error


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("csv", "t.csv", b"a," * 1_000_000 + b"name\n" + b"1," * 1_000_000 + b"x\n"),
        ("csv", "t.csv", b'name\n"never closed' + b"x" * 5_000_000),
        ("csv", "t.csv", b"name\n" + b'"' * 1_000_001),
        ("json", "t.json", b"[" * 1_000_000),
        ("json", "t.jsonl", b'{"name": ' + b'{"a": ' * 500_000),
        ("parquet", "t.parquet", b"PAR1" + b"\xff" * 1_000 + b"PAR1"),
        ("parquet", "t.parquet", _parquet()[:-20]),
    ],
    ids=["million columns", "open quote", "quotes", "nesting", "nested line", "no footer", "cut"],
)
def test_a_hostile_file_ends_soon_in_an_error(
    kind: str, name: str, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    tracemalloc.start()
    began = time.monotonic()
    try:
        with pytest.raises(TableError) as refusal:
            rows(tmp_path, "name TEXT", source=kind, path=name)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(str(refusal.value)) < 2_000
    assert refusal.value.message.startswith(f"table t: {name}")
    assert time.monotonic() - began < 60
    assert peak < 600 << 20
