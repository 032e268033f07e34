"""The clock for waits. Nobody can set it, unlike the wall's, so no wait becomes an hour longer."""

import time


def elapsed() -> int:
    """Return microseconds since some moment; it only goes forward."""
    return time.monotonic_ns() // 1_000
