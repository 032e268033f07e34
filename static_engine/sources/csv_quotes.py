"""Quotes of a CSV file that are not closed: the parser takes the rest of the file for a text."""

import re
from collections.abc import Iterable

_QUOTE = re.compile(b'"')
_ENDS = b"\r\n"


def open_quote(blocks: Iterable[bytes], delimiter: str) -> int | None:
    r"""Return the place of a quote that opens the last field and is not closed, or None.

    A quote opens a field where it is its first character; two in a quoted field are one of its
    text.

    Args:
        blocks: Of the file, in order.
        delimiter: Between fields.

    Examples:
        >>> open_quote([b'a,"b', b'"",c\n'], ","), open_quote([b'a,"b"'], ",")
        (2, None)
        >>> open_quote([b'5" pipe,1'], ",") is None
        True
    """
    before_field = _ENDS + delimiter.encode()
    opened: int | None = None
    closed: int | None = None  # the last quote in a quoted field: its end, or the first of two
    start, last = 0, _ENDS[:1]
    for block in blocks:
        for found in _QUOTE.finditer(block):
            here = found.start()
            place = start + here
            if opened is not None and closed == place - 1:
                closed = None
            elif opened is not None and closed is None:
                closed = place
            else:
                before = block[here - 1 : here] if here else last
                opened, closed = (place, None) if before in before_field else (None, None)
        start, last = start + len(block), block[-1:] or last
    return opened if closed is None else None
