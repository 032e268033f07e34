"""The fixpoint operator: a recursive view maintained with absorption provenance.

Every distinct leaf row gets a token; derived rows carry annotations over tokens. A deletion kills
its token everywhere instead of over-deleting and deriving again, without barriers between sites.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from typing_extensions import override

from stream_engine.provenance.annotation import AnnotationEncoding
from stream_engine.provenance.encodings import encoding_named
from stream_engine.provenance.tokens import TokenSource
from stream_engine.recursion.absorption.absorption_partition import Partition
from stream_engine.recursion.absorption.deaths import DEAD_PORT, Deaths
from stream_engine.recursion.absorption.recursion_outbox import RecursiveOutgoing
from stream_engine.recursion.absorption.site_recursion import SiteRecursion
from stream_engine.recursion.program.fixpoint_options import FixpointCounters, RecursionOptions
from stream_engine.recursion.program.flushing import Flushing
from stream_engine.recursion.program.leaf_relations import LeafStore
from stream_engine.recursion.program.mail import Ports, decoded
from stream_engine.recursion.program.placement import Placement, Router, placement_of
from stream_engine.recursion.program.probing import Annotated
from stream_engine.recursion.program.program import program_of
from stream_engine.recursion.program.rules import Rule
from streamsql.algebra.choices import Annotations, DiagramOrder, Shipping
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.messages import AnnotatedRow


class FixpointOperator(SiteRecursion):
    """Maintains a site's partition of a recursive view.

    State: leaf rows with tokens, the partition's rows with annotations, what was derived for other
    sites, and where a rule joins the view with itself copies of rows that are at home elsewhere.
    Work per settle is proportional to the derivations that change, plus the rows whose annotations
    mention a dead token.

    Raises:
        UnsupportedError: The recursion is not monotone.
    """

    def __init__(
        self,
        node: Fixpoint,
        *,
        site: str,
        sites: tuple[str, ...],
        epoch: int,
        options: RecursionOptions | None = None,
    ) -> None:
        options = options or RecursionOptions()
        program = program_of(node, interrupted=options.interrupted)
        super().__init__(program, site, sites)
        self.counters = FixpointCounters()
        self._shipping = _shipping(options)
        self.encoding = _encoding(options, self._shipping)
        self._annotations = options.annotations
        self._leaf_count = len(program.uses)
        self._order = _token_order(
            options, self._shipping, program.rules, self._leaf_count, self.encoding
        )
        placement = placement_of(program.rules, self._leaf_count, program.group)
        if len(sites) == 1:
            placement = Placement(placement.columns, placement.routes, rules=program.rules)
        widths = [len(columns) for columns in self.leaf_columns]
        self._ports = Ports(node.name, widths, len(placement.copies), program.width)
        tokens = TokenSource(sites.index(site), epoch)
        self._origin = tokens.origin
        self._leaf_rows = LeafStore(program.uses, tokens, self.encoding, alone=len(sites) == 1)
        self._partition = Partition(
            program,
            Router(placement, sites, options.owner),
            site=site,
            leaf_rows=self._leaf_rows,
            ports=self._ports,
            encoding=self.encoding,
            shipping=self._shipping,
            options=options,
            counters=self.counters,
        )
        self._view = self._partition.view
        self._deaths = Deaths()
        is_lazy = self._shipping is Shipping.LAZY
        self._flushing = Flushing(
            options.interval if is_lazy else None, options.capacity if is_lazy else None
        )
        self._inbox: list[tuple[int, Row, Any]] = []

    @property
    def description(self) -> str:
        """How it is maintained, for EXPLAIN ANALYZE."""
        if self._annotations == Annotations.RELATIVE:
            return f"relative ({self._shipping})"
        if self._shipping is Shipping.WITNESS:
            return "absorption (witness)"
        return f"absorption ({self._annotations}, {self._shipping})"

    @override
    def _buffer(self, leaf: int, delta: Delta) -> None:
        self._leaf_rows.buffer(leaf, delta)

    @override
    def _receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        if port == DEAD_PORT:
            for told in annotated:
                self._deaths.note_told(told.annotation)
            return
        table, rows = self._ports.open(sender, port, annotated)
        if self._order is not None and self._order.follow([part for _, part in rows]):
            self._rewrite()
        noted = [(table, row, decoded(self.encoding, part)) for row, part in rows]
        if 0 <= table < self._leaf_count:
            for _, _, annotation in noted:
                if len(tuple(self.encoding.tokens(annotation))) != 1:
                    raise WireError(f"{sender}, port {port}: a leaf row has exactly one token")
        self._deaths.note(kills)
        self._inbox.extend(noted)
        self.counters.received_rows += len(noted)

    @override
    def kill_site(self, site: str, epoch: int) -> None:
        self._deaths.note_lost_site(self._sites.index(site), epoch)

    def advance(self, now: int) -> None:
        """Move the time; what was buffered longer than the interval is sent by the next settle."""
        self._flushing.advance(now)

    def next_wakeup(self) -> int | None:
        """Return when a settle would send something although nothing comes in, or None."""
        return self._flushing.next_wakeup

    @property
    @override
    def is_settled(self) -> bool:
        return not (self._partition.has_released or self._inbox or self._deaths.has_news)

    @override
    def _work(self, rounds: int | None) -> Delta:
        self.counters.settles += 1
        partition = self._partition
        partition.begin()
        self._take_in()
        partition.run(rounds)
        if self._flushing.is_due(partition.waiting):
            partition.flush()
            self._flushing.flushed(partition.waiting)
        self._flushing.note(partition.waiting)
        partition.ship()
        changes, self._view.changes = self._view.changes, {}
        return changes

    def _take_in(self) -> None:
        """Work on everything noted: first deaths, then new leaf rows, then new derivations."""
        partition = self._partition
        dead = self._leaf_rows.take_changes(self._place, partition.send_leaf_row)
        received: dict[int, list[Annotated]] = {}
        if len(self._sites) > 1 or self._deaths.has_news:
            dead = self._all_dead(dead)
            received = self._open_inbox(dead)
        if dead:
            partition.kill(dead)
        partition.take_in(received)
        if partition.needs_sweep:
            swept = partition.sweep()
            if self._order is not None:
                self._order.forget(swept)

    def _place(self, leaf: int, rows: list[tuple[int, Row]]) -> None:
        """Give new tokens their variables."""
        if self._order is not None and self._order.place(leaf, rows):
            self._rewrite()

    def _rewrite(self) -> None:
        """Bring all annotations into the variables of now."""
        rewritten = self.encoding.rewritten
        self._leaf_rows.rewrite(rewritten)
        for table in self._partition.tables:
            table.rewrite(rewritten)
        self._inbox = [(table, row, rewritten(part)) for table, row, part in self._inbox]

    def _all_dead(self, own: set[int]) -> set[int]:
        """Announce own deaths to all sites, and add those of other sites."""
        kills = sorted(own)
        for site in self._sites:
            if kills and site != self._site:
                self._partition.parcels.add_kills(site, kills)
                self.counters.sent_kills += len(kills)
        return self._deaths.take(own, self._known_tokens)

    def _known_tokens(self) -> set[int]:
        known = self._leaf_rows.known_tokens()
        return known.union(*(table.tokens() for table in self._partition.tables))

    def _open_inbox(self, dead: set[int]) -> dict[int, list[Annotated]]:
        """Ingest leaf rows; return derived rows by table. What rests on dead tokens is cut away.

        Args:
            dead: Receives tokens that were found dead, so that they are swept again.
        """
        inbox, self._inbox = self._inbox, []
        tokens_of = self.encoding.tokens
        mentioned = {token for _, _, annotation in inbox for token in tokens_of(annotation)}
        stale = set(self._deaths.tombstones.among(mentioned))
        dead.update(stale)
        rows: dict[int, list[Annotated]] = {}
        for table, row, annotation in inbox:
            if stale:
                annotation = self.encoding.restrict(annotation, stale)  # noqa: PLW2901
                if self.encoding.is_false(annotation):
                    continue
            if 0 <= table < self._leaf_count:
                (token,) = self.encoding.tokens(annotation)
                self._leaf_rows.join(table, row, token, annotation)
            else:
                rows.setdefault(table, []).append((row, annotation))
        return rows

    @override
    def _messages(self) -> list[RecursiveOutgoing]:
        return self._partition.parcels.drain()

    def replay(self, site: str) -> list[RecursiveOutgoing]:
        """Return messages that tell another site all it has to know of this one.

        They are made from what is there now, and take the place of all messages so far: what they
        leave out rests on dead tokens.
        """
        told = AnnotatedRow((), self._deaths.told(self._origin))
        return [*self._partition.replay(site), RecursiveOutgoing(site, DEAD_PORT, (told,))]

    @override
    def state_rows(self) -> Iterator[Row]:
        return (item.row for item in self._view.joined.items)

    @override
    def clear(self) -> None:
        self._partition.clear()
        self._inbox = []
        self._deaths = Deaths()


def _shipping(options: RecursionOptions) -> Shipping:
    """Return how alternatives are sent: a derivation graph has no single witness."""
    if options.annotations == Annotations.RELATIVE and options.shipping is Shipping.WITNESS:
        return Shipping.LAZY
    return options.shipping


def _encoding(options: RecursionOptions, shipping: Shipping) -> AnnotationEncoding[Any]:
    """Return the encoding of annotations: one conjunction is best listed."""
    name = Annotations.DNF if shipping is Shipping.WITNESS else options.annotations
    return encoding_named(name, width=options.width)


def _token_order(
    options: RecursionOptions,
    shipping: Shipping,
    rules: tuple[Rule, ...],
    leaf_count: int,
    encoding: Any,
) -> Any:
    has_diagrams = options.annotations == Annotations.BDD and shipping is not Shipping.WITNESS
    if not has_diagrams or options.order == DiagramOrder.ARRIVAL:
        return None
    # Imported here because it needs the library of decision diagrams.
    from stream_engine.recursion.absorption.token_order import TokenOrder  # noqa: PLC0415

    return TokenOrder(options.order, rules, leaf_count, encoding)
