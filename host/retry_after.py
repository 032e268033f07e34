"""The header Retry-After: how long another host asks to be left alone."""

from datetime import UTC
from email.utils import parsedate_to_datetime

from streamsql.data.types import MICROSECONDS

MAX_RETRY_AFTER = 3_600.0
"""Seconds that another host can make us wait."""
_MAX_TEXT = 100


def retry_after(text: str, now: int) -> float | None:
    """Return seconds, at most an hour; None if the text is neither a number nor a date.

    Args:
        text: Of another host: a number of seconds, or a date.
        now: Microseconds since 1970.

    Examples:
        >>> retry_after("120", 0), retry_after("Thu, 01 Jan 1970 00:00:05 GMT", 2_000_000)
        (120.0, 3.0)
        >>> retry_after("soon", 0) is None
        True
    """
    text = text.strip()[:_MAX_TEXT]
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text)
        left = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now / MICROSECONDS
    except (ValueError, OverflowError):
        # A year or an offset beyond those of datetime is an OverflowError.
        return None
    return min(max(left, 0.0), MAX_RETRY_AFTER)
