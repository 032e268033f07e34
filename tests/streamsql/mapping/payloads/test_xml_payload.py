"""XML: elements, attributes and roots; no entities; bounds."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.types import DataType
from streamsql.mapping.mapper import Mapped
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import Columns, mapper

PAGE = b"""<?xml version="1.0"?>
<dev:status xmlns:dev="urn:x" xmlns="urn:y"><name>north</name><list>
  <sensor id="1"><temp unit="Cel"> 21.5 </temp></sensor>
  <sensor id="2"><temp/></sensor>
</list></dev:status>"""
COLUMNS: Columns = {
    "id": (DataType.INTEGER, ColumnMapping("./@id")),
    "temp": (DataType.DOUBLE, ColumnMapping()),
    "unit": (DataType.TEXT, ColumnMapping("temp/@unit")),
    "site": (DataType.TEXT, ColumnMapping("$/name")),
    "place": (DataType.INTEGER, ColumnMapping("@index")),
}


def xml(rows: str = "") -> SourceMapping:
    return SourceMapping("http", format=PayloadFormat.XML, rows=rows)


def test_elements_are_rows() -> None:
    mapped = mapper(COLUMNS, xml("list/sensor")).map(PAGE, {}, 0)
    assert [tuple(row.values()) for row in mapped.rows] == [
        (1, 21.5, "Cel", "north", 0),
        (2, None, None, "north", 1),
    ]
    assert mapped.problems == []


def test_a_document_is_a_row() -> None:
    columns: Columns = {
        "first": (DataType.DOUBLE, ColumnMapping("list/sensor/temp")),
        "second": (DataType.INTEGER, ColumnMapping("list/sensor[2]/@id")),
        "name": (DataType.TEXT, ColumnMapping("$.name")),
    }
    assert mapper(columns, xml()).map(PAGE, {}, 0).rows == [
        {"first": 21.5, "second": 2, "name": "north"}
    ]


@pytest.mark.parametrize(
    "document",
    [
        b'<!DOCTYPE x [<!ENTITY a "b">]><x><temp>&a;</temp></x>',
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>',
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x><x/>'.encode("utf-16"),
        # In this encoding the letters of DOCTYPE are other bytes.
        b'<?xml version="1.0" encoding="cp037"?>' + "<!DOCTYPE x><x/>".encode("cp037"),
        b"<x>&a;</x>",
        b"<x>",
        b"\0",
        b'<?xml version="1.0" encoding="nope"?><x/>',
        b"<x/><x/>",
    ],
)
def test_entities_and_broken_documents_are_refused(document: bytes) -> None:
    mapped = mapper(COLUMNS, xml("x")).map(document, {}, 0)
    assert (mapped.rows, mapped.refused, len(mapped.problems)) == ([], 1, 1)
    assert mapped.problems[0].startswith(
        ("payload: it is no XML", "payload: a document with a DOC")
    )


def test_documents_are_bounded_in_depth() -> None:
    columns: Columns = {"x": (DataType.TEXT, ColumnMapping())}
    deep = b"<x>" * 66 + b"</x>" * 66
    assert mapper(columns, xml()).map(deep, {}, 0).problems == [
        "payload: it is nested deeper than 64"
    ]
    fits = b"<x>" * 64 + b"</x>" * 64
    assert mapper(columns, xml()).map(fits, {}, 0) == Mapped([{"x": None}], [])


def test_a_document_without_rows_is_a_problem() -> None:
    mapped = mapper(COLUMNS, xml("sensor")).map(PAGE, {}, 0)
    assert mapped.problems == ["payload: rows 'sensor': there is no such element"]


@pytest.mark.parametrize("path", ["/a", "a[", "a[@", "//"])
def test_wrong_paths_are_told(path: str) -> None:
    with pytest.raises(ValueError, match=r"no path of elements|names no fact"):
        mapper({"a": (DataType.TEXT, ColumnMapping(path))}, xml())


@given(
    st.lists(
        st.text(
            st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=9
        ),
        max_size=4,
    )
)
def test_texts_are_what_the_standard_library_writes(texts: list[str]) -> None:
    root = ET.Element("r")
    for text in texts:
        ET.SubElement(root, "v").text = text
    columns: Columns = {"t": (DataType.TEXT, ColumnMapping("."))}
    mapped = mapper(columns, xml("v")).map(ET.tostring(root), {}, 0)
    assert [row["t"] for row in mapped.rows] == [text.strip() or None for text in texts]
