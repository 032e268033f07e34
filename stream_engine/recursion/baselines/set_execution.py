"""Plain set execution of recursions over relations that only grow: semi-naive, no annotations.

The cheapest way to load a view, and the reference for what provenance costs. Derived rows travel
between the partitions as they do with provenance, once per deriving site. Nothing says what a
row rests on, so nothing can be taken back: deletions, expiries and lost sites stop the query.
"""

from collections.abc import Iterator, Sequence

from typing_extensions import override

from stream_engine.recursion.absorption.recursion_outbox import RecursiveOutgoing
from stream_engine.recursion.absorption.site_recursion import SiteRecursion
from stream_engine.recursion.baselines.dred.candidates import Candidates
from stream_engine.recursion.baselines.dred.dred_engine import DredEngine
from stream_engine.recursion.baselines.dred.dred_evaluation import Evaluation
from stream_engine.recursion.baselines.dred.dred_streams import bounded_groups
from stream_engine.recursion.program.fixpoint_options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program.item_tables import Item, ItemTable
from stream_engine.recursion.program.leaf_relations import LeafInput
from stream_engine.recursion.program.mail import Ports
from stream_engine.recursion.program.packing import PACKED, pack_encoded
from stream_engine.recursion.program.placement import Router, placement_of
from stream_engine.recursion.program.probing import ProbePlan
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.program.rules import RECURSIVE
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import UnsupportedError, WireError
from streamsql.wire.messages import AnnotatedRow


def refusal(program: Program, what: str) -> UnsupportedError:
    """Return the error for something that would take rows back."""
    return UnsupportedError(
        f"recursion {program.name} runs by plain set execution, which cannot handle "
        f"deletions, but {what}",
        hint="choose another strategy: 'ranked', 'absorption', 'relative' or 'dred'",
    )


class SetEngine(DredEngine):
    """A `LocalEngine` for leaf rows that never leave.

    State: leaf rows and the view, indexed. Work per change: its consequences.
    """

    description = "set execution"

    def __init__(self, program: Program, options: RecursionOptions) -> None:
        super().__init__(program, options)
        self._derived = Candidates(program.selection, forgetful=True)
        self._failure: UnsupportedError | None = None

    @override
    def change(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        """Add leaf rows; return the view's change, which takes back only surpassed rows.

        Raises:
            UnsupportedError: A leaf row has left, now or earlier.
        """
        for rows in left:
            if rows:
                self._failure = refusal(self._program, f"{rows[0]} has left one of its inputs")
        if self._failure is not None:
            raise self._failure
        return super().change(entered, left)

    @override
    def clear(self) -> None:
        super().clear()
        self._derived = Candidates(self._program.selection, forgetful=True)


class SetOperator(SiteRecursion):
    """A site's partition of a recursion over leaf rows that never leave, at one of several sites.

    State: leaf rows that arrived or join here, the partition's rows, and the rows derived for other
    sites (with aggregate selection only the best of them, and only those are sent). Where a rule
    joins the view with itself, also copies of rows that are at home elsewhere. A message that comes
    twice changes nothing.

    Args:
        options: `owner` and the bounds count here.
    """

    description = "set execution"

    def __init__(
        self, program: Program, *, site: str, sites: tuple[str, ...], options: RecursionOptions
    ) -> None:
        super().__init__(program, site, sites)
        self.counters = FixpointCounters()
        self._leaf_count = len(program.uses)
        placement = placement_of(program.rules, self._leaf_count, program.group)
        self._copies = range(len(placement.copies))
        self._rules = Evaluation(program, options, self.counters, placement)
        self._router = Router(placement, sites, options.owner)
        widths = [len(columns) for columns in self.leaf_columns]
        self._ports = Ports(program.name, widths, len(self._copies), program.width)
        self._inputs = tuple(LeafInput(use) for use in program.uses)
        self._dead: dict[str, int] = {}
        self._senders: set[str] = set()
        self.clear()

    @override
    def clear(self) -> None:
        tables = self._leaf_count + len(self._copies)
        self._arrived: list[list[Row]] = [[] for _ in range(self._leaf_count)]
        self._joined = tuple(ItemTable() for _ in range(tables))
        self._known: tuple[set[Row], ...] = tuple(set() for _ in range(tables))
        self._derived = Candidates(self._program.selection, forgetful=True)
        self._elsewhere = Candidates(self._program.selection, forgetful=True)
        self._released: list[Row] = []
        self._fresh: list[tuple[int, Row]] = []
        self._received: list[Row] = []
        self._outgoing: dict[tuple[str, int], list[Row]] = {}

    @override
    def _buffer(self, leaf: int, delta: Delta) -> None:
        self._inputs[leaf].buffer(delta)

    @override
    def _receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        table, rows = self._ports.open(sender, port, annotated)
        if kills or any(part != b"" for _, part in rows):
            raise WireError(f"{sender}: set execution has no provenance and no deletions")
        self._senders.add(sender)
        self.counters.received_rows += len(rows)
        if table == RECURSIVE:
            self._received.extend([row for row, _ in rows])
        else:
            self._fresh.extend([(table, row) for row, _ in rows])

    def kill_site(self, site: str, epoch: int) -> None:
        """Stop if rows here may rest on leaf rows of a site that are declared dead.

        The first notice of a site that never wrote says only from which epoch on it counts.
        """
        known = self._dead.get(site)
        if site == self._site or (known is not None and epoch <= known):
            return
        self._dead[site] = epoch
        if known is not None or site in self._senders:
            what = f"site {site}, on whose rows it may depend, was lost or restarted"
            self._fail(refusal(self._program, what))

    @property
    @override
    def is_settled(self) -> bool:
        return not (self._released or self._fresh or self._received)

    @override
    def _work(self, rounds: int | None) -> Delta:
        self.counters.settles += 1
        self._rules.begin()
        self._take_in()
        done = 0
        while self._released and done != rounds:
            released = [row for row in self._released if self._derived.is_shown(row)]
            self._copy(released)
            self._derive(self._rules.plans.recursive, released)
            self._released = self._derived.take_released()
            done += 1
            self._program.check_rounds(done, len(self._derived))
        self.counters.rounds += done
        for row in self._elsewhere.take_released():
            self._send(self._router.owner_of(row), RECURSIVE, row)
        self._elsewhere.take_changes()
        return self._derived.take_changes()

    def _take_in(self) -> None:
        """Work on everything noted: leaf rows first, then rows that others derived."""
        for leaf, source in enumerate(self._inputs):
            entered, left = source.take()
            if left:
                raise refusal(self._program, f"{left[0]} has left one of its inputs")
            self._arrived[leaf] += entered
            for row in entered:
                for site in self._router.leaf_destinations(leaf, row):
                    self._send(site, leaf, row)
            self._derive(self._rules.plans.base[leaf], entered)
        self._join_fresh()
        received, self._received = self._received, []
        self._derived.add_all(received)
        self._released += self._derived.take_released()
        self._check_size()

    def _send(self, site: str, table: int, row: Row) -> None:
        if site == self._site:
            self._fresh.append((table, row))
        else:
            self._outgoing.setdefault((site, table), []).append(row)

    def _copy(self, rows: list[Row]) -> None:
        for copy in self._copies:
            for row in rows:
                for site in self._router.copy_destinations(copy, row):
                    self._send(site, self._leaf_count + copy, row)
        self._join_fresh()

    def _join_fresh(self) -> None:
        fresh, self._fresh = self._fresh, []
        joined: list[list[Row]] = [[] for _ in self._joined]
        for table, row in fresh:
            if row not in self._known[table]:
                self._known[table].add(row)
                self._joined[table].add(Item(row, True))
                joined[table].append(row)
        for table, rows in enumerate(joined):
            self._derive(self._rules.plans.step[table], rows)

    def _derive(self, plans: Sequence[ProbePlan], rows: list[Row]) -> None:
        owner_of, mine = self._router.owner_of, self._site
        for row in self._rules.heads(plans, rows, self._table):
            (self._derived if owner_of(row) == mine else self._elsewhere).add(row)
        self._check_size()

    def _table(self, number: int) -> ItemTable:
        return self._derived.shown if number == RECURSIVE else self._joined[number]

    def _check_size(self) -> None:
        candidates = max(len(self._derived), len(self._elsewhere))
        self._program.check_size(len(self._derived.shown), candidates)

    @override
    def _messages(self) -> list[RecursiveOutgoing]:
        outgoing, self._outgoing = self._outgoing, {}
        return [
            message
            for (site, table), rows in outgoing.items()
            for message in self._packed(site, table, rows)
        ]

    def replay(self, site: str) -> list[RecursiveOutgoing]:
        """Return messages that take the place of all that were sent to a site so far."""
        router = self._router
        tables: dict[int, list[Row]] = {}
        for leaf, rows in enumerate(self._arrived):
            tables[leaf] = [row for row in rows if site in router.leaf_destinations(leaf, row)]
        view = [item.row for item in self._derived.shown.items]
        for copy in self._copies:
            rows = [row for row in view if site in router.copy_destinations(copy, row)]
            tables[self._leaf_count + copy] = rows
        elsewhere = [item.row for item in self._elsewhere.shown.items]
        tables[RECURSIVE] = [row for row in elsewhere if router.owner_of(row) == site]
        return [
            message for table, rows in tables.items() for message in self._packed(site, table, rows)
        ]

    def _packed(self, site: str, table: int, rows: list[Row]) -> Iterator[RecursiveOutgoing]:
        port = self._ports.name_of(table) + PACKED
        for group in bounded_groups(rows, lambda row: row):
            blob = pack_encoded([(row, b"") for row in group])
            yield RecursiveOutgoing(site, port, (AnnotatedRow((), blob),), rows=len(group))

    @override
    def state_rows(self) -> Iterator[Row]:
        return (item.row for item in self._derived.shown.items)
