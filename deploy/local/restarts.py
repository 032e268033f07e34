"""Restarts of services that died: when, after which pause, and when it is no use."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from deploy.local.service_processes import Death

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds; each further death in a row doubles the pause."""
SETTLED_SECONDS = 60.0
"""A service that ran for so long has recovered: its next pause is the first again."""
MOST_VITAL_DEATHS = 5
"""In a row; then the federation is stopped, since a vital service does not stay up."""
OPERATORS_FAULT = 2
"""Exit status of a service whose cause the operator can correct: starting again changes nothing."""


@dataclass(slots=True)
class _Row:
    """Deaths of a service in a row, and when it is started again."""

    deaths: int = 0
    due: float | None = None


class Restarts:
    """The back-off of each service. Bounded by the services.

    Args:
        clock: Seconds, never back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rows: dict[str, _Row] = {}

    def pause_after(self, death: Death) -> float | None:
        """Note a death; return the seconds until the restart, None if there is none."""
        row = self._rows.setdefault(death.name, _Row())
        if death.ran_seconds >= SETTLED_SECONDS:
            row.deaths = 0
        row.deaths += 1
        row.due = None
        too_often = death.service.spec.vital and row.deaths > MOST_VITAL_DEATHS
        if death.status == OPERATORS_FAULT or too_often:
            return None
        pause: float = min(FIRST_PAUSE * 2 ** min(row.deaths - 1, 16), LONGEST_PAUSE)
        row.due = self._clock() + pause
        return pause

    def due(self) -> tuple[str, ...]:
        """Return the services to start now; each is returned once per death."""
        now = self._clock()
        found = [name for name, row in self._rows.items() if row.due is not None and row.due <= now]
        for name in found:
            self._rows[name].due = None
        return tuple(found)

    def forget(self, name: str) -> None:
        """Leave a service to whoever asked for something else meanwhile."""
        self._rows.pop(name, None)
