"""Ranked maintenance of a recursion without selection: linear, mutual or non-linear."""

from collections.abc import Iterator, Sequence
from itertools import islice

from typing_extensions import override

from stream_engine.recursion.program.fixpoint_options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.ranked.proofs import CHECK_EVERY, Proofs, most_deaths
from stream_engine.recursion.ranked.ranked_derivations import (
    Compiler,
    Grow,
    Growth,
    Proof,
    nests_of,
)
from stream_engine.recursion.ranked.ranked_entries import DEAD, Entry
from streamsql.data.delta import Delta
from streamsql.data.types import Row

Starts = Sequence[tuple[Sequence[Grow], list[Entry]]]
"""Functions, and the entries with which they start."""

CHUNK = 256
"""Rows whose consequences are derived before the first of these is entered: bounds duplicates."""


class RankedSetEngine(LocalEngine):
    """A `LocalEngine` whose rows keep one proof each.

    State: per row of the view its proof and its rank; indexed leaf rows. Work per change: what the
    changed leaf rows derive, and for every row whose proof broke the search for another one; past
    the share `options.elastic` of the view it is computed again from the leaves.
    """

    description = "ranked"

    def __init__(self, program: Program, options: RecursionOptions) -> None:
        self.counters = FixpointCounters()
        self._program = program
        self._options = options
        nests = nests_of(program)
        self._proofs = Proofs(program, nests.indexes(program.group))
        self._derivations = self._compiler().derivations(nests)
        self._done = 0

    def _compiler(self) -> Compiler:
        return Compiler(self._proofs.tables)

    @override
    def change(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        proofs = self._proofs
        self.counters.settles += 1
        self._done = 0
        for leaf, rows in enumerate(left):
            if rows:
                proofs.remove_leaf_rows(leaf, rows)
        is_decided = not proofs.has_suspects or proofs.decide(
            self._derivations.supports, most_deaths(self._options.elastic, proofs.live)
        )
        fresh = [proofs.add_leaf_rows(leaf, rows) for leaf, rows in enumerate(entered)]
        if not is_decided:
            return self._computed_again()
        if proofs.lost:
            self.counters.trace.note(0, len(proofs.lost))
        growth = self._derivations.careful if proofs.lost else self._derivations.quick
        self._derive([*zip(growth.leaf, fresh, strict=True)], growth)
        return proofs.take_delta()

    def _computed_again(self) -> Delta:
        proofs = self._proofs
        self.counters.recomputed += 1
        old = proofs.forget_view()
        self.counters.trace.note(0, len(old))
        base = [((grow,), list(proofs.tables[leaf])) for leaf, grow in self._derivations.base]
        self._derive(base, self._derivations.quick)
        return proofs.take_delta_from(old)

    def _derive(self, starts: Starts, growth: Growth) -> None:
        """Derive what rows of leaves lead to, after what has been lost was looked for again."""
        batch = self._rescued()
        found: list[tuple[Row, Proof]] = []
        for grows, entries in starts:
            if entries:
                for grow in grows:
                    grow(entries, found.append)
        self._place(found, batch)
        self._settle(batch, growth)

    def _rescued(self) -> list[Entry]:
        """Let dead rows live again that have a derivation from live rows of any rank."""
        rescued: list[Entry] = []
        place = self._proofs.place
        for number, entry in enumerate(self._proofs.lost):
            if number % CHECK_EVERY == 0:
                self._proofs.check_size()
            row = entry.row
            for support in self._derivations.supports:
                proof = support(row, DEAD)
                if proof is not None:
                    rescued.append(place(row, entry, proof))
                    break
        return rescued

    def _place(self, found: list[tuple[Row, Proof]], batch: list[Entry]) -> None:
        get, place = self._proofs.view.get, self._proofs.place
        for row, proof in found:
            entry = get(row)
            if entry is None or entry.rank == DEAD:
                batch.append(place(row, entry, proof))
        self._done += len(found)

    def _settle(self, batch: list[Entry], growth: Growth) -> None:
        program, counters = self._program, self.counters
        while batch:
            counters.rounds += 1
            counters.trace.note(len(batch))
            self._proofs.check_size()
            following: list[Entry] = []
            rest = iter(batch)
            while chunk := list(islice(rest, CHUNK)):
                found: list[tuple[Row, Proof]] = []
                for grow in growth.recursive:
                    grow(chunk, found.append)
                self._place(found, following)
                program.check_derivations(self._done, self._options.max_derivations)
            batch = following
        counters.derivations += self._done
        self._done = 0

    @override
    def rows(self) -> Iterator[Row]:
        return (entry.row for entry in self._proofs.view)

    @override
    def size(self) -> int:
        return self._proofs.live

    @override
    def clear(self) -> None:
        self._proofs.clear()
