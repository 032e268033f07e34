"""What the queues between operators have to say of themselves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueMeasures:
    """One queue; "f1/2-3.0" is what node 2 has given to port 0 of node 3.

    Attributes:
        query: The query it belongs to.
        entity: Its name.
        rows: Changed rows that wait now.
        batches: Changes that wait now.
        peak_rows: The most rows that ever waited.
    """

    query: str
    entity: str
    rows: int
    batches: int
    peak_rows: int
