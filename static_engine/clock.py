"""The wall clock."""

import time


def wall_clock() -> int:
    """Return microseconds since 1970 UTC."""
    return time.time_ns() // 1000
