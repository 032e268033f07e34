"""HTML: `rows` and FROM are CSS selectors.

`td.power` (its text), `a.device@href` (an attribute), `[2]` (the third cell of a table's row), `$`
and a selector (from the page instead of the row). Needs the extra `html`.
"""

import re
from collections.abc import Callable, Iterator

from cssselect import SelectorError
from lxml import etree
from lxml.cssselect import CSSSelector
from lxml.html import HtmlElement, HTMLParser, document_fromstring
from typing_extensions import override

from streamsql.mapping.field_path import MISSING, Getter
from streamsql.mapping.payloads.element_limits import check_rows, check_siblings
from streamsql.mapping.payloads.payload_reader import MAX_ROWS, Element, PlainReader

MAX_ATTRIBUTES = 500

_CELL = re.compile(r"\[(\d{1,4})\]")
_CELLS = frozenset({"td", "th"})
# A tag as the HTML standard cuts it into attributes. The parser compares each attribute with all
# before it: 140,000 in one tag took 43 s, 500 in each of many tags take 0.1 s a megabyte.
# Possessive, so that the search does not go back into what it has read.
_LONG_TAG = re.compile(
    rb"<[A-Za-z][^\s/>]*+"
    rb"(?:[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'>][^\s>]*+|))?+)"
    rb"{%d}+" % MAX_ATTRIBUTES
)

# What XPath does by comparing an element with all beside it: `td ~ td`, `tr + tr`, `:nth-child(2)`.
_COUNTS = re.compile(r"[~+]|:(?:first|last|only|nth)-")

_Select = Callable[[HtmlElement], list[HtmlElement]]


class HtmlReader(PlainReader):
    """HTML as rows."""

    def __init__(self, rows: str = "") -> None:
        """Compile the selector of rows.

        Raises:
            ValueError: It is no CSS selector.
        """
        self._rows_text = rows
        self._rows = _selector(rows) if rows else None
        self._counting = [rows] if _COUNTS.search(rows) else []

    def getter(self, path: str) -> tuple[Getter, bool]:
        """Return what reads a cell, an element's text or an attribute."""
        if cell := _CELL.fullmatch(path):
            return _cell_getter(int(cell.group(1))), False
        from_root = path.startswith("$")
        selector, has_attribute, attribute = path.removeprefix("$").strip().rpartition("@")
        if not has_attribute:
            selector, attribute = attribute, ""
        if _COUNTS.search(selector):
            self._counting.append(selector)
        select = _itself if selector in {"", "."} else _selector(selector)
        return _element_getter(select, attribute), from_root

    def decode(self, payload: bytes, arrival: int) -> object:  # noqa: ARG002
        """Return the page's outermost element."""
        if _LONG_TAG.search(payload):
            raise ValueError(f"a tag has more than {MAX_ATTRIBUTES:,} attributes")
        try:
            # The encoding is the page's own, as far as it says one.
            parser = HTMLParser(no_network=True, remove_comments=True, remove_pis=True)
            root = document_fromstring(payload, parser=parser)
        except (etree.LxmlError, ValueError, LookupError) as error:
            raise ValueError(f"it is no HTML: {error!s:.100}") from None
        check_siblings(root, self._counting)
        return root

    @override
    def elements(self, root: object) -> Iterator[Element] | None:
        """Yield what the selector of rows finds; rows of a table without a `td` are its head."""
        if self._rows is None or not isinstance(root, HtmlElement):
            return None
        found = [
            element
            for element in self._rows(root)
            if element.tag != "tr" or any(child.tag == "td" for child in element)
        ]
        if not found:
            raise ValueError(f"rows {self._rows_text!r:.60}: there is no such element")
        check_rows(found[:MAX_ROWS], with_texts=True)
        return (({"index": index}, element) for index, element in enumerate(found))


def _selector(text: str) -> _Select:
    try:
        compiled = CSSSelector(text, translator="html")
    except (SelectorError, etree.XPathError) as error:
        raise ValueError(f"{text!r:.60} is no CSS selector: {error!s:.80}") from None
    return lambda element: [found for found in compiled(element) if isinstance(found, HtmlElement)]


def _itself(element: HtmlElement) -> list[HtmlElement]:
    return [element]


def _cell_getter(position: int) -> Getter:
    def get(element: object) -> object:
        if not isinstance(element, HtmlElement):
            return MISSING
        cells = [child for child in element if child.tag in _CELLS]
        return _text(cells[position]) if position < len(cells) else MISSING

    return get


def _element_getter(select: _Select, attribute: str) -> Getter:
    def get(element: object) -> object:
        found = select(element) if isinstance(element, HtmlElement) else []
        if not found:
            return MISSING
        return found[0].get(attribute, MISSING) if attribute else _text(found[0])

    return get


def _text(element: HtmlElement) -> str | None:
    """Return the text as a browser shows it: one space for all white space; None for none."""
    return " ".join("".join(element.itertext()).split()) or None
