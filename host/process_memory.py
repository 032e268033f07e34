"""How much memory this process takes, where the system says it (Linux)."""

import resource
from pathlib import Path

_PAGES = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """Return what is in memory; None where the system does not say."""
    return _pages(1)


def address_space_bytes() -> int | None:
    """Return what `RLIMIT_AS` bounds; None where the system does not say."""
    return _pages(0)


def _pages(field: int) -> int | None:
    try:
        pages = int(_PAGES.read_text(encoding="ascii").split()[field])
    except (OSError, IndexError, ValueError):
        return None
    return pages * resource.getpagesize()
