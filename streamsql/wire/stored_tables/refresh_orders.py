"""Orders to the static engine to refresh views at times of day."""

import msgspec

from streamsql.algebra.operators import Plan
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import MINUTES_A_DAY


class RefreshOrder(msgspec.Struct, frozen=True):
    """A view to be refreshed.

    Attributes:
        definition: Its name, columns and times of day.
        plan: What computes its rows, over stored tables.
        zone: The time zone that the times of day are in, by its IANA name.
        problem: Why there is no plan any more: what it reads has changed. The last rows stay.
    """

    definition: SourceDefinition
    plan: Plan | None
    zone: str = "UTC"
    problem: str = ""

    def __post_init__(self) -> None:
        """Check the times of day.

        Raises:
            ValueError: There are none, or one is no time of day.
        """
        schedule = self.definition.refresh
        if schedule is None or not schedule.times:
            raise ValueError(f"{self.definition.name!r:.80} is not refreshed")
        if not all(0 <= minute <= MINUTES_A_DAY for minute in schedule.times):
            raise ValueError(f"{self.definition.name!r:.80} is refreshed at no time of day")
