"""Orders to the static engine to refresh views at times of day."""

import msgspec

from streamsql.algebra.operators import Plan
from streamsql.catalog.definitions import SourceDefinition


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
