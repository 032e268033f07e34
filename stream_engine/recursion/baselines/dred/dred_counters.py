"""What delete and rederive counts beyond what every strategy does."""

from dataclasses import dataclass

from stream_engine.recursion.program.fixpoint_options import FixpointCounters


@dataclass(slots=True)
class DredCounters(FixpointCounters):
    """Work done since the start; `rederived` counts over-deleted rows that came back.

    Attributes:
        over_deleted: Rows taken out because one of their derivations had gone.
        waves: Deletion waves this site took part in.
        generations: How often all sites began again from their leaf rows.
        sent_control: Of `sent_rows`, those that only coordinate.
    """

    over_deleted: int = 0
    waves: int = 0
    generations: int = 0
    sent_control: int = 0
