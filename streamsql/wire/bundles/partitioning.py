"""Hash partitioning that every process computes alike (Python's own hash differs by process)."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class HomeOwner:
    """Chooses the home of the first value of a key that has one, else the site of its hash.

    Rows about a thing then live where the thing's own rows arrive, and most of what is derived from
    neighbours that share a site stays there.

    Attributes:
        homes: Value to index of its site.

    Examples:
        >>> owner = HomeOwner({"a": 1})
        >>> owner(("a", "b"), ["one", "two"]), owner((7,), ["one"])
        ('two', 'one')
    """

    homes: Mapping[str, int]

    def __call__(self, key: Row, sites: Sequence[str]) -> str:
        """Return the site that owns a key."""
        for value in key:
            home = self.homes.get(value) if isinstance(value, str) else None
            if home is not None and 0 <= home < len(sites):
                return sites[home]
        return site_of(key, sites)


def _canonical(value: Value) -> Value:
    """Return one of all equal values: 1 for 1.0, 0 for -0.0; equal keys must meet."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
