"""Former states of a table that nobody needs leave its metadata, which each commit writes anew.

A pipeline commits every second: without this, the metadata of a day has tens of thousands of
states, and a commit takes seconds. The files that go with a state are the care's to remove.
"""

import logging
from itertools import islice, pairwise

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

log = logging.getLogger(__name__)

NEWEST = 20
"""That many states stay: readers may be about to read them. So many metadata files stay, too.

pyiceberg copies all states some twenty times in a commit: with 100 and 100 of slack a commit took
115 ms of processor time, with 20 and 20 it takes 33 ms.
"""
SLACK = 20
"""That many more are there before some are discarded: it is a commit of its own."""
_HOUR = 3_600_000
_READING = 2 * _HOUR
_DAY = 24 * _HOUR


def discard_former_states(table: Table) -> int:
    """Discard states of a table that only grows; return how many.

    These stay: the newest, one of each hour of the last day, and for two hours those around a
    commit that took files away, as a compaction does: somebody may still read them. So do states
    with a tag or branch of somebody else's.

    Args:
        table: As it is after a commit.
    """
    metadata = table.metadata
    states = sorted(metadata.snapshots, key=lambda state: state.sequence_number or 0)
    if len(states) < NEWEST + SLACK:
        return 0
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    old = [each for each in _needless(states) if each not in named]
    if len(old) < SLACK:
        return 0
    try:
        table.maintenance.expire_snapshots().by_ids(old).commit()
    except (CommitFailedException, ValueError) as error:
        # Care has changed the table meanwhile: after the next commit. A batch does not fail by it.
        log.info("former states of %s stay: %s", ".".join(table.name()), error)
        return 0
    return len(old)


def _needless(states: list[Snapshot]) -> list[int]:
    found: list[int] = []
    ages, hour = _ages(states), -1
    for (state, after), age in islice(
        zip(pairwise(states), ages, strict=False), len(states) - NEWEST
    ):
        begins_hour = state.timestamp_ms // _HOUR != hour
        hour = state.timestamp_ms // _HOUR
        swaps = not (_only_adds(state) and _only_adds(after))
        if not (begins_hour and age < _DAY) and not (swaps and age < _READING):
            found.append(state.snapshot_id)
    return found


def _ages(states: list[Snapshot]) -> list[int]:
    """Return how old states are: a clock that jumps makes none older by more than an hour."""
    ages = [0]
    for before, after in pairwise(reversed(states)):
        ages.append(ages[-1] + min(max(before.timestamp_ms - after.timestamp_ms, 0), _HOUR))
    return ages[::-1]


def _only_adds(state: Snapshot) -> bool:
    return state.summary is not None and state.summary.operation == Operation.APPEND
