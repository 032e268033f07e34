"""Defects of ours that a service's loop meets: it goes on, unless they stay."""

import logging
import time

log = logging.getLogger(__name__)

MAX_IN_A_ROW = 10
LOG_SECONDS = 60.0


class Defects:
    """Counts the turns of a loop that failed; at most one a minute is logged.

    Args:
        what: What fails: "a step".
        who: What continues: "the site".

    Attributes:
        count: Defects so far.
    """

    def __init__(self, what: str, who: str) -> None:
        self.count = 0
        self._what = what
        self._who = who
        self._in_a_row = 0
        self._log_at = float("-inf")

    def passed(self) -> None:
        """Note a turn without a defect."""
        self._in_a_row = 0

    def survives(self, error: Exception) -> bool:
        """Note a turn that failed; return whether the loop may go on.

        A loop that fails again and again ends: it would only seem to work.
        """
        self.count += 1
        self._in_a_row += 1
        if self._in_a_row >= MAX_IN_A_ROW:
            return False
        now = time.monotonic()
        if now >= self._log_at:
            self._log_at = now + LOG_SECONDS
            text = "a defect interrupted %s (defect number %d); %s continues"
            log.error(text, self._what, self.count, self._who, exc_info=error)
        return True
