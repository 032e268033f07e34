"""One site's partition of a recursion with provenance: its tables, and how rules work on them."""

from collections.abc import Callable, Sequence
from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding
from stream_engine.provenance.encodings import derivation_hook
from stream_engine.recursion.absorption.absorption_table import AbsorptionTable
from stream_engine.recursion.absorption.recursion_outbox import (
    Outbox,
    PackedParcels,
    RecursiveOutgoing,
)
from stream_engine.recursion.absorption.view import CopyTable, SelectiveView, View
from stream_engine.recursion.absorption.witnesses import cheapest, derive_new, searcher
from stream_engine.recursion.program.fixpoint_options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program.item_tables import ItemTable
from stream_engine.recursion.program.leaf_relations import LeafStore
from stream_engine.recursion.program.mail import Ports
from stream_engine.recursion.program.placement import Router
from stream_engine.recursion.program.probing import Annotated, ProbePlan, RulePlans, run_all
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.program.rules import RECURSIVE
from streamsql.algebra.choices import Shipping
from streamsql.data.types import Row

_CHUNK = 1_000
_SWEEP_AT = 512
_SWEEP_AT_LATEST = 30_000  # half of the variables a BDD may have
_ALTERNATIVES = 8
"""Derivations of a lost row that are compared for the shortest."""


class Partition:
    """The tables of a site.

    Attributes:
        view: Rows that are at home here.
        outbox: Rows that were derived here and are at home elsewhere.
        copies: Rows that join here by other columns than those of their home.
    """

    def __init__(  # noqa: PLR0913  (everything that rules work on)
        self,
        program: Program,
        router: Router,
        *,
        site: str,
        leaf_rows: LeafStore,
        ports: Ports,
        encoding: AnnotationEncoding[Any],
        shipping: Shipping,
        options: RecursionOptions,
        counters: FixpointCounters,
    ) -> None:
        self.leaf_rows = leaf_rows
        self.parcels = PackedParcels(encoding, packed=options.packed)
        self.shipping = shipping
        self._program = program
        self._router = router
        self._site = site
        self._alone = len(router.sites) == 1
        self._ports = ports
        self._encoding = encoding
        self._counters = counters
        self._packed = options.packed
        self._max_derivations = options.max_derivations
        self._name_derived = derivation_hook(encoding)
        self._leaf_count = len(program.uses)
        copies = len(router.placement.copies)
        self._plans = RulePlans(router.placement.rules, self._leaf_count + copies)
        self.view = _new_view(program, encoding, shipping)
        self.outbox = Outbox(encoding, shipping)
        self.copies = [CopyTable(encoding, shipping) for _ in range(copies)]
        self.tables: tuple[AbsorptionTable, ...] = (self.view, self.outbox, *self.copies)
        self._unswept: set[int] = set()
        self._derivations = 0

    @property
    def has_released(self) -> bool:
        """Whether there is something to derive from."""
        return bool(self.view.released) or any(copy.released for copy in self.copies)

    @property
    def waiting(self) -> int:
        """How many rows hold alternatives back, or did."""
        return sum(len(table.waiting) for table in self.tables)

    def begin(self) -> None:
        """Count the derivations of a settle from here."""
        self._derivations = 0

    def run(self, rounds: int | None = None) -> None:
        """Work in rounds on what was released."""
        done = 0
        while self.has_released and done != rounds:
            self._round()
            done += 1
            groups = self.view.group_count
            if groups is not None:
                self._program.check_rounds(done, groups)

    def flush(self) -> None:
        """Send all alternatives that were held back, and work as if shipping were eager."""
        for table in self.tables:
            table.shipping = Shipping.EAGER
            table.flush()
        self.run()
        for table in self.tables:
            table.shipping = self.shipping

    def send_leaf_row(self, leaf: int, row: Row, token: int, annotation: Any) -> None:
        """Send a new leaf row to where it joins."""
        for site in self._router.leaf_destinations(leaf, row):
            if site == self._site:
                self.leaf_rows.join(leaf, row, token, annotation)
            else:
                self.parcels.add(site, self._ports.name_of(leaf), row, annotation)

    def take_in(self, received: dict[int, list[Annotated]]) -> None:
        """Work on new leaf rows, on derivations from other sites by table, and on lost rows."""
        self._join_fresh()
        for table, rows in received.items():
            if table == RECURSIVE:
                self.view.merge_received(rows)
            else:
                self.copies[table - self._leaf_count].merge_received(rows)
        self._derive_suspects()
        self.view.settle_groups()
        self._check_size()

    def kill(self, dead: set[int]) -> None:
        """Remove dead leaf rows and restrict every annotation that mentions them."""
        self.leaf_rows.kill(dead)
        self._unswept.update(dead)
        self._counters.kills += len(dead)
        for table in self.tables:
            table.restrict_released(dead)
            self._counters.touched += table.kill(dead)

    @property
    def needs_sweep(self) -> bool:
        """Whether so many tokens have died that a sweep costs less than they did."""
        return len(self._unswept) > min(max(_SWEEP_AT, len(self.view.entries)), _SWEEP_AT_LATEST)

    def sweep(self) -> set[int]:
        """Discard dead tokens permanently; only tombstones know them afterwards. Return them."""
        for table in self.tables:
            table.sweep()
        swept, self._unswept = self._unswept, set()
        self._encoding.release(swept)
        return swept

    def _join_fresh(self) -> None:
        """Derive from new leaf rows: by step rules with the view as it was, then by base rules."""
        arrived, joined = self.leaf_rows.take_fresh()
        for plans, fresh in ((self._plans.step, joined), (self._plans.base, arrived)):
            for leaf, items in enumerate(fresh):
                if items and plans[leaf]:
                    self._derive(plans[leaf], [(item.row, item.sent) for item in items])

    def _round(self) -> None:
        released, self.view.released = self.view.released, []
        start = [(entry.row, part) for entry, part in released if entry.shown]
        self._counters.rounds += 1
        self._counters.trace.note(len(start))
        self._copy(start)
        self._derive(self._plans.recursive, start)
        for number, copy in enumerate(self.copies, start=self._leaf_count):
            copied, copy.released = copy.released, []
            self._derive(self._plans.step[number], [(entry.row, part) for entry, part in copied])
        self.view.settle_groups()

    def _copy(self, released: list[Annotated]) -> None:
        for number, copy in enumerate(self.copies):
            port = self._ports.name_of(self._leaf_count + number)
            for row, annotation in released:
                for site in self._router.copy_destinations(number, row):
                    if site == self._site:
                        copy.merge_received([(row, annotation)])
                    else:
                        self.parcels.add(site, port, row, annotation)

    def _derive(self, plans: Sequence[ProbePlan], start: list[Annotated]) -> None:
        for at in range(0, len(start), _CHUNK):
            chunk = start[at : at + _CHUNK]
            count = (
                self._derive_new(plans, chunk)
                if self.shipping is Shipping.WITNESS
                else self._derive_all(plans, chunk)
            )
            self._derivations += count
            self._counters.derivations += count
            self._check_size()

    def _derive_new(self, plans: Sequence[ProbePlan], start: list[Annotated]) -> int:
        """Derive rows, but none that are known and have an alternative."""
        known = (self.view.saturated, self.outbox.saturated)
        derivations = 0
        conjoin, table = self._encoding.conjoin, self._table
        for plan in plans:
            best = cheapest(self._plans.orders(plan), table)
            found, count = derive_new(best, start, table, conjoin, known)
            derivations += count
            if found:
                self._deliver(list(found.items()))
        return derivations

    def _derive_all(self, plans: Sequence[ProbePlan], start: list[Annotated]) -> int:
        best = [cheapest(self._plans.orders(plan), self._table) for plan in plans]
        derived = self._named(run_all(best, start, self._table, self._encoding.conjoin))
        self._deliver(derived)
        return len(derived)

    def _named(self, derived: list[Annotated]) -> list[Annotated]:
        """Let the encoding know which rows derivations lead to, if it asks."""
        name = self._name_derived
        return derived if name is None else [(row, name(row, part)) for row, part in derived]

    def _table(self, number: int) -> ItemTable:
        if number == RECURSIVE:
            return self.view.joined
        if number < self._leaf_count:
            return self.leaf_rows.joined[number]
        return self.copies[number - self._leaf_count].joined

    def _deliver(self, derived: list[Annotated]) -> None:
        if self._alone:
            self.view.merge(derived)
            return
        owner_of, mine = self._router.owner_of, self._site
        here: list[Annotated] = []
        elsewhere: list[Annotated] = []
        for pair in derived:
            (here if owner_of(pair[0]) == mine else elsewhere).append(pair)
        self.view.merge(here)
        self.outbox.merge(elsewhere)

    def _derive_suspects(self) -> None:
        """Look for derivations of rows that lost all kept support but had dropped some."""
        suspects = self.view.suspects + self.outbox.suspects
        if not suspects:
            return
        self.view.suspects, self.outbox.suspects = [], []
        witness = self.shipping is Shipping.WITNESS
        size_of = self._encoding.size
        search = self._searcher()
        derived: list[Annotated] = []
        for row in suspects:
            found = search(row, _ALTERNATIVES if witness else self._max_derivations)
            self._derivations += len(found)
            if witness and len(found) > 1:
                found = [min(found, key=size_of)]
            derived.extend([(row, annotation) for annotation in found])
        self._counters.rederived += len(suspects)
        self._counters.derivations += len(derived)
        self._deliver(self._named(derived))

    def _searcher(self) -> Callable[[Row, int], list[Any]]:
        """Return a function from a row to annotations of some of its derivations here and now."""
        conjoin, true = self._encoding.conjoin, self._encoding.true
        arrived, table = self.leaf_rows.arrived.__getitem__, self._table
        searches = [searcher(plan, arrived, conjoin, true) for plan in self._plans.base_heads]
        searches += [
            searcher(cheapest(self._plans.orders(plan), table), table, conjoin, true)
            for plan in self._plans.step_heads
        ]

        def search(row: Row, most: int) -> list[Any]:
            found: list[Any] = []
            for one in searches:
                found += one(row, most - len(found))
                if len(found) >= most:
                    break
            return found

        return search

    def ship(self) -> None:
        """Put the rows for other sites into parcels."""
        port = self._ports.name_of(RECURSIVE)
        for row, annotation in self.outbox.take():
            self.parcels.add(self._router.owner_of(row), port, row, annotation)

    def replay(self, site: str) -> list[RecursiveOutgoing]:
        """Return messages with everything another site was sent that still has support."""
        parcels = PackedParcels(self._encoding, packed=self._packed)
        router, name_of = self._router, self._ports.name_of
        for leaf, table in enumerate(self.leaf_rows.arrived):
            for item in table.items:
                if site in router.leaf_destinations(leaf, item.row):
                    parcels.add(site, name_of(leaf), item.row, item.sent)
        for row, entry in self.outbox.entries.items():
            if router.owner_of(row) == site:
                parcels.add(site, name_of(RECURSIVE), row, entry.sent)
        for number in range(len(self.copies)):
            for item in self.view.joined.items:
                if site in router.copy_destinations(number, item.row):
                    parcels.add(site, name_of(self._leaf_count + number), item.row, item.sent)
        return parcels.drain()

    def _check_size(self) -> None:
        self._program.check_size(len(self.view), len(self.view.entries))
        self._program.check_derivations(self._derivations, self._max_derivations)

    def clear(self) -> None:
        """Drop everything."""
        self.leaf_rows.clear()
        for table in self.tables:
            table.clear()
        self.parcels.drain()
        self._unswept = set()


def _new_view(program: Program, encoding: AnnotationEncoding[Any], shipping: Shipping) -> View:
    if program.selection is None:
        return View(encoding, shipping)
    return SelectiveView(encoding, shipping, program.selection)
