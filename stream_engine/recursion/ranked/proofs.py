"""The view's rows with their proofs, and what happens to the proofs when rows die.

Backward before forward (as Motik et al., AAAI 2015, with a rank as the proof of well-foundedness):
a row whose proof has lost a part looks for another derivation from live rows of lower rank before
it is given up. Suspects are taken in the order of their ranks, so that each is decided once.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from stream_engine.recursion.program.program import Program
from stream_engine.recursion.program.rules import RECURSIVE
from stream_engine.recursion.ranked.ranked_derivations import Proof, Support
from stream_engine.recursion.ranked.ranked_entries import (
    DEAD,
    LEAF_RANK,
    Entry,
    EntryTable,
    release,
)
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import InternalError

CHECK_EVERY = 1_024
"""Rows between two looks at whether the work is still wanted."""


class Proofs:
    """Rows of the leaves and of the view.

    State: an entry per row, and one per superseded row that a proof still uses. During a change,
    rows that have died stay in the tables (generated loops skip them), so that a row which comes
    back is the same entry and shows in no delta.

    Args:
        indexes: By leaf number and RECURSIVE, the columns to look up by.

    Attributes:
        lost: Entries of the view that died during this change; some may live again.
    """

    def __init__(self, program: Program, indexes: Mapping[int, Sequence[tuple[int, ...]]]) -> None:
        self._program = program
        self.view = EntryTable(program.width, indexes.get(RECURSIVE, ()))
        self.tables = {RECURSIVE: self.view}
        for leaf, use in enumerate(program.uses):
            self.tables[leaf] = EntryTable(len(use.columns), indexes.get(leaf, ()))
        self.live = 0
        self.superseded = 0
        self.lost: list[Entry] = []
        self._rank = LEAF_RANK
        self._suspects: list[tuple[int, Entry]] = []
        self._unused: list[Entry] = []
        self._entered: set[Entry] = set()
        self._left: dict[Row, None] = {}

    @property
    def has_suspects(self) -> bool:
        """Whether some proofs may have lost a part."""
        return bool(self._suspects)

    def add_leaf_rows(self, leaf: int, rows: Iterable[Row]) -> list[Entry]:
        """Add rows that are not there; return their entries."""
        table = self.tables[leaf]
        entries = [Entry(row, LEAF_RANK, ()) for row in rows]
        for entry in entries:
            table.add(entry)
        return entries

    def remove_leaf_rows(self, leaf: int, rows: Iterable[Row]) -> None:
        """Remove rows that are there; rows that rest on them become suspects."""
        table = self.tables[leaf]
        suspects = self._suspects
        for row in rows:
            entry = table.get(row)
            if entry is None:
                raise InternalError(f"leaf {leaf} of a recursion has no row {row}")
            table.remove(entry)
            entry.rank = DEAD
            suspects.extend((abs(user.rank), user) for user in entry.take_users())
        heapify(suspects)

    def place(self, row: Row, entry: Entry | None, proof: Proof) -> Entry:
        """Let a row live that is not there (`entry` is None) or dead; its rank is the highest."""
        self._rank += 1
        self.live += 1
        if entry is None:
            entry = Entry(row, self._rank, proof)
            self.view.add(entry)
            if row in self._left:
                del self._left[row]
            else:
                self._entered.add(entry)
        else:
            entry.rank = self._rank
        entry.attach(proof)
        return entry

    def supersede(self, entry: Entry) -> None:
        """Take a live row out of the view because a better one has come.

        What was derived from it stays derived: it either gives way to what the better row derives,
        or is the same. So its entry lives on for as long as a proof uses it.
        """
        self._take_out(entry)
        self.live -= 1
        if entry.users is None:
            entry.rank = DEAD
            self._detach(entry)
        else:
            entry.rank = -entry.rank
            self.superseded += 1

    def decide(self, supports: Sequence[Support], most: float) -> bool:
        """Give every suspect another proof of lower rank, or let it die.

        Args:
            supports: Find a derivation of a row.
            most: Deaths above which the work is left undone.

        Returns:
            Whether all suspects are decided.
        """
        suspects = self._suspects
        deaths = decisions = 0
        while suspects:
            suspect = heappop(suspects)[1]
            if suspect.rank == DEAD or not is_broken(suspect.proof):
                continue
            decisions += 1
            if decisions % CHECK_EVERY == 0:
                self.check_size()
            row, rank = suspect.row, abs(suspect.rank)
            for support in supports:
                proof = support(row, rank)
                if proof is not None:
                    self._detach(suspect)
                    suspect.attach(proof)
                    break
            else:
                deaths += 1
                if deaths > most:
                    return False
                self._lose(suspect)
        return True

    def check_size(self) -> None:
        """Stop what has grown too large, or what nobody wants any more.

        Raises:
            RecursionLimitError: There are too many rows.
        """
        self._program.check_size(self.live, self.superseded)

    def _lose(self, entry: Entry) -> None:
        if entry.rank < 0:
            self.superseded -= 1
        else:
            self.live -= 1
            self.lost.append(entry)
        entry.rank = DEAD
        self._detach(entry)
        suspects = self._suspects
        for user in entry.take_users():
            heappush(suspects, (abs(user.rank), user))

    def _detach(self, entry: Entry) -> None:
        for part in entry.proof:
            users = part.users
            if users is entry:
                part.users = None
            elif isinstance(users, set):
                users.discard(entry)
                if not users:
                    part.users = None
            if part.rank < 0 and part.users is None:
                self._unused.append(part)
        entry.proof = ()

    def _take_out(self, entry: Entry) -> None:
        self.view.remove(entry)
        if entry in self._entered:
            self._entered.discard(entry)
        else:
            self._left[entry.row] = None

    def take_delta(self) -> Delta:
        """Drop what is dead or no longer used; return what has changed since the last call."""
        unused = self._unused
        while unused:
            entry = unused.pop()
            if entry.rank < 0 and entry.users is None:
                entry.rank = DEAD
                self.superseded -= 1
                self._detach(entry)
        lost, self.lost = self.lost, []
        for entry in lost:
            if entry.rank == DEAD and self.view.get(entry.row) is entry:
                self._take_out(entry)
        entered, self._entered = self._entered, set()
        left, self._left = self._left, {}
        delta: Delta = dict.fromkeys(left, -1)
        delta.update((entry.row, 1) for entry in entered)
        return delta

    def forget_view(self) -> dict[Row, Entry]:
        """Drop all rows of the view before any have entered; return those that were there."""
        old = self.view.rows()
        self.view.clear()
        for leaf, table in self.tables.items():
            if leaf != RECURSIVE:
                release(table)
        self._forget_change()
        return old

    def take_delta_from(self, old: dict[Row, Entry]) -> Delta:
        """Return the change from rows that `forget_view` returned."""
        self.take_delta()
        new = self.view.rows()
        delta: Delta = dict.fromkeys(new.keys() - old.keys(), 1)
        delta.update(dict.fromkeys(old.keys() - new.keys(), -1))
        return delta

    def clear(self) -> None:
        """Drop all state."""
        for table in self.tables.values():
            table.clear()
        self._forget_change()

    def _forget_change(self) -> None:
        self.live = self.superseded = 0
        self.lost = []
        self._suspects.clear()
        self._unused.clear()
        self._entered = set()
        self._left = {}


def most_deaths(elastic: float, live: int) -> float:
    """Return how many rows of a view may die before computing it again is cheaper."""
    return math.inf if elastic >= 1 else elastic * live


def is_broken(proof: Proof) -> bool:
    """Return whether a part of a proof is dead."""
    for part in proof:  # noqa: SIM110  (a generator costs three times as much)
        if part.rank == DEAD:
            return True
    return False


def is_shown(proof: Proof) -> bool:
    """Return whether all parts of a proof are live rows, none of them superseded."""
    for part in proof:  # noqa: SIM110
        if not LEAF_RANK <= part.rank < DEAD:
            return False
    return True
