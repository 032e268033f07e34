"""Ranked maintenance of a recursion with aggregate selection: only best rows are kept and recur.

Rows that are not best are not kept: when a group loses a best row, the candidates of the group are
derived again from the live rows. New candidates wait in a priority queue, best values first, so
that with values that only get worse along a derivation (as costs do) every group settles once, as
in Dijkstra's algorithm; the answer does not depend on it. Ranks are ages, not values: rows of a
cycle of zero costs have no proof of lower rank than their own, and die with what they rested on.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from stream_engine.recursion.options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program import Program
from stream_engine.recursion.ranked.derivations import Proof, derivations_of
from stream_engine.recursion.ranked.entries import DEAD, Entry
from stream_engine.recursion.ranked.groups import Group, Selector, priority_of
from stream_engine.recursion.ranked.proofs import Proofs, is_broken, most_deaths
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class RankedBestEngine:
    """A `LocalEngine` for aggregate selection whose rows keep one proof each.

    State: per best row its proof and its rank; best values per group; indexed leaf rows. Work per
    change: as for sets, plus the derivations of the groups that lost a best row.
    """

    description = "ranked"

    def __init__(
        self, program: Program, options: RecursionOptions, selection: AggregateSelection
    ) -> None:
        self.counters = FixpointCounters()
        self._program = program
        self._options = options
        self._proofs = Proofs([len(use.columns) for use in program.uses], program.width)
        self._groups: dict[object, Group] = {}
        self._derivations = derivations_of(program, self._proofs.tables, self._groups)
        self._selector = Selector(selection)
        self._priority = priority_of(program.rules, selection)
        self._queue: list[tuple[Any, int, int, Row, Proof]] = []
        self._arrivals = 0
        self._done = 0
        self._stale: dict[object, Row] = {}
        self._most: float = 0

    def change(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        """Apply changes of the leaves; return the view's change."""
        proofs = self._proofs
        self.counters.settles += 1
        self._done = self._arrivals = 0
        self._most = most_deaths(self._options.elastic, proofs.live)
        for leaf, rows in enumerate(left):
            if rows:
                proofs.remove_leaf_rows(leaf, rows)
        is_decided = self._decide()
        fresh = [proofs.add_leaf_rows(leaf, rows) for leaf, rows in enumerate(entered)]
        if is_decided:
            for entries, grows in zip(fresh, self._derivations.leaf, strict=True):
                if entries:
                    self._grow(grows, entries, 0)
            is_decided = self._settle()
        if is_decided:
            self.counters.derivations += self._done
            return proofs.take_delta()
        return self._computed_again()

    def _decide(self) -> bool:
        """Decide suspects; note the groups that lost a row; return whether few enough died."""
        proofs = self._proofs
        if not proofs.has_suspects:
            return True
        before = len(proofs.lost)
        is_decided = proofs.decide(self._derivations.supports, self._most)
        lost = proofs.lost
        self._most -= len(lost) - before
        group_of, stale = self._selector.group_of, self._stale
        for number in range(before, len(lost)):
            row = lost[number].row
            stale[group_of(row)] = row
        return is_decided

    def _settle(self) -> bool:
        """Work until no group is stale and no proof is broken; return whether that was worth it."""
        passes = 0
        while self._stale or self._queue:
            passes += 1
            self._program.check_rounds(passes, len(self._groups))
            stale, self._stale = self._stale, {}
            for key, row in stale.items():
                self._regroup(key, row)
            self._run()
            if not self._decide():
                return False
        return True

    def _regroup(self, key: object, row: Row) -> None:
        """Queue the best candidates of a group that lost rows."""
        group = self._groups.get(key)
        if group is not None and not self._selector.refresh(group):
            del self._groups[key]
        found: list[tuple[Row, Proof]] = []
        for regroup in self._derivations.regroups:
            regroup(row, found.append)
        if found:
            bests = self._selector.front([row for row, _ in found])
            is_best = self._selector.is_best
            self._queue_up([pair for pair in found if is_best(pair[0], bests)], 0)

    def _grow(self, grows: Sequence[Any], entries: list[Entry], level: int) -> None:
        found: list[tuple[Row, Proof]] = []
        for grow in grows:
            grow(entries, found.append)
        if found:
            self._queue_up(found, level)

    def _queue_up(self, found: list[tuple[Row, Proof]], level: int) -> None:
        queue, priority, number = self._queue, self._priority, self._arrivals
        for row, proof in found:
            number += 1
            heappush(queue, (priority(row), number, level, row, proof))
        self._arrivals = number
        self._done += len(found)

    def _run(self) -> None:
        """Enter queued candidates that are best, and queue what they derive."""
        program, proofs, queue = self._program, self._proofs, self._queue
        get, group_of = proofs.view.rows.get, self._selector.group_of
        recursive = self._derivations.recursive
        deepest = 0
        while queue:
            _, _, level, row, proof = heappop(queue)
            entry = get(row)
            if entry is not None and entry.rank != DEAD:
                continue
            key = group_of(row)
            if is_broken(proof):
                self._stale[key] = row  # it may have another derivation
            elif self._claims(key, row):
                entry = proofs.place(row, entry, proof)
                self._groups[key].entries.append(entry)
                program.check_size(proofs.live)
                if level >= deepest:
                    deepest = level + 1
                    program.check_rounds(deepest, len(self._groups))
                self._grow(recursive, [entry], level + 1)
                program.check_derivations(self._done, self._options.max_derivations)
        self.counters.rounds += deepest

    def _claims(self, key: object, row: Row) -> bool:
        """Return whether a row is best of its group; rows that it supersedes die."""
        selector = self._selector
        group = self._groups.get(key)
        if group is None:
            self._groups[key] = Group(selector.values(row), [])
            return True
        if not selector.improve(row, group.bests):
            return selector.is_best(row, group.bests)
        kept: list[Entry] = []
        for entry in group.entries:
            if selector.is_best(entry.row, group.bests):
                kept.append(entry)
            else:
                self._proofs.lose(entry)
        group.entries = kept
        return True

    def _computed_again(self) -> Delta:
        proofs = self._proofs
        self.counters.recomputed += 1
        self._most = most_deaths(1.0, 0)
        self._queue.clear()
        self._stale.clear()
        self._groups.clear()
        old = proofs.forget_view()
        for leaf, grow in self._derivations.base:
            self._grow([grow], list(proofs.tables[leaf].rows.values()), 0)
        self._settle()
        self.counters.derivations += self._done
        return proofs.take_delta_from(old)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the view."""
        return iter(self._proofs.view.rows)

    def size(self) -> int:
        """Return the number of rows of the view."""
        return len(self._proofs.view.rows)

    def clear(self) -> None:
        """Drop all state."""
        self._proofs.clear()
        self._groups.clear()
        self._queue.clear()
        self._stale.clear()
