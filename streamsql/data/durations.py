"""Durations as text: `'90 s'`, `'30 min'`, `'1 h 30 min'`, in microseconds."""

import re

_UNITS = {
    1: ("us", "microsecond", "microseconds"),
    1_000: ("ms", "millisecond", "milliseconds"),
    1_000_000: ("s", "sec", "secs", "second", "seconds"),
    60_000_000: ("m", "min", "mins", "minute", "minutes"),
    3_600_000_000: ("h", "hour", "hours"),
    86_400_000_000: ("d", "day", "days"),
    604_800_000_000: ("week", "weeks"),
}
_SIZES = {name: size for size, names in _UNITS.items() for name in names}
_PART = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]+)\s*(?:,|\band\b)?")

LONGEST = 100 * 366 * 86_400_000_000
"""A century in microseconds: anything longer is a mistake."""


def unit_size(word: str) -> int | None:
    """Return a time unit in microseconds, or None for another word.

    Examples:
        >>> unit_size("MINUTES"), unit_size("rows")
        (60000000, None)
    """
    return _SIZES.get(word.lower())


def parse_duration(text: str) -> int:
    """Return a duration in microseconds; a bare number means seconds.

    Raises:
        ValueError: It is no duration, or longer than a century.

    Examples:
        >>> parse_duration("90 s"), parse_duration("1 h 30 min"), parse_duration("500ms")
        (90000000, 5400000000, 500000)
    """
    stripped = text.strip()
    if re.fullmatch(r"\d{1,15}(\.\d{1,9})?", stripped):
        return _checked(float(stripped) * 1_000_000, text)
    position, total = 0, 0.0
    while position < len(stripped):
        part = _PART.match(stripped, position)
        size = unit_size(part.group(2)) if part else None
        if part is None or size is None:
            raise ValueError(f"{text!r:.60} is not a duration")
        total += float(part.group(1)) * size
        position = part.end()
    if not stripped:
        raise ValueError("an empty text is not a duration")
    return _checked(total, text)


def _checked(micros: float, text: str) -> int:
    if micros > LONGEST:
        raise ValueError(f"{text!r:.60} is longer than a century")
    return round(micros)


def duration_text(micros: int) -> str:
    """Return a duration in the largest unit that keeps it whole.

    Examples:
        >>> duration_text(90_000_000), duration_text(250_000), duration_text(1_500)
        ('90 s', '250 ms', '1500 us')
    """
    for unit, size in (("h", 3_600_000_000), ("min", 60_000_000)):
        if micros % size == 0 and micros >= 2 * size:
            return f"{micros // size} {unit}"
    if micros % 1_000_000 == 0:
        return f"{micros // 1_000_000} s"
    if micros % 1_000 == 0:
        return f"{micros // 1_000} ms"
    return f"{micros} us"
