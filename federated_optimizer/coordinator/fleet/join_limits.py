"""Bounds of attempts to join that fail: per address and in all, so many in a minute."""

from collections import deque

PER_ADDRESS = 10
TOGETHER = 100
WINDOW_SECONDS = 60.0


class JoinLimits:
    """Remembers the attempts of the last minute, at most `TOGETHER`."""

    def __init__(self) -> None:
        self._attempts: deque[tuple[float, str]] = deque()

    def admit(self, address: str, now: float) -> bool:
        """Count an attempt, if there may be one more.

        Args:
            address: Of the client.
            now: Seconds of a clock that only goes forward.
        """
        while self._attempts and self._attempts[0][0] <= now - WINDOW_SECONDS:
            self._attempts.popleft()
        same = sum(1 for _, other in self._attempts if other == address)
        if same >= PER_ADDRESS or len(self._attempts) >= TOGETHER:
            return False
        self._attempts.append((now, address))
        return True
