"""Ranked maintenance of a recursion with aggregate selection: only best rows are kept and recur.

Rows that are not best are not kept: when a group loses a best row, the candidates of the group are
derived again from the live rows. A row that a better one supersedes leaves the view, but what it
has derived stays until better rows supersede that in turn: the program has to be isotone (better
rows derive better rows, as with sums of costs), which the binder sees to.

New candidates wait in a priority queue, best values first, so that with values that only get worse
along a derivation every group settles once, as in Dijkstra's algorithm; the answer does not depend
on it. Ranks are ages, not values: rows of a cycle of zero costs have no proof of lower rank than
their own, and die with what they rested on.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from typing_extensions import override

from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.ranked.proofs import CHECK_EVERY, is_shown
from stream_engine.recursion.ranked.ranked_derivations import Compiler, Growth, Proof
from stream_engine.recursion.ranked.ranked_entries import (
    DEAD,
    Candidate,
    Entry,
    Groups,
    Selector,
    priority_of,
)
from stream_engine.recursion.ranked.set_engine import RankedSetEngine, Starts
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.delta import Delta
from streamsql.data.types import Row


def ranked_engine(program: Program, options: RecursionOptions) -> LocalEngine:
    """Return the empty ranked engine of a recursion.

    Raises:
        UnsupportedError: A rule joins too many relations.
    """
    if program.selection is None:
        return RankedSetEngine(program, options)
    return RankedBestEngine(program, options, program.selection)


class RankedBestEngine(RankedSetEngine):
    """A `LocalEngine` for aggregate selection whose rows keep one proof each.

    State: per best row its proof and its rank; best values per group; indexed leaf rows. Work per
    change: as for sets, plus the derivations of the groups that lost a best row.
    """

    def __init__(
        self, program: Program, options: RecursionOptions, selection: AggregateSelection
    ) -> None:
        self._groups: Groups = {}
        self._selection = selection
        super().__init__(program, options)
        self._selector = Selector(selection)
        self._priority = priority_of(program.rules, selection)
        self._queue: list[tuple[Any, int, int, Row, Proof]] = []
        self._arrivals = 0

    @override
    def _compiler(self) -> Compiler:
        return Compiler(self._proofs.tables, self._selection, self._groups)

    @override
    def _derive(self, starts: Starts, growth: Growth) -> None:
        self._arrivals = 0
        group_of = self._selector.group_of
        for key, row in {group_of(entry.row): entry.row for entry in self._proofs.lost}.items():
            self._regroup(key, row)
        for grows, entries in starts:
            if entries:
                self._grow(grows, entries, 0)
        self._run(growth)

    def _regroup(self, key: object, row: Row) -> None:
        """Queue the best candidates of a group that lost rows."""
        group = self._groups.get(key)
        if group is not None and not self._selector.refresh(group):
            del self._groups[key]
        found: list[Candidate] = []
        for regroup in self._derivations.regroups:
            regroup(row, found.append)
        if found:
            self._queue_up(self._selector.best_of(found), 0)

    def _grow(self, grows: Sequence[Any], entries: list[Entry], level: int) -> None:
        found: list[Candidate] = []
        for grow in grows:
            grow(entries, found.append)
        if found:
            self._queue_up(found, level)

    def _queue_up(self, found: list[Candidate], level: int) -> None:
        queue, priority, number = self._queue, self._priority, self._arrivals
        for row, proof in found:
            number += 1
            heappush(queue, (priority(row), number, level, row, proof))
        self._arrivals = number
        self._done += len(found)

    def _run(self, growth: Growth) -> None:
        proofs, queue, groups = self._proofs, self._queue, self._groups
        get, group_of = proofs.view.get, self._selector.group_of
        claim, new_group = self._selector.claim, self._selector.new_group
        deepest = turns = 0
        entered: list[int] = []
        while queue:
            turns += 1
            _, _, level, row, proof = heappop(queue)
            entry = get(row)
            if not is_shown(proof) or (entry is not None and entry.rank != DEAD):
                continue
            key = group_of(row)
            group = groups.get(key)
            if group is None:
                group, superseded = new_group(row), None
                groups[key] = group
            else:
                superseded = claim(group, row)
                if superseded is None:
                    continue
            entry = proofs.place(row, entry, proof)
            group.append(entry)
            while level >= len(entered):
                entered.append(0)
            entered[level] += 1
            if superseded:  # may be what the better row was derived from
                for other in superseded:
                    proofs.supersede(other)
            if level >= deepest or turns % CHECK_EVERY == 0:
                deepest = max(deepest, level + 1)
                self._check(deepest)
            self._grow(growth.recursive, [entry], level + 1)
        self._check(deepest)
        for rows in entered:
            self.counters.trace.note(rows)
        self.counters.rounds += deepest
        self.counters.derivations += self._done

    def _check(self, deepest: int) -> None:
        """Stop what grows without end, such as the derivations along a cycle of negative cost."""
        self._program.check_rounds(deepest, len(self._groups))
        self._program.check_derivations(self._done, self._options.max_derivations)
        self._proofs.check_size()

    @override
    def _computed_again(self) -> Delta:
        self._groups.clear()
        return super()._computed_again()

    @override
    def clear(self) -> None:
        super().clear()
        self._groups.clear()
        self._queue.clear()
