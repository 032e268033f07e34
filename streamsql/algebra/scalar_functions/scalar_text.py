"""Text functions. Positions count code points from 1; results are bounded in length.

Where PostgreSQL raises an error (a part number of 0, a pattern that ends in its escape character, a
result too long) the value is NULL: a running query must not die of one reading.
"""

from collections.abc import Callable
from typing import Any

from streamsql.algebra.scalar_functions.like_patterns import like
from streamsql.data.types import text_of

MAX_LENGTH = 1_000_000
"""Most characters of a text that a function makes longer: what doubles its text must end."""


def _left(text: str, count: int) -> str:
    """Return the first characters; with a negative count all but the last."""
    return text[:count]


def _right(text: str, count: int) -> str:
    """Return the last characters; with a negative count all but the first."""
    return text[-count:] if count else ""


def _split_part(text: str, delimiter: str, number: int) -> str | None:
    """Return the part of that number from 1, or from -1 backwards; empty where there is none."""
    parts = text.split(delimiter) if delimiter else [text]
    if number == 0:
        return None
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _padding(length: int, fill: str) -> str:
    return (fill * (length // len(fill) + 1))[:length] if fill and length > 0 else ""


def _pad_left(text: str, length: int, fill: str = " ") -> str | None:
    """Return the text filled up on the left, or cut on the right, to a length."""
    if length > MAX_LENGTH:
        return None
    return _padding(length - len(text), fill) + text[: max(length, 0)]


def _pad_right(text: str, length: int, fill: str = " ") -> str | None:
    if length > MAX_LENGTH:
        return None
    return text[: max(length, 0)] + _padding(length - len(text), fill)


def _repeat(text: str, count: int) -> str | None:
    if len(text) * count > MAX_LENGTH:
        return None
    return text * count


def _concatenated(first: Any, second: Any) -> str | None:
    before, behind = text_of(first), text_of(second)
    return before + behind if len(before) + len(behind) <= MAX_LENGTH else None


def _replaced(text: str, old: str, new: str) -> str | None:
    longer = len(new) - len(old)
    if longer > 0 and len(text) + text.count(old) * longer > MAX_LENGTH:
        return None
    return text.replace(old, new)


def _initial_capitals(text: str) -> str:
    """Return every word in lower case with a capital first; words are letters and digits."""
    result, inside = [], False
    for character in text:
        result.append(character.lower() if inside else character.upper())
        inside = character.isalnum()
    return "".join(result)


def _character(code: int) -> str | None:
    legal = 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if legal else None


def _translated(text: str, old: str, new: str) -> str:
    """Return the text with characters of `old` as those of `new`; without counterpart they go."""
    table: dict[int, str | None] = {}
    for number, character in enumerate(old):
        table.setdefault(ord(character), new[number] if number < len(new) else None)
    return text.translate(table)


TEXT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "||": _concatenated,
    "REPLACE": _replaced,
    "BTRIM": lambda text, characters: text.strip(characters) if characters else text,
    "LTRIM": lambda text, characters=None: text if characters == "" else text.lstrip(characters),
    "RTRIM": lambda text, characters=None: text if characters == "" else text.rstrip(characters),
    "LEFT": _left,
    "RIGHT": _right,
    "SPLIT_PART": _split_part,
    "STARTS_WITH": lambda text, part: text.startswith(part),
    "ENDS_WITH": lambda text, part: text.endswith(part),
    "LPAD": _pad_left,
    "RPAD": _pad_right,
    "REPEAT": _repeat,
    "REVERSE": lambda text: text[::-1],
    "INITCAP": _initial_capitals,
    "ASCII": lambda text: ord(text[0]) if text else 0,
    "CHR": _character,
    "TRANSLATE": _translated,
    "OCTET_LENGTH": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "LIKE ESCAPE": like,
}
"""Strict functions of texts by name."""
