"""HTML: tables by selectors, heads of tables, attributes, long tags."""

import pytest

from streamsql.data.types import DataType
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.sources import Columns, mapper

PAGE = b"""<html><head><meta charset="utf-8"><title>x</title></head><body>
<h1 class="name"> Rack&nbsp;PDU
 3</h1><table id="pdu"><tr><th>Outlet<th>Power</tr>
<tr><th>A<td class="w" data-max="16">12,5&nbsp;W<td><a href="/1">off</a></tr>
<tr><th>B<td class=w>0 W</table></body></html>"""
COLUMNS: Columns = {
    "outlet": (DataType.TEXT, ColumnMapping("[0]")),
    "power": (DataType.TEXT, ColumnMapping("td.w")),
    "max": (DataType.DOUBLE, ColumnMapping("td@data-max")),
    "link": (DataType.TEXT, ColumnMapping("[2]")),
    "pdu": (DataType.TEXT, ColumnMapping("$.name")),
    "title": (DataType.TEXT, ColumnMapping("$title")),
}


def html(rows: str = "") -> SourceMapping:
    return SourceMapping("http", format=PayloadFormat.HTML, rows=rows)


def test_rows_of_a_table_are_rows_and_its_head_is_none() -> None:
    mapped = mapper(COLUMNS, html("table#pdu tr")).map(PAGE, {}, 0)
    assert [tuple(row.values()) for row in mapped.rows] == [
        ("A", "12,5 W", 16.0, "off", "Rack PDU 3", "x"),
        ("B", "0 W", None, None, "Rack PDU 3", "x"),
    ]
    assert mapped.problems == []


def test_a_page_is_a_row() -> None:
    columns: Columns = {
        "power": (DataType.DOUBLE, ColumnMapping("tr:nth-child(3) td.w", format="leading")),
        "href": (DataType.TEXT, ColumnMapping("a@href")),
        "whole": (DataType.TEXT, ColumnMapping("h1")),
    }
    assert mapper(columns, html()).map(PAGE, {}, 0).rows == [
        {"power": 0.0, "href": "/1", "whole": "Rack PDU 3"}
    ]


def test_a_page_without_the_table_is_a_problem() -> None:
    mapped = mapper(COLUMNS, html("table#other tr")).map(PAGE, {}, 0)
    assert mapped.problems == ["payload: rows 'table#other tr': there is no such element"]
    assert mapper(COLUMNS, html("tr")).map(b"<!-- -->", {}, 0).refused == 1


@pytest.mark.parametrize("selector", ["td[", ":nope", "a >", "td::text", "[2", "a:has("])
def test_wrong_selectors_are_told(selector: str) -> None:
    with pytest.raises(ValueError, match="no CSS selector"):
        mapper({"a": (DataType.TEXT, ColumnMapping(selector))}, html())
    with pytest.raises(ValueError, match="no CSS selector"):
        mapper({"a": (DataType.TEXT, ColumnMapping())}, html(selector))


@pytest.mark.parametrize(
    "attributes",
    [
        b" ".join(b"x%d" % n for n in range(3_000)),
        b"/".join(b"x%d" % n for n in range(3_000)),
        b" ".join(b"x%d='>'" % n for n in range(3_000)),
        b" ".join(b'x%d = ">"' % n for n in range(3_000)),
        b"".join(b'x%d="<"' % n for n in range(3_000)),
        b" ".join(b"x%d=a'b" % n for n in range(3_000)),
        b" ".join(b"=%d" % n for n in range(6_000)),
    ],
)
def test_a_tag_of_thousands_of_attributes_is_refused(attributes: bytes) -> None:
    page = b"<p>1</p><a " + attributes + b">"
    columns: Columns = {"p": (DataType.INTEGER, ColumnMapping())}
    assert mapper(columns, html()).map(page, {}, 0).problems == [
        "payload: a tag has more than 500 attributes"
    ]
    few = b"<p>1</p><a " + attributes[:1_800] + b">"
    assert mapper(columns, html()).map(few, {}, 0).rows == [{"p": 1}]
