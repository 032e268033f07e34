"""Former states of a table that nobody needs leave its metadata, which each commit writes anew.

A pipeline commits every second: without this, the metadata of a day has tens of thousands of
states, and a commit takes seconds. The files that go with a state are the care's to remove.
"""

from itertools import islice, pairwise

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

NEWEST = 100
"""That many states stay: readers may be about to read them."""
SLACK = 100
"""That many more are there before some are discarded: it is a commit of its own."""
_HOUR = 3_600_000
_READING = 2 * _HOUR
_DAY = 24 * _HOUR


def discard_former_states(table: Table) -> int:
    """Discard states of a table that only grows; return how many.

    These stay: the newest, one of each hour of the last day, and for two hours those around a
    commit that took files away, as a compaction does: somebody may still read them.

    Args:
        table: As it is after a commit.
    """
    states = sorted(table.metadata.snapshots, key=lambda state: state.sequence_number or 0)
    if len(states) < NEWEST + SLACK:
        return 0
    old = _needless(states)
    if len(old) < SLACK:
        return 0
    try:
        table.maintenance.expire_snapshots().by_ids(old).commit()
    except CommitFailedException:
        return 0  # somebody else has changed the table: after the next commit
    return len(old)


def _needless(states: list[Snapshot]) -> list[int]:
    found: list[int] = []
    newest, hour = states[-1].timestamp_ms, -1
    for state, after in islice(pairwise(states), len(states) - NEWEST):
        age = newest - state.timestamp_ms
        begins_hour = state.timestamp_ms // _HOUR != hour
        hour = state.timestamp_ms // _HOUR
        swaps = not (_only_adds(state) and _only_adds(after))
        if not (begins_hour and age < _DAY) and not (swaps and age < _READING):
            found.append(state.snapshot_id)
    return found


def _only_adds(state: Snapshot) -> bool:
    return state.summary is not None and state.summary.operation == Operation.APPEND
