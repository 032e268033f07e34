"""A recursion whose base rows travel, and nothing derived: at one site, at a centre, or flooded.

Alone, a site runs a local engine over its own leaf rows. With several sites, every leaf row gets a
token of the site where it arrived and is sent to the sites that compute: to all of them ("flood",
as link-state routing does; each shows its part of the view) or to the first one ("centre", which
shows all of it). Tokens make messages idempotent and let a lost site be declared dead as a whole.
"""

from collections.abc import Callable, Iterator, Sequence

from typing_extensions import override

from stream_engine.provenance.tokens import TokenSource, checked_token
from stream_engine.provenance.varint import VarintReader, write_varint
from stream_engine.recursion.absorption.deaths import DEAD_PORT, Deaths
from stream_engine.recursion.absorption.recursion_outbox import Parcels, RecursiveOutgoing
from stream_engine.recursion.absorption.site_recursion import SiteRecursion
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.leaf_relations import LeafInput
from stream_engine.recursion.program.local_engine import LocalEngine
from stream_engine.recursion.program.placement import Placement, Router
from stream_engine.recursion.program.program import Program
from streamsql.algebra.choices import Way
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.messages import AnnotatedRow

LEAF_PORT = "leaf:"

Change = tuple[list[list[Row]], list[list[Row]]]
"""Per leaf, the rows that entered and those that left."""


class ReplicatedFixpoint(SiteRecursion):
    """A recursive operator around a local engine.

    State: the engine's, the weights of this site's leaf rows, and with several sites the token of
    every leaf row and how many sites have it. Work per settle: the engine's, plus one message part
    per changed leaf row and computing site.

    Args:
        options: `way` and `owner` count here.
    """

    def __init__(  # noqa: PLR0913  (what it is, where it is, and how to do it)
        self,
        program: Program,
        make_engine: Callable[[Program, RecursionOptions], LocalEngine],
        *,
        site: str,
        sites: tuple[str, ...],
        epoch: int,
        options: RecursionOptions,
    ) -> None:
        super().__init__(program, site, sites)
        self._alone = len(sites) == 1
        self._floods = options.way == Way.FLOOD
        self._computes = self._floods or site == sites[0]
        self._receivers = _receivers(site, sites, floods=self._floods)
        self._inputs = tuple(LeafInput(use) for use in program.uses)
        self._engine = make_engine(program, options)
        self.counters = self._engine.counters
        self._shares = _shares(program, sites, options) if self._floods else None
        self._tokens = TokenSource(sites.index(site), epoch)
        self._token_of: tuple[dict[Row, int], ...] = tuple({} for _ in program.uses)
        self._holders = _Holders(len(program.uses))
        self._parcels = Parcels()
        self._deaths = Deaths()
        self._inbox: list[tuple[int, Row, int]] = []

    @property
    def description(self) -> str:
        """How it is maintained, for EXPLAIN ANALYZE."""
        if self._alone:
            return self._engine.description
        way = "flooded to all sites" if self._floods else f"centred at {self._sites[0]}"
        return f"{self._engine.description}, base rows {way}"

    @override
    def _buffer(self, leaf: int, delta: Delta) -> None:
        self._inputs[leaf].buffer(delta)

    @override
    def _receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        if port == DEAD_PORT:
            for told in annotated:
                self._deaths.note_told(told.annotation)
            return
        number = port.removeprefix(LEAF_PORT)
        if annotated and not (
            port.startswith(LEAF_PORT) and number.isdecimal() and int(number) < len(self.leaves)
        ):
            raise WireError(f"{sender}: recursion {self._program.name} has no port {port!r:.40}")
        arrived: list[tuple[int, Row, int]] = []
        for row in annotated:
            width = len(self.leaf_columns[int(number)])
            if len(row.row) != width:
                raise WireError(f"{sender}, port {port}: {len(row.row)} columns instead of {width}")
            reader = VarintReader(row.annotation)
            token = checked_token(reader.read((1 << 64) - 1))
            reader.finish()
            arrived.append((int(number), row.row, token))
        self._deaths.note(kills)
        self._inbox.extend(arrived)
        self.counters.received_rows += len(arrived)

    @override
    def kill_site(self, site: str, epoch: int) -> None:
        self._deaths.note_lost_site(self._sites.index(site), epoch)

    @property
    @override
    def is_settled(self) -> bool:
        return not (self._inbox or self._deaths.has_news)

    @override
    def _work(self, rounds: int | None) -> Delta:
        taken = [source.take() for source in self._inputs]
        change: Change = ([entered for entered, _ in taken], [left for _, left in taken])
        if not self._alone:
            change = self._exchanged(change)
        if not self._computes or not any(map(any, change)):
            return {}
        delta = self._engine.change(*change)
        if self._shares is None:
            return delta
        owner_of, mine = self._shares.owner_of, self._site
        return {row: weight for row, weight in delta.items() if owner_of(row) == mine}

    def _exchanged(self, own: Change) -> Change:
        """Send own changes, ingest those of others; return what changed at this site."""
        self._holders.begin()
        dead: list[int] = []
        for leaf, (entered, left) in enumerate(zip(*own, strict=True)):
            tokens = self._token_of[leaf]
            dead.extend(tokens.pop(row) for row in left)
            for row in entered:
                token = tokens[row] = self._tokens.fresh()
                self._holders.add(leaf, row, token)
                for site in self._receivers:
                    self._parcels.add(site, f"{LEAF_PORT}{leaf}", row, _encoded(token))
        for site in self._receivers if dead else ():
            self._parcels.add_kills(site, dead)
            self.counters.sent_kills += len(dead)
        inbox, self._inbox = self._inbox, []
        for token in self._deaths.take(dead, self._holders.tokens):
            self._holders.kill(token)
        tombstones = self._deaths.tombstones
        for leaf, row, token in inbox:
            if token not in tombstones:
                self._holders.add(leaf, row, token)
        return self._holders.changes()

    @override
    def _messages(self) -> list[RecursiveOutgoing]:
        return self._parcels.drain()

    def replay(self, site: str) -> list[RecursiveOutgoing]:
        """Return messages that tell another site all it has to know of this one.

        They are made from the leaf rows that are there, and take the place of all messages so far,
        so none has to be remembered.
        """
        if site not in self._receivers:
            return []
        parcels = Parcels()
        for leaf, tokens in enumerate(self._token_of):
            for row, token in tokens.items():
                parcels.add(site, f"{LEAF_PORT}{leaf}", row, _encoded(token))
        told = AnnotatedRow((), self._deaths.told(self._tokens.origin))
        return [*parcels.drain(), RecursiveOutgoing(site, DEAD_PORT, (told,))]

    @override
    def state_rows(self) -> Iterator[Row]:
        if self._shares is None:
            return self._engine.rows()
        owner_of, mine = self._shares.owner_of, self._site
        return (row for row in self._engine.rows() if owner_of(row) == mine)

    @override
    def clear(self) -> None:
        self._engine.clear()
        self._parcels.drain()
        self._inbox = []
        self._token_of = tuple({} for _ in self.leaves)
        self._holders = _Holders(len(self.leaves))
        self._deaths = Deaths()


class _Holders:
    """Which tokens hold which leaf rows up: a row is there while one does."""

    def __init__(self, leaves: int) -> None:
        self._row_of: dict[int, tuple[int, Row]] = {}
        self._count: tuple[dict[Row, int], ...] = tuple({} for _ in range(leaves))
        self._before: tuple[dict[Row, bool], ...] = tuple({} for _ in range(leaves))

    def begin(self) -> None:
        self._before = tuple({} for _ in self._count)

    def add(self, leaf: int, row: Row, token: int) -> None:
        """Let a token hold a row; one that does already is ignored."""
        if token not in self._row_of:
            self._row_of[token] = (leaf, row)
            self._change(leaf, row, 1)

    def kill(self, token: int) -> None:
        held = self._row_of.pop(token, None)
        if held is not None:
            self._change(*held, -1)

    def _change(self, leaf: int, row: Row, by: int) -> None:
        counts = self._count[leaf]
        old = counts.get(row, 0)
        self._before[leaf].setdefault(row, old > 0)
        if old + by:
            counts[row] = old + by
        else:
            del counts[row]

    def changes(self) -> Change:
        """Return the rows that entered and left since `begin`."""
        entered: list[list[Row]] = []
        left: list[list[Row]] = []
        for counts, before in zip(self._count, self._before, strict=True):
            entered.append([row for row, was in before.items() if not was and row in counts])
            left.append([row for row, was in before.items() if was and row not in counts])
        return entered, left

    def tokens(self) -> Iterator[int]:
        return iter(self._row_of)


def _receivers(site: str, sites: tuple[str, ...], *, floods: bool) -> tuple[str, ...]:
    chosen = sites if floods else sites[:1]
    return tuple(other for other in chosen if other != site)


def _shares(program: Program, sites: tuple[str, ...], options: RecursionOptions) -> Router:
    """Return who shows which rows: by group where there is a selection, else by the whole row."""
    columns = tuple(range(program.width))
    if program.selection is not None and program.selection.group:
        columns = program.selection.group
    return Router(Placement(columns, ()), sites, options.owner)


def _encoded(token: int) -> bytes:
    out = bytearray()
    write_varint(out, token)
    return bytes(out)
