"""One site's share of a recursion in one generation of a distributed delete-and-rederive."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from stream_engine.recursion.baselines.dred.candidates import Candidates
from stream_engine.recursion.baselines.dred.dred_evaluation import DredCounters, Evaluation
from stream_engine.recursion.baselines.dred.dred_streams import Item as Told
from stream_engine.recursion.baselines.dred.dred_streams import Kind
from stream_engine.recursion.program.item_tables import Item, ItemTable
from stream_engine.recursion.program.placement import Router
from stream_engine.recursion.program.probing import ProbePlan
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.program.rules import RECURSIVE
from streamsql.data.types import Row
from streamsql.errors import InternalError

Tell = Callable[[str, Told], None]
"""Sends an item to a member."""


class _JoinedLeaf(ItemTable):
    """Leaf rows that join here, each held up by the sites where it arrived (as bits)."""

    def __init__(self) -> None:
        super().__init__()
        self.by_row: dict[Row, Item] = {}
        self.holders: dict[Row, int] = {}


class Partition:
    """Derived rows that this site owns, leaf rows that join here, and what was derived for others.

    Copies of view rows that a rule joining the view with itself needs elsewhere are treated as rows
    of further leaves, which the owner of a row holds up.

    While rows are over-deleted nothing is removed, so that every derivation through what is gone is
    found whatever the order of messages; `rederive` removes it all.

    Of every row owned, the sites that reported a derivation are remembered as bits: they are asked
    whether they have another one. With aggregate selection a site derives from the rows in the view
    only, and over-deletes through surpassed ones too, as in `local`.

    Args:
        router: Over the members of the generation.
    """

    def __init__(  # noqa: PLR0913  (what it is, where it is, and whom it talks to)
        self,
        program: Program,
        rules: Evaluation,
        counters: DredCounters,
        *,
        router: Router,
        site: str,
        indexes: Mapping[str, int],
        tell: Tell,
    ) -> None:
        self.derived = Candidates(program.selection)
        self._program = program
        self._rules = rules
        self._counters = counters
        self._router = router
        self._site = site
        self._indexes = indexes
        self._tell = tell
        self._arrived = tuple(ItemTable() for _ in program.uses)
        self._arrived_items: tuple[dict[Row, Item], ...] = tuple({} for _ in program.uses)
        self._leaf_count = len(program.uses)
        self._copies = range(len(router.placement.copies))
        self._joined = tuple(_JoinedLeaf() for _ in [*program.uses, *self._copies])
        self._copied: set[Row] = set()
        self._sources: dict[Row, int] = {}
        self._sent: set[Row] = set()
        self._deleting = False
        self._doomed: dict[Row, None] = {}
        self._withdrawn: set[Row] = set()
        self._fresh: list[list[Row]] = [[] for _ in self._joined]
        self._released: list[Row] = []
        self._over_deleted: Mapping[Row, None] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to do here."""
        return not (self._released or self.derived.released or any(self._fresh))

    def insert(self, entered: Sequence[Iterable[Row]]) -> None:
        """Ingest leaf rows that arrived here, per leaf."""
        for leaf, rows in enumerate(entered):
            rows = list(rows)  # noqa: PLW2901
            for row in rows:
                item = self._arrived_items[leaf][row] = Item(row, True)
                self._arrived[leaf].add(item)
                sites = self._router.leaf_destinations(leaf, row)
                self._tell_table(Kind.LEAF_IN, leaf, row, sites)
            self._derive(self._rules.plans.base[leaf], rows)

    def delete(self, left: Sequence[Iterable[Row]]) -> None:
        """Begin to over-delete what rests on leaf rows that left, per leaf."""
        self._deleting = True
        for leaf, rows in enumerate(left):
            rows = list(rows)  # noqa: PLW2901
            for row in rows:
                sites = self._router.leaf_destinations(leaf, row)
                self._tell_table(Kind.LEAF_OUT, leaf, row, sites)
            self._derive(self._rules.plans.base[leaf], rows)
            for row in rows:
                self._arrived[leaf].remove(self._arrived_items[leaf].pop(row))

    def rederive(self) -> None:
        """Remove what was over-deleted, and look for other derivations of it."""
        self._deleting = False
        for table in self._joined:
            for row in [row for row, holders in table.holders.items() if not holders]:
                del table.holders[row]
                table.remove(table.by_row.pop(row))
        doomed, self._doomed, self._withdrawn = self._doomed, {}, set()
        sources = {row: self._sources.pop(row) for row in doomed}
        for row in doomed:
            self.derived.discard(row)
        self.derived.settle_groups()
        mine = self._bit(self._site)
        own = self._derivable([row for row, holders in sources.items() if holders & mine])
        for row, holders in sources.items():
            if row in own:
                self._enter(row, holders)
                continue
            for site in self._sites_of(holders & ~mine):
                self._tell(site, Told(Kind.ASK, row))
        self._counters.over_deleted += len(doomed)
        self._over_deleted = doomed

    def end_wave(self) -> None:
        """Count the over-deleted rows that came back."""
        self._counters.rederived += sum(1 for row in self._over_deleted if row in self.derived)
        self._over_deleted = {}

    def take(self, sender: str, item: Told) -> None:
        """Note an item, which is well-formed; `run` works on most of them."""
        row = item.row
        match item.kind:
            case Kind.LEAF_IN:
                self._join(sender, item.numbers[0], row)
            case Kind.LEAF_OUT:
                self._part(sender, item.numbers[0], row)
            case Kind.INSERT:
                self._enter(row, self._bit(sender))
            case Kind.DELETE:
                self._doom(row)
            case Kind.ASK:
                self._answer(sender, row)
            case _:
                raise InternalError(f"a {item.kind.name} is no work for a partition")

    def _answer(self, owner: str, row: Row) -> None:
        """Tell the owner a row again, or forget that it was told."""
        if self._derivable((row,)):
            self._tell(owner, Told(Kind.INSERT, row))
        else:
            self._sent.discard(row)

    def _join(self, holder: str, number: int, row: Row) -> None:
        table = self._joined[number]
        holders = table.holders.get(row, 0)
        table.holders[row] = holders | self._bit(holder)
        if row not in table.by_row:
            item = table.by_row[row] = Item(row, True)
            table.add(item)
            self._fresh[number].append(row)

    def _part(self, holder: str, number: int, row: Row) -> None:
        """Take a holder away; a row without any goes, once the step is over."""
        table = self._joined[number]
        holders = table.holders.get(row, 0)
        if holders & self._bit(holder):
            table.holders[row] = holders & ~self._bit(holder)
            if not table.holders[row]:
                self._fresh[number].append(row)

    def _enter(self, row: Row, sources: int) -> None:
        self.derived.add(row)
        if row in self.derived:
            self._sources[row] = self._sources.get(row, 0) | sources

    def _doom(self, row: Row) -> None:
        if row in self.derived and row not in self._doomed:
            self._doomed[row] = None
            self._released.append(row)

    def run(self, rounds: int | None) -> int:
        """Derive until nothing changes here; return the rounds it took."""
        self._join_fresh()
        done = 0
        while done != rounds and (released := self._take_released()):
            self._copy(released)
            self._derive(self._rules.plans.recursive, released)
            self._join_fresh()
            done += 1
            self._program.check_rounds(done, len(self.derived))
        self.derived.settle_groups()
        self._check_size()
        self._counters.rounds += done
        return done

    def _join_fresh(self) -> None:
        fresh, self._fresh = self._fresh, [[] for _ in self._fresh]
        for table, rows in enumerate(fresh):
            self._derive(self._rules.plans.step[table], rows)

    def _copy(self, rows: list[Row]) -> None:
        """Tell of rows wherever copies of them join; a surpassed row stays there."""
        for row in rows if self._copies else ():
            if self._deleting == (row in self._copied):
                (self._copied.discard if self._deleting else self._copied.add)(row)
                for copy in self._copies:
                    kind = Kind.LEAF_OUT if self._deleting else Kind.LEAF_IN
                    sites = self._router.copy_destinations(copy, row)
                    self._tell_table(kind, self._leaf_count + copy, row, sites)

    def _take_released(self) -> list[Row]:
        if not self._deleting:
            return self.derived.take_released()
        released, self._released = self._released, []
        return released

    def _derive(self, plans: Sequence[ProbePlan], rows: list[Row]) -> None:
        """Derive in one step; tell the owners of what follows that it came, or that it may go."""
        if not rows:
            return
        owner_of, mine, sent = self._router.owner_of, self._site, self._sent
        for row in self._rules.heads(plans, rows, self._table):
            owner = owner_of(row)
            if self._deleting:
                if owner == mine:
                    self._doom(row)
                elif row in sent and row not in self._withdrawn:
                    self._withdrawn.add(row)
                    self._tell(owner, Told(Kind.DELETE, row))
            elif owner == mine:
                self._enter(row, self._bit(mine))
            elif row not in sent and owner in self._indexes:
                sent.add(row)
                self._tell(owner, Told(Kind.INSERT, row))
        self._check_size()

    def _derivable(self, rows: Iterable[Row]) -> set[Row]:
        return self._rules.derivable(rows, self._arrived.__getitem__, self._table)

    def _table(self, number: int) -> ItemTable:
        if number != RECURSIVE:
            return self._joined[number]
        return self.derived.all if self._deleting else self.derived.shown

    def _tell_table(self, kind: Kind, table: int, row: Row, sites: Iterable[str]) -> None:
        for site in sites:
            if site != self._site:
                if site in self._indexes:
                    self._tell(site, Told(kind, row, (table,)))
            elif kind is Kind.LEAF_IN:
                self._join(site, table, row)
            else:
                self._part(site, table, row)

    def _check_size(self) -> None:
        candidates = max(len(self.derived), len(self._sent))
        self._program.check_size(len(self.derived.shown), candidates)

    def _bit(self, site: str) -> int:
        return 1 << self._indexes[site]

    def _sites_of(self, bits: int) -> list[str]:
        return [name for name, index in self._indexes.items() if bits >> index & 1]
