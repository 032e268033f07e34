"""Numbers as devices write them: plain, with a decimal comma, hexadecimal, before a unit.

A reader takes what a payload holds and returns an exact number (int, float or Decimal).
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum

from streamsql.mapping.shown_values import shown

Number = int | float | Decimal
NumberReader = Callable[[object], Number]

MAX_NUMBER_TEXT = 100
_LARGEST_POWER = 400

_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_COMMA = re.compile(
    r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d{1,3}(?:[ '\u2019\u00a0\u202f]\d{3})+|\d+)(?:,\d*)?", re.ASCII
)
_GROUPING = re.compile("[. '\u2019\u00a0\u202f]")
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,16}")


class NumberFormat(StrEnum):
    """The FORMAT of a column of numbers."""

    PLAIN = "plain"
    COMMA = "comma"
    HEX = "hex"
    LEADING = "leading"


def number_reader(form: NumberFormat) -> NumberReader:
    """Return the function that reads numbers of a format.

    It raises ValueError for what is no finite number of that format. Numbers of the payload are
    taken as they are, except as HEX, whose digits are text.

    Examples:
        >>> number_reader(NumberFormat.COMMA)("1.234,5"), number_reader(NumberFormat.HEX)("0x1f")
        (Decimal('1234.5'), 31)
        >>> number_reader(NumberFormat.LEADING)("21.5 °C")
        Decimal('21.5')
    """
    return _READERS[form]


def _plain(value: object) -> Number:
    if isinstance(value, str):
        text = _bounded(value)
        if _PLAIN.fullmatch(text):
            return _parsed(text)
        raise ValueError(f"{shown(value)} is no number")
    return _native(value)


def _comma(value: object) -> Number:
    if not isinstance(value, str):
        return _native(value)
    text = _bounded(value)
    if not _COMMA.fullmatch(text):
        raise ValueError(f"{shown(value)} is no number with a decimal comma, such as 1.234,5")
    return _parsed(_GROUPING.sub("", text).replace(",", "."))


def _hexadecimal(value: object) -> Number:
    if not isinstance(value, str) or not _HEX.fullmatch(_bounded(value)):
        raise ValueError(f"{shown(value)} is no hexadecimal text of at most 16 digits")
    return int(value.strip(), 16)


def _leading(value: object) -> Number:
    if not isinstance(value, str):
        return _native(value)
    found = _PLAIN.match(value[:MAX_NUMBER_TEXT].strip())
    if not found:
        raise ValueError(f"{shown(value)} does not begin with a number")
    return _parsed(found.group())


def _native(value: object) -> Number:
    if isinstance(value, bool):
        raise ValueError(f"{shown(value)} is no number; name its numbers: VALUES ('true' = 1, …)")
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _LARGEST_POWER:
        return value
    raise ValueError(f"{shown(value)} is no finite number")


def _bounded(text: str) -> str:
    stripped = text.strip()
    if len(stripped) > MAX_NUMBER_TEXT:
        raise ValueError(f"a number has {len(stripped)} characters; the max is {MAX_NUMBER_TEXT}")
    return stripped


def _parsed(text: str) -> Number:
    return int(text) if _WHOLE.fullmatch(text) else Decimal(text)


_READERS: dict[NumberFormat, NumberReader] = {
    NumberFormat.PLAIN: _plain,
    NumberFormat.COMMA: _comma,
    NumberFormat.HEX: _hexadecimal,
    NumberFormat.LEADING: _leading,
}
