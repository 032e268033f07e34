"""The fixpoint operator: a recursive view maintained with absorption provenance.

Every distinct leaf row gets a token; derived rows carry annotations over tokens. A deletion kills
its token everywhere instead of over-deleting and deriving again, without barriers between sites.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stream_engine.provenance.annotation import Support, least_supports
from stream_engine.provenance.encodings import derivation_hook, encoding_named
from stream_engine.provenance.tokens import MAX_SITES, TokenSource
from stream_engine.recursion.deaths import Deaths
from stream_engine.recursion.leaves import LeafStore
from stream_engine.recursion.options import FixpointCounters, RecursionOptions
from stream_engine.recursion.outbox import Outbox, Parcels, RecursiveOutgoing
from stream_engine.recursion.placement import Router, placement_of
from stream_engine.recursion.probing import Annotated, ProbePlan, run_all
from stream_engine.recursion.rule_plans import RulePlans
from stream_engine.recursion.rules import RECURSIVE, Rule, narrowed, rules_of
from stream_engine.recursion.tables import ItemTable
from stream_engine.recursion.view import SelectiveView, View
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.errors import InternalError, RecursionLimitError, WireError
from streamsql.wire.messages import AnnotatedRow

ROWS_PORT = "rows"
LEAF_PORT = "leaf:"
_CHUNK = 1_000
_SPARE_ROUNDS = 1_000
_SWEEP_AT = 4_096
_SWEEP_AT_LATEST = 30_000  # half of the variables a BDD may have


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a row is in the view.

    Attributes:
        supports: Minimal known combinations of tokens; each alone suffices.
        rows: Token -> (leaf number, the leaf's row cut to the columns the recursion reads). Tokens
            of rows that only other sites have are missing.
    """

    supports: tuple[Support, ...]
    rows: dict[int, tuple[int, Row]]


class FixpointOperator:
    """Maintains a site's partition of a recursive view.

    State: leaf rows with tokens, the partition's rows with annotations, and what was derived for
    other sites. Work per settle is proportional to the derivations that change, plus the rows
    whose annotations mention a dead token.

    Args:
        node: The fixpoint.
        site: This site.
        sites: All sites that compute the recursion together, in the same order everywhere.
        epoch: Of this site; grows with every restart.
        options: How to do it.

    Attributes:
        leaves: Plans whose changes are given to `apply`, by port number.
        counters: Work done so far.

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
        if site not in sites or len(sites) > MAX_SITES:
            raise InternalError(f"recursion {node.name}: {site} not among {len(sites)} sites")
        rule_set = rules_of(node)
        uses, rules = narrowed(rule_set)
        self.node = node
        self.site = site
        self.sites = sites
        self.leaves = rule_set.leaves
        self.leaf_columns = tuple(use.columns for use in uses)
        self.counters = FixpointCounters()
        self.encoding = encoding_named(options.annotations, width=options.width)
        self._annotations = options.annotations
        self._name_derived = derivation_hook(self.encoding)
        self._shipping = options.shipping
        self._max_derivations = options.max_derivations
        self._order = _token_order(options, rules, len(uses), self.encoding)
        self._router = Router(placement_of(rules, len(uses)), sites, options.owner)
        self._plans = RulePlans(rules, len(uses))
        self._alone = len(sites) == 1
        tokens = TokenSource(sites.index(site), epoch)
        self._leaf_rows = LeafStore(uses, tokens, self.encoding, alone=self._alone)
        self._view = self._new_view()
        self._outbox = Outbox(self.encoding, self._shipping)
        self._parcels = Parcels()
        self._deaths = Deaths()
        self._inbox: list[tuple[str, Row, Any]] = []
        self._unswept: set[int] = set()
        self._settle_derivations = 0
        self._failure: RecursionLimitError | None = None

    @property
    def description(self) -> str:
        """How it is maintained, for EXPLAIN ANALYZE."""
        if self._annotations == "relative":
            return f"relative ({self._shipping})"
        return f"absorption ({self._annotations}, {self._shipping})"

    def _new_view(self) -> View:
        selection = self.node.selection
        if selection is None:
            return View(self.encoding, self._shipping)
        return SelectiveView(self.encoding, self._shipping, selection)

    # -- input --------------------------------------------------------------------------------

    def apply(self, port: int, delta: Delta) -> None:
        """Note changes of leaf `port`, with any weights; `settle` works on them."""
        if self._failure is None:
            self._leaf_rows.buffer(port, delta)

    def receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        """Note what another site sent; `settle` works on it.

        Raises:
            WireError: The port is unknown, or a row or token is malformed.
        """
        if self._failure is not None:
            return
        width = self._port_width(port, sender)
        if self._order is not None and self._order.follow(row.annotation for row in annotated):
            self._rewrite()
        decoded = []
        for row in annotated:
            annotation = self.encoding.decode(row.annotation)
            if len(row.row) != width:
                raise WireError(f"{sender}, port {port}: {len(row.row)} columns instead of {width}")
            if port != ROWS_PORT and len(tuple(self.encoding.tokens(annotation))) != 1:
                raise WireError(f"{sender}, port {port}: a leaf row has exactly one token")
            decoded.append((port, row.row, annotation))
        self._deaths.note(kills)
        self._inbox.extend(decoded)
        self.counters.received_rows += len(annotated)

    def _port_width(self, port: str, sender: str) -> int:
        if port == ROWS_PORT:
            return len(self.node.schema)
        number = port.removeprefix(LEAF_PORT)
        if port.startswith(LEAF_PORT) and number.isdecimal() and int(number) < len(self.leaves):
            return len(self.leaf_columns[int(number)])
        raise WireError(f"{sender}: recursion {self.node.name} has no port {port!r:.40}")

    def kill_site(self, site: str, epoch: int) -> None:
        """Declare all tokens of a site dead that are of this epoch or an earlier one."""
        self._deaths.note_lost_site(self.sites.index(site), epoch)

    # -- settling -----------------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether `settle` has nothing left to do with what was noted before it."""
        return not (self._view.released or self._inbox or self._deaths.has_news)

    def settle(self, rounds: int | None = None) -> Delta:
        """Work until nothing changes here; return the view's set-level change (+1 / -1).

        Args:
            rounds: Stop after that many rounds of semi-naive evaluation and keep the rest for the
                next call; for tests that count messages per round.

        Raises:
            RecursionLimitError: The view or the work grew past its bound. All state is dropped, and
                every later call raises the same error.
        """
        if self._failure is not None:
            raise self._failure
        self.counters.settles += 1
        self._settle_derivations = 0
        try:
            self._take_in()
            done = 0
            while self._view.released and done != rounds:
                self._round()
                done += 1
                self._check_rounds(done)
        except RecursionLimitError as error:
            self._failure = error
            self.clear()
            raise
        self._ship()
        changes, self._view.changes = self._view.changes, {}
        return changes

    def _take_in(self) -> None:
        """Work on everything noted: first deaths, then new leaf rows, then new derivations."""
        dead = self._leaf_rows.take_changes(self._place, self._send_leaf_row)
        received: list[Annotated] = []
        if not self._alone or self._deaths.has_news:
            dead = self._all_dead(dead)
            received = self._open_inbox(dead)
        if dead:
            self._kill(dead)
        self._join_fresh()
        self._view.merge_received(received)
        self._derive_suspects()
        self._view.settle_groups()
        self._check_size()
        if len(self._unswept) > min(max(_SWEEP_AT, len(self._view.entries)), _SWEEP_AT_LATEST):
            self._sweep()

    def _place(self, leaf: int, rows: list[tuple[int, Row]]) -> None:
        """Give new tokens their variables."""
        if self._order is not None and self._order.place(leaf, rows):
            self._rewrite()

    def _rewrite(self) -> None:
        """Bring all annotations into the variables of now."""
        rewritten = self.encoding.rewritten
        self._leaf_rows.rewrite(rewritten)
        self._view.rewrite(rewritten)
        self._outbox.rewrite(rewritten)
        self._inbox = [(port, row, rewritten(part)) for port, row, part in self._inbox]

    def _send_leaf_row(self, leaf: int, row: Row, token: int, annotation: Any) -> None:
        for site in self._router.leaf_destinations(leaf, row):
            if site == self.site:
                self._leaf_rows.join(leaf, row, token, annotation)
            else:
                encoded = self.encoding.encode(annotation)
                self._parcels.add(site, f"{LEAF_PORT}{leaf}", row, encoded)

    def _all_dead(self, own: set[int]) -> set[int]:
        """Announce own deaths to all sites, and add those of other sites."""
        kills = sorted(own)
        for site in self.sites:
            if kills and site != self.site:
                self._parcels.add_kills(site, kills)
                self.counters.sent_kills += len(kills)
        return self._deaths.take(own, self._known_tokens)

    def _known_tokens(self) -> set[int]:
        return self._view.tokens() | self._outbox.tokens() | self._leaf_rows.known_tokens()

    def _open_inbox(self, dead: set[int]) -> list[Annotated]:
        """Take leaf rows in; return derived rows. Whatever rests on dead tokens is cut away.

        Args:
            dead: Takes up tokens that were found dead, so that they are swept again.
        """
        inbox, self._inbox = self._inbox, []
        rows: list[Annotated] = []
        for port, row, annotation in inbox:
            stale = self._deaths.tombstones.among(self.encoding.tokens(annotation))
            if stale:
                dead.update(stale)
                annotation = self.encoding.restrict(annotation, stale)  # noqa: PLW2901
                if self.encoding.is_false(annotation):
                    continue
            if port == ROWS_PORT:
                rows.append((row, annotation))
            else:
                (token,) = self.encoding.tokens(annotation)
                leaf = int(port.removeprefix(LEAF_PORT))
                self._leaf_rows.join(leaf, row, token, annotation)
        return rows

    def _kill(self, dead: set[int]) -> None:
        """Remove dead leaf rows and restrict every annotation that mentions them."""
        self._leaf_rows.kill(dead)
        self._unswept.update(dead)
        self._view.restrict_released(dead)
        self.counters.kills += len(dead)
        self.counters.touched += self._view.kill(dead) + self._outbox.kill(dead)

    def _sweep(self) -> None:
        """Forget dead tokens for good: only tombstones know them afterwards."""
        self._view.sweep()
        self._outbox.sweep()
        self.encoding.release(self._unswept)
        if self._order is not None:
            self._order.forget(self._unswept)
        self._unswept = set()

    def _join_fresh(self) -> None:
        """Derive from new leaf rows: by step rules with the view as it was, then by base rules."""
        arrived, joined = self._leaf_rows.take_fresh()
        for plans, fresh in ((self._plans.step, joined), (self._plans.base, arrived)):
            for leaf, items in enumerate(fresh):
                if items and plans[leaf]:
                    self._derive(plans[leaf], [(item.row, item.sent) for item in items])

    def _round(self) -> None:
        """Derive everything that follows in one step from what was released."""
        released, self._view.released = self._view.released, []
        start = [(entry.row, part) for entry, part in released if entry.shown]
        self.counters.rounds += 1
        self._derive(self._plans.recursive, start)
        self._view.settle_groups()

    def _derive(self, plans: Sequence[ProbePlan], start: list[Annotated]) -> None:
        for at in range(0, len(start), _CHUNK):
            chunk = start[at : at + _CHUNK]
            derived = run_all(plans, chunk, self._table, self.encoding.conjoin)
            if self._name_derived is not None:
                derived = [(row, self._name_derived(row, part)) for row, part in derived]
            self._settle_derivations += len(derived)
            self.counters.derivations += len(derived)
            self._deliver(derived)
            self._check_size()

    def _table(self, number: int) -> ItemTable:
        return self._view.joined if number == RECURSIVE else self._leaf_rows.joined[number]

    def _deliver(self, derived: list[Annotated]) -> None:
        """Hand derived rows to the partition that owns them."""
        if self._alone:
            self._view.merge(derived)
            return
        owner_of, mine = self._router.owner_of, self.site
        here: list[Annotated] = []
        elsewhere: list[Annotated] = []
        for pair in derived:
            (here if owner_of(pair[0]) == mine else elsewhere).append(pair)
        self._view.merge(here)
        self._outbox.merge(elsewhere)

    def _derive_suspects(self) -> None:
        """Look for derivations of rows that lost all kept support but had dropped some."""
        suspects = self._view.suspects + self._outbox.suspects
        self._view.suspects, self._outbox.suspects = [], []
        for row in suspects:
            start = [(row, self.encoding.true)]
            conjoin = self.encoding.conjoin
            found = run_all(
                self._plans.base_heads, start, self._leaf_rows.arrived.__getitem__, conjoin
            )
            found += run_all(self._plans.step_heads, start, self._table, conjoin)
            if self._name_derived is not None:
                found = [(row, self._name_derived(row, part)) for row, part in found]
            self.counters.rederived += 1
            self._settle_derivations += len(found)
            self._deliver([pair for pair in found if pair[0] == row])

    # -- output -------------------------------------------------------------------------------

    def _ship(self) -> None:
        for row, annotation in self._outbox.take():
            encoded = self.encoding.encode(annotation)
            self._parcels.add(self._router.owner_of(row), ROWS_PORT, row, encoded)

    def drain(self) -> list[RecursiveOutgoing]:
        """Return the messages for other sites that settling has produced, in sending order."""
        messages = self._parcels.drain()
        for message in messages:
            self.counters.sent_rows += len(message.annotated)
            self.counters.sent_bytes += sum(len(row.annotation) for row in message.annotated)
        return messages

    def state_rows(self) -> Iterator[Row]:
        """Yield the rows of this site's partition of the view."""
        return (item.row for item in self._view.joined.items)

    def leaf_rows(self, leaf: int) -> Iterator[tuple[int, Row]]:
        """Yield token and row (cut to `leaf_columns`) of the leaf rows that arrived here."""
        return ((token, item.row) for token, item in self._leaf_rows.arrived[leaf].by_token.items())

    def explain_row(self, row: Row, limit: int = 16) -> Explanation | None:
        """Return why a row is in the view, or None when it is not.

        Args:
            row: A row of this site's partition.
            limit: Most supports returned.
        """
        entry = self._view.entries.get(row)
        if entry is None or not entry.shown:
            return None
        supports: list[Support] = []
        for part in self._view.annotations(entry):
            supports.extend(self.encoding.supports(part, limit))
        minimal = least_supports(supports)[:limit]
        found = {t: self._leaf_rows.row_of(t) for support in minimal for t in support}
        rows = {token: place for token, place in found.items() if place is not None}
        return Explanation(minimal, rows)

    # -- bounds -------------------------------------------------------------------------------

    def _check_size(self) -> None:
        limit = self.node.limit
        candidates = len(self._view.entries)
        if len(self._view) > limit or candidates > 2 * limit + _CHUNK:
            rows = limit if len(self._view) > limit else f"{2 * limit} candidate"
            raise RecursionLimitError(
                f"recursion {self.node.name} has more than {rows} rows at {self.site}",
                hint="bound it (hops < 12) or raise it: WITH RECURSIVE (LIMIT n)",
            )
        if self._settle_derivations > self._max_derivations:
            raise RecursionLimitError(
                f"recursion {self.node.name} needs more than {self._max_derivations} derivations "
                "for one change",
                hint="bound it (hops < 12), or join it with fewer rows",
            )

    def _check_rounds(self, done: int) -> None:
        """Notice cycles that improve for ever: a best row needs every group at most once."""
        groups = self._view.group_count
        if groups is not None and done > groups + _SPARE_ROUNDS:
            raise RecursionLimitError(
                f"recursion {self.node.name} still changes after {done} rounds",
                hint="is there a cycle of negative cost?",
            )

    def clear(self) -> None:
        """Drop all state."""
        self._leaf_rows.clear()
        self._view.clear()
        self._outbox.clear()
        self._parcels.drain()
        self._inbox = []
        self._unswept = set()
        self._deaths = Deaths()


def _token_order(
    options: RecursionOptions, rules: tuple[Rule, ...], leaf_count: int, encoding: Any
) -> Any:
    """Return what orders the variables of decision diagrams; None where there are none to order."""
    if options.annotations != "bdd" or options.order == "arrival":
        return None
    # Imported here because it needs the library of decision diagrams.
    from stream_engine.recursion.token_order import TokenOrder  # noqa: PLC0415

    return TokenOrder(options.order, rules, leaf_count, encoding)
