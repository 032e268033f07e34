"""Trials of queries on the past, as the console sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from federated_optimizer.alarm_life_cycle import AlarmState
from streamsql.data.schema import Schema
from streamsql.data.types import Row


@dataclass(frozen=True, slots=True)
class PastChange:
    """A row came or went, or raised an alarm or was cleared.

    Attributes:
        at: Microseconds since 1970 UTC.
        weight: How often the row came, or below 0 went; 0 for an alarm.
        alarm: What became of the alarm; None: it is a change of the result.
    """

    at: int
    weight: int
    row: Row
    alarm: AlarmState | None = None


@dataclass(frozen=True, slots=True)
class HistoryTrialInfo:
    """A trial as far as it has come. Times are microseconds since 1970 UTC.

    Attributes:
        maker: The account that began it.
        sources: All that the token that began it lets read; None without such a limit.
        text: The statement.
        alarm: Name of the alarm that is tried, or empty.
        at: The time in the past that it has reached; None: it reads what was before.
        readings: Readings so far.
        seconds: Time that it has taken.
        events: Number of changes so far.
        dropped: How many of them are not kept, because they are too many.
        notes: What its reader should know.
        problem: Why it failed, or empty.
        done: Whether it is over.
    """

    id: str
    maker: str
    sources: tuple[str, ...] | None
    text: str
    columns: Schema
    since: int
    until: int
    alarm: str = ""
    at: int | None = None
    readings: int = 0
    seconds: float = 0.0
    events: int = 0
    dropped: int = 0
    notes: tuple[str, ...] = ()
    code: str = ""
    problem: str = ""
    hint: str = ""
    done: bool = False

    @property
    def share(self) -> float:
        """The part of the interval that is done, from 0 to 1."""
        if self.at is None:
            return 0.0
        return min(max((self.at - self.since) / (self.until - self.since), 0.0), 1.0)


class HistoryTrialsApi(Protocol):
    """Trials that RUN … ON HISTORY has begun. The oldest that are over are forgotten."""

    def all(self) -> tuple[HistoryTrialInfo, ...]:
        """Return the trials, the newest first."""
        ...

    def info(self, trial_id: str) -> HistoryTrialInfo:
        """Return a trial as far as it has come.

        Raises:
            KeyError: There is none.
        """
        ...

    def changes(self, trial_id: str, since: int, most: int) -> Sequence[PastChange]:
        """Return up to `most` changes behind the first `since` ones.

        Raises:
            KeyError: There is no such trial.
        """
        ...

    async def stop(self, trial_id: str) -> HistoryTrialInfo:
        """End a trial; what it has given stays for a while.

        Raises:
            KeyError: There is none.
        """
        ...
