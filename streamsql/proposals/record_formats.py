"""Fields of payloads that are lines or records: CSV and SenML."""

from collections.abc import Iterable

import msgspec

from streamsql.mapping.payloads.payload_formats import CsvReader
from streamsql.mapping.payloads.payload_reader import RefusedRow

_SEPARATORS = ":/"
_VALUES = ("v", 2, "vs", 3, "vb", 4, "s", 5)


class SenmlPart(msgspec.Struct):
    """Name that a device gives one of its values; empty for the value of the device itself."""

    unit: str
    values: list[object]


def csv_lines(text: str, delimiter: str) -> tuple[bool, list[dict[str, object]]]:
    """Return (whether there is a header, the lines: values by name, or by `[0]`).

    Raises:
        ValueError: The lines are of different lengths.
    """
    header = _has_header(text.splitlines(), delimiter)
    lines: list[dict[str, object]] = []
    for _, element in CsvReader(delimiter=delimiter, header=header).elements(text):
        if isinstance(element, RefusedRow):
            raise ValueError(element.reason)
        if isinstance(element, dict):
            lines.append({str(name): value for name, value in element.items()})
        elif isinstance(element, list):
            lines.append({f"[{place}]": value for place, value in enumerate(element)})
    return header, lines


def senml_parts(records: Iterable[object]) -> dict[str, SenmlPart]:
    """Return the named parts of SenML records of JSON or CBOR."""
    base, base_unit = "", ""
    found: dict[str, SenmlPart] = {}
    for record in records:
        if not isinstance(record, dict):
            continue
        base = str(record.get("bn", record.get(-2, base)))
        base_unit = str(record.get("bu", record.get(-4, base_unit)))
        name = str(record.get("n", record.get(0, "")))
        if not base:
            name = min((name.rpartition(sign)[2] for sign in _SEPARATORS), key=len)
        value = next((record[label] for label in _VALUES if label in record), None)
        if value is not None:
            unit = str(record.get("u", record.get(1, base_unit)))
            found.setdefault(name, SenmlPart(unit, [])).values.append(value)
    return found


def _has_header(lines: list[str], delimiter: str) -> bool:
    """Whether the first line holds names: different, none a number, above lines with numbers."""
    names = [cell.strip() for cell in lines[0].split(delimiter)]
    if len(set(names)) < len(names) or not all(names) or any(map(_is_number, names)):
        return False
    return any(_is_number(cell) for line in lines[1:] for cell in line.split(delimiter))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
