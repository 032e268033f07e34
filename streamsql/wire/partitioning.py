"""Hash partitioning that every process computes alike (Python's own hash differs by process)."""

import zlib
from collections.abc import Sequence

from streamsql.data.types import Row


def site_of(key: Row, sites: Sequence[str]) -> str:
    """Return the site that owns a key.

    Examples:
        >>> site_of(("a",), ["one"])
        'one'
    """
    if len(sites) == 1:
        return sites[0]
    text = "\x1f".join(map(repr, key))
    return sites[zlib.crc32(text.encode()) % len(sites)]
