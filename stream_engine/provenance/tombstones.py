"""Tokens known to be dead, so that late messages cannot revive what rested on them.

Kills and derivations travel on different channels, so a derivation that mentions a dead token may
arrive after the kill. Every incoming annotation is restricted by the tombstones.

Tokens of one origin (site and epoch) are consecutive numbers, and dead ones are kept as intervals.
Two intervals are always separated by a token that is alive (or not yet given out), so the memory is
bounded by the number of live tokens. Epochs that are over cost one number per site.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable

from stream_engine.provenance.tokens import (
    SEQUENCE_BITS,
    epoch_of,
    is_epoch_at_most,
    origin_of,
    sequence_of,
    site_index_of,
)

_LAST_SEQUENCE = (1 << SEQUENCE_BITS) - 1


class Tombstones:
    """The set of dead tokens.

    Examples:
        >>> dead = Tombstones()
        >>> dead.add_all([5, 6, 8])
        >>> 6 in dead, 7 in dead, dead.interval_count
        (True, False, 2)
    """

    def __init__(self) -> None:
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}
        self._epochs: dict[int, int] = {}

    def __contains__(self, token: int) -> bool:
        """Whether a token is dead."""
        bound = self._epochs.get(site_index_of(token))
        if bound is not None and is_epoch_at_most(epoch_of(token), bound):
            return True
        starts = self._starts.get(origin_of(token))
        if not starts:
            return False
        sequence = sequence_of(token)
        at = bisect_right(starts, sequence) - 1
        return at >= 0 and sequence < self._ends[origin_of(token)][at]

    @property
    def interval_count(self) -> int:
        """Number of intervals kept, which is the memory used."""
        return sum(map(len, self._starts.values()))

    def add_all(self, tokens: Iterable[int]) -> None:
        """Declare tokens dead."""
        for token in tokens:
            if token not in self:
                self._add(origin_of(token), sequence_of(token))

    def _add(self, origin: int, sequence: int) -> None:
        starts = self._starts.setdefault(origin, [])
        ends = self._ends.setdefault(origin, [])
        at = bisect_right(starts, sequence)
        joins_left = at > 0 and ends[at - 1] == sequence
        joins_right = at < len(starts) and starts[at] == sequence + 1
        if joins_left and joins_right:
            ends[at - 1] = ends.pop(at)
            del starts[at]
        elif joins_left:
            ends[at - 1] = sequence + 1
        elif joins_right:
            starts[at] = sequence
        else:
            starts.insert(at, sequence)
            ends.insert(at, sequence + 1)

    def intervals(self, origin: int) -> list[tuple[int, int]]:
        """Return the dead sequence numbers of an origin, ascending, as [start, end) intervals."""
        return list(zip(self._starts.get(origin, ()), self._ends.get(origin, ()), strict=True))

    def add_intervals(self, origin: int, intervals: Iterable[tuple[int, int]]) -> None:
        """Declare sequence numbers of an origin dead: [start, end) intervals in any order."""
        if self.__contains__(origin << SEQUENCE_BITS | _LAST_SEQUENCE):
            return  # its epoch is over
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self.intervals(origin), *intervals]):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        self._starts[origin] = [start for start, _ in merged]
        self._ends[origin] = [end for _, end in merged]

    def add_epochs(self, site_index: int, epoch: int) -> None:
        """Declare all tokens of a site dead that are of this epoch or an earlier one."""
        bound = self._epochs.get(site_index)
        if bound is not None and is_epoch_at_most(epoch, bound):
            return
        self._epochs[site_index] = epoch
        for origin in list(self._starts):
            token = origin << SEQUENCE_BITS
            if site_index_of(token) == site_index and is_epoch_at_most(epoch_of(token), epoch):
                del self._starts[origin], self._ends[origin]

    def among(self, tokens: Iterable[int]) -> Collection[int]:
        """Return the dead tokens among some."""
        return [token for token in tokens if token in self]
