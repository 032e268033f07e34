"""Take passwords out of texts that are shown: statements, errors, log lines.

What is stored and what engines get keeps them. A statement that names its database as `secret:NAME`
has none to take out.
"""

import re
from typing import Any, TypeVar

HIDDEN = "***"
_MAX_DEPTH = 64

# Up to the last @, for a password may hold one; within a text to the end of its literal, where a
# quote is doubled, or of its word.
_ADDRESS = re.compile(r"(?is)\A([a-z][a-z0-9+.\-]*://[^:/]*:).*@")
_IN_TEXT = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]*://[^:/\s'\"]*:)(?:[^'\"\s]|''|\"\")*@")
_PARAMETER = re.compile(
    r"(?i)([?&;](?:[a-z_-]*(?:password|token|secret)|passwd|pwd|(?:secret|access|api)[_-]?key)=)"
    r"(?:[^'\"&;\s]|'')+"
)

T = TypeVar("T")


def redacted(text: str) -> str:
    """Return a text with what looks like a password replaced.

    Examples:
        >>> redacted("url = 'postgresql://me:p''w@rd@db/base?sslmode=require'")
        "url = 'postgresql://me:***@db/base?sslmode=require'"
        >>> redacted("jdbc:x://db/base?user=me&password=pw&a=1")
        'jdbc:x://db/base?user=me&password=***&a=1'
        >>> redacted("mqtt://broker:1883"), redacted("WHERE pwd = 5 AND token = 'x'")
        ('mqtt://broker:1883', "WHERE pwd = 5 AND token = 'x'")
    """
    if "://" not in text and "=" not in text:
        return text
    return _PARAMETER.sub(rf"\g<1>{HIDDEN}", _IN_TEXT.sub(rf"\g<1>{HIDDEN}@", text))


def holds_secret(text: str) -> bool:
    """Whether a text has something in it that `redacted` would replace.

    Examples:
        >>> holds_secret("http://me:pw@meter/now"), holds_secret("/now?api_key=1f")
        (True, True)
        >>> holds_secret("http://meter/now?unit=3")
        False
    """
    return redacted(text) != text


def redacted_address(url: str) -> str:
    """Return an address of its own, which may hold spaces and quotes, without its password.

    Examples:
        >>> redacted_address("postgresql://me:a 'b' c@db/base")
        'postgresql://me:***@db/base'
    """
    return redacted(_ADDRESS.sub(rf"\g<1>{HIDDEN}@", url))


def redacted_values(value: T, depth: int = _MAX_DEPTH) -> T:
    """Return a JSON value with all its texts redacted."""
    found: Any = value
    if depth <= 0:
        return value
    if isinstance(found, str):
        found = redacted(found)
    elif isinstance(found, dict):
        found = {name: redacted_values(each, depth - 1) for name, each in found.items()}
    elif isinstance(found, list | tuple):
        found = [redacted_values(each, depth - 1) for each in found]
    same: T = found
    return same
