"""Hash partitioning that every process computes alike (Python's own hash differs by process)."""

import zlib
from collections.abc import Sequence

from streamsql.data.types import Row, Value


def site_of(key: Row, sites: Sequence[str]) -> str:
    """Return the site that owns a key.

    Examples:
        >>> site_of(("a",), ["one"])
        'one'
    """
    if len(sites) == 1:
        return sites[0]
    text = "\x1f".join([repr(_canonical(value)) for value in key])
    return sites[zlib.crc32(text.encode()) % len(sites)]


def _canonical(value: Value) -> Value:
    """Return one of all equal values: 1 for 1.0, 0 for -0.0; equal keys must meet."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
