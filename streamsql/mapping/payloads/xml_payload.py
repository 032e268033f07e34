"""XML: `rows` and FROM are paths of ElementTree below the outermost element.

`name`, `sensor/value`, `value/@unit` (an attribute), `./@id` (of the row's own element), `.` (its
text). Namespaces of tags are dropped. A document with a DOCTYPE is refused: entities, and what they
expand to, stand there.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from typing_extensions import override

from streamsql.mapping.field_path import MISSING, Getter
from streamsql.mapping.payloads.element_limits import check_rows, check_siblings
from streamsql.mapping.payloads.payload_reader import MAX_DEPTH, MAX_ROWS, Element, PlainReader

# A place among siblings, `a[2]` or `a[last()]`: ElementTree lists them for each of them.
_COUNTS = re.compile(r"\[\s*(?:\d|-|last)")


class XmlReader(PlainReader):
    """XML as rows."""

    def __init__(self, rows: str = "") -> None:
        """Look at the path of rows.

        Raises:
            ValueError: It is no path.
        """
        self._rows = rows
        self._counting: list[str] = []
        if rows:
            self._check(rows)

    def getter(self, path: str) -> tuple[Getter, bool]:
        """Return what reads an element's text or attribute."""
        from_root = path.startswith("$")
        below = path[1:].lstrip("./") or "." if from_root else path
        place, has_attribute, attribute = below.rpartition("@")
        if not has_attribute:
            self._check(below)
            return _text_getter(below), from_root
        place = place.rstrip("/") or "."
        self._check(place)
        return _attribute_getter(place, attribute), from_root

    def decode(self, payload: bytes, arrival: int) -> object:  # noqa: ARG002
        """Return the outermost element."""
        parser = ET.XMLParser(target=_Builder())  # noqa: S314 - see above
        try:
            parser.feed(payload)
            root: ET.Element = parser.close()
        except (ET.ParseError, LookupError) as error:
            raise ValueError(f"it is no XML: {error!s:.100}") from None
        _check_depth(root)
        check_siblings(root, self._counting)
        return root

    @override
    def elements(self, root: object) -> Iterator[Element] | None:
        """Yield the elements that `rows` finds."""
        if not self._rows or not isinstance(root, ET.Element):
            return None
        found = root.findall(self._rows)
        if not found:
            raise ValueError(f"rows {self._rows!r:.60}: there is no such element")
        check_rows(found[:MAX_ROWS], with_texts=False)
        return (({"index": index}, element) for index, element in enumerate(found))

    def _check(self, path: str) -> None:
        _check_path(path)
        if _COUNTS.search(path):
            self._counting.append(path)


class _Builder(ET.TreeBuilder):
    """Builds the tree without namespaces, and refuses a DOCTYPE before its entities are read."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:  # noqa: ARG002
        raise ValueError("a document with a DOCTYPE is not read: entities could expand")

    @override
    def start(self, tag: str, attrs: dict[str, str], /) -> ET.Element:
        return super().start(tag.rpartition("}")[2], attrs)


def _text_getter(path: str) -> Getter:
    def get(element: object) -> object:
        found = _found(element, path)
        if found is None:
            return MISSING
        return (found.text or "").strip() or None

    return get


def _attribute_getter(path: str, attribute: str) -> Getter:
    def get(element: object) -> object:
        found = _found(element, path)
        return MISSING if found is None else found.get(attribute, MISSING)

    return get


def _found(element: object, path: str) -> ET.Element | None:
    if not isinstance(element, ET.Element):
        return None
    return element if path == "." else element.find(path)


def _check_path(path: str) -> None:
    try:
        ET.Element("x").find(path)
    except (SyntaxError, ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{path!r:.60} is no path of elements: {error!s:.60}") from None


def _check_depth(root: ET.Element) -> None:
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [child for element in level for child in element]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
