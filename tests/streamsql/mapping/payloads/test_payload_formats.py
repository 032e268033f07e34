"""JSON, text and CSV: against the standard library, and what each refuses."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.types import DataType
from streamsql.mapping.mapper import Mapped
from streamsql.mapping.payloads.payload_formats import JsonReader
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import Columns, mapper

UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | UNICODE,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(UNICODE, inner, max_size=5),
    max_leaves=20,
)
CELLS = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8), min_size=2, max_size=2
)
CSV = SourceMapping("file", format=PayloadFormat.CSV)
TEXT = SourceMapping("mqtt", format=PayloadFormat.TEXT)
TWO: Columns = {"a": (DataType.TEXT, ColumnMapping()), "b": (DataType.TEXT, ColumnMapping())}


@given(JSON)
def test_json_is_what_the_standard_library_writes(value: object) -> None:
    assert JsonReader().decode(json.dumps(value).encode(), 0) == value


def test_json_may_begin_with_a_byte_order_mark() -> None:
    assert JsonReader().decode(b"\xef\xbb\xbf[1]", 0) == [1]


@given(st.lists(CELLS, min_size=1, max_size=5), st.sampled_from([",", ";", "\t", "|"]))
def test_csv_is_what_the_standard_library_writes(lines: list[list[str]], delimiter: str) -> None:
    written = io.StringIO()
    writer = csv.writer(written, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b"])
    writer.writerows(lines)
    source = mapper(TWO, SourceMapping("x", format=PayloadFormat.CSV, delimiter=delimiter))
    mapped = source.map(written.getvalue().encode(), {}, 0)
    assert mapped == Mapped([{"a": a or None, "b": b or None} for a, b in lines], [])


def test_lines_of_csv_are_rows_by_the_names_of_the_header() -> None:
    columns: Columns = {
        "temp": (DataType.DOUBLE, ColumnMapping("Temp. (°C)", format="comma")),
        "place": (DataType.INTEGER, ColumnMapping("@index")),
    }
    source = mapper(columns, SourceMapping("x", format=PayloadFormat.CSV, delimiter=";"))
    payload = "\ufeffid; Temp. (°C) \r\n1;21,5\r\n\r\n2;\r\n3;4;5\r\n".encode()
    mapped = source.map(payload, {}, 0)
    assert mapped.rows == [{"temp": 21.5, "place": 0}, {"temp": None, "place": 1}]
    assert mapped.problems == ["row 3: 3 cells under 2 names"]
    assert mapped.refused == 1


def test_without_a_header_the_nth_column_takes_the_nth_cell() -> None:
    columns: Columns = {
        "device": (DataType.TEXT, ColumnMapping()),
        "temp": (DataType.DOUBLE, ColumnMapping()),
        "name": (DataType.TEXT, ColumnMapping()),
        "last": (DataType.TEXT, ColumnMapping("[-1]")),
    }
    bare = SourceMapping("x", format=PayloadFormat.CSV, header=False, delimiter="\\t")
    mapped = mapper(columns, bare, topic="a/{device}").map(b"1\tx\ty\n2", {"device": "d"}, 0)
    assert [tuple(row.values()) for row in mapped.rows] == [
        ("d", 1.0, "x", "y"),
        ("d", 2.0, None, "2"),
    ]


def test_a_header_without_the_columns_is_a_problem_of_each_row() -> None:
    mapped = mapper(TWO, CSV).map(b"x,y\n1,2", {}, 0)
    assert mapped.refused == 1
    assert (
        "no column's field is there; it is an object with the fields 'x', 'y'" in mapped.problems[0]
    )


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
def test_a_delimiter_is_one_character(delimiter: str) -> None:
    with pytest.raises(ValueError, match="delimiter"):
        mapper(TWO, SourceMapping("x", format=PayloadFormat.CSV, delimiter=delimiter))


def test_paths_of_lines_without_a_header_are_cells() -> None:
    bare = SourceMapping("x", format=PayloadFormat.CSV, header=False)
    with pytest.raises(ValueError, match=r"has cells \[0\], \[1\]"):
        mapper({"a": (DataType.TEXT, ColumnMapping("temp"))}, bare)


def test_csv_that_cannot_be_read_is_one_problem() -> None:
    source = mapper(TWO, CSV)
    assert source.map(b"a,b\n" + b"x" * 200_000, {}, 0).problems[0].startswith("payload: line 2")
    assert source.map(b"a,b\n\xff", {}, 0).problems == ["payload: it is no text in UTF-8 at byte 4"]


@pytest.mark.parametrize("path", ["", ".", "$", "value"])
def test_a_text_is_the_value_of_a_column(path: str) -> None:
    columns: Columns = {"t": (DataType.DOUBLE, ColumnMapping(path, format="leading"))}
    assert mapper(columns, TEXT).map(b" 21.5 C\r\n", {}, 0).rows == [{"t": 21.5}]


def test_a_text_has_one_value() -> None:
    with pytest.raises(ValueError, match="leave FROM out"):
        mapper({"t": (DataType.TEXT, ColumnMapping("a.b"))}, TEXT)
    source = mapper({"t": (DataType.TEXT, ColumnMapping())}, TEXT)
    assert source.map(b"\xff", {}, 0).problems == ["payload: it is no text in UTF-8 at byte 0"]
