"""One payload that a device sent, and what it looks like."""

from collections.abc import Callable

import msgspec

from streamsql.mapping.payloads.cbor_values import decode_cbor
from streamsql.mapping.payloads.payload_formats import JsonReader
from streamsql.mapping.payloads.payload_reader import MAX_PAYLOAD
from streamsql.mapping.source_mapping import PayloadFormat

MAX_TEXT = 4_000
"""Characters of a payload that is proposed as one text."""
_SENML = frozenset({"bn", "bt", "bu", "bv", "bs", "bver", "n", "u", "v", "vs", "vb", "vd", "s", "t",
                    "ut"})  # fmt: skip
_SENML_NUMBERS = range(-6, 9)
_DELIMITERS = ";\t,"


class Sample(msgspec.Struct, frozen=True):
    """A payload.

    Attributes:
        topic: Empty where the connector knows none.
        arrival: Microseconds since 1970.
    """

    payload: bytes
    topic: str = ""
    arrival: int = 0


class Decoded(msgspec.Struct, frozen=True):
    """A payload and what it seems to be.

    Attributes:
        root: Objects, arrays and values; of a text the text.
        delimiter: Of CSV.
    """

    sample: Sample
    form: PayloadFormat
    root: object
    delimiter: str = ""


def decoded(sample: Sample) -> Decoded | None:
    """Return what a payload seems to be, or None if it is nothing that can be read."""
    payload = sample.payload
    if not payload or len(payload) > MAX_PAYLOAD:
        return None
    for read in (_json, _text, _cbor):
        found = _tried(read, sample)
        if found is not None:
            return found
    return None


def _tried(read: Callable[[Sample], Decoded | None], sample: Sample) -> Decoded | None:
    try:
        return read(sample)
    except ValueError:
        return None


def _json(sample: Sample) -> Decoded | None:
    root = JsonReader().decode(sample.payload, sample.arrival)
    if not isinstance(root, dict | list):
        return None  # a bare number is a text, too
    form = PayloadFormat.SENML if _is_senml(root) else PayloadFormat.JSON
    return Decoded(sample, form, root)


def _text(sample: Sample) -> Decoded | None:
    text = sample.payload.decode("utf-8-sig").strip()
    if not text or "\0" in text:
        return None
    delimiter = _delimiter_of(text)
    if delimiter:
        return Decoded(sample, PayloadFormat.CSV, text, delimiter)
    return Decoded(sample, PayloadFormat.TEXT, text) if len(text) <= MAX_TEXT else None


def _cbor(sample: Sample) -> Decoded | None:
    root = decode_cbor(sample.payload)
    if not isinstance(root, dict | list):
        return None
    form = PayloadFormat.SENML_CBOR if _is_senml(root) else PayloadFormat.CBOR
    return Decoded(sample, form, root)


def _is_senml(root: object) -> bool:
    """Whether all elements are records: known labels only, and one with a name and a value."""
    if not isinstance(root, list) or not root:
        return False
    return all(_is_record(element) for element in root) and any(
        {"n", "bn", 0, -2} & element.keys() for element in root
    )


def _is_record(element: object) -> bool:
    if not isinstance(element, dict):
        return False
    if all(isinstance(label, int) for label in element):
        return all(label in _SENML_NUMBERS for label in element)
    return element.keys() <= _SENML


def _delimiter_of(text: str) -> str:
    """Return the sign that stands equally often in each of several lines, or empty."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or '"' in text or text.startswith("<"):
        return ""
    for sign in _DELIMITERS:
        often = lines[0].count(sign)
        if often and all(line.count(sign) == often for line in lines):
            return sign
    return ""
