"""The newest row of each key, and which of them a receiver has still to be told.

Pure. A key that changes often is told once, with its newest row; one message of a key is on its way
at a time, so a receiver sees the rows of a key in their order. A key is *known* from before it is
first told until the receiver has taken that it has no row: what is known is in the catalog, so that
a key that went while nobody looked can be taken back.

While an answer moves, a key may have its new row before the old one is gone: it waits until it has
one. A key that goes while the answer is in doubt is kept as it is until that is decided.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from typing_extensions import override

from federated_optimizer.coordinator.contract.sink_model import DeadLetter
from federated_optimizer.coordinator.sinks.outgoing import Book, Outgoing, Refusal
from streamsql.data.types import Row

MAX_DEAD = 1_000
"""Dead letters that are kept of a sink; of more the oldest go."""
MAX_GONE = 10_000
"""Keys without a row that are kept for their descriptions; of more the oldest are forgotten."""

Remember = Callable[[Row, bool], None]
RememberDead = Callable[[Row, DeadLetter | None], None]


class UpsertBook(Book):
    """State: the rows of the answer by key, and the known keys.

    Args:
        key: Positions of the key's columns.
        known: Keys of which the receiver may have something.
        dead: Messages that were given up.
        remember: Called when a key becomes known, or is no longer.
        remember_dead: Called when a letter dies, or is sent again.
        keeps_gone: Whether keys without a row stay known, because they were described.
    """

    def __init__(  # noqa: PLR0913 - each is one seam
        self,
        key: Sequence[int],
        *,
        known: Iterable[Row] = (),
        dead: Iterable[DeadLetter] = (),
        remember: Remember,
        remember_dead: RememberDead,
        keeps_gone: bool = False,
    ) -> None:
        self._positions = tuple(key)
        self._remember = remember
        self._remember_dead = remember_dead
        self._keeps_gone = keeps_gone
        self._rows: dict[Row, tuple[Row, ...]] = {}
        self._known: set[Row] = set(known)
        self._due: dict[Row, None] = {}
        self._unknown: set[Row] = set(self._known)
        self._ambiguous: set[Row] = set()
        self._gone: dict[Row, None] = {}
        self._forgotten: dict[Row, None] = {}
        self._dead = {letter.key: letter for letter in dead}
        self._dropped = 0
        self._on_their_way = 0

    @property
    @override
    def waiting(self) -> int:
        return len(self._due) + len(self._forgotten) + self._on_their_way

    @property
    @override
    def dead(self) -> tuple[DeadLetter, ...]:
        return tuple(self._dead.values())

    @property
    @override
    def dropped(self) -> int:
        return self._dropped

    @property
    def known(self) -> frozenset[Row]:
        """Keys of which the receiver may have something."""
        return frozenset(self._known)

    @property
    def unknown(self) -> int:
        """Keys that are kept as they are, because nobody can tell whether they have a row."""
        return len(self._unknown)

    @property
    def ambiguous(self) -> tuple[Row, tuple[Row, ...]] | None:
        """Return a key with more than one row, and these; None: there is none."""
        key = next(iter(self._ambiguous), None)
        return None if key is None else (key, self._rows[key])

    def follow(
        self, touched: Iterable[Row], relation: Mapping[Row, int], *, in_doubt: bool
    ) -> None:
        """Ingest that rows may have come or gone.

        Args:
            touched: The rows in question; others are as before.
            relation: The answer: row to its multiplicity.
            in_doubt: Rows that go may be back at once.
        """
        for row in touched:
            key = tuple(row[position] for position in self._positions)
            others = tuple(other for other in self._rows.get(key, ()) if other != row)
            count = relation.get(row, 0)
            present = (*others, *(row for _ in range(min(count, 2))))
            if present:
                self._rows[key] = present
            else:
                self._rows.pop(key, None)
            self._look(key, in_doubt=in_doubt)

    def decide(self) -> None:
        """The answer is complete: keys that have no row in it have none."""
        for key in self._unknown:
            if key not in self._rows:
                self._due[key] = None
        self._unknown.clear()

    def tell_all_again(self) -> None:
        """The receiver may have lost everything."""
        for key in self._rows:
            if key not in self._ambiguous:
                self._due[key] = None
        for key in self._known - self._rows.keys() - self._unknown:
            self._due[key] = None

    @override
    def take(self, limit: int) -> list[Outgoing]:
        batch: list[Outgoing] = []
        while self._forgotten and len(batch) < limit:
            key = next(iter(self._forgotten))
            del self._forgotten[key]
            batch.append(Outgoing(key, forget=True))
        while self._due and len(batch) < limit:
            key = next(iter(self._due))
            del self._due[key]
            rows = self._rows.get(key, ())
            if key not in self._known:
                if not rows:
                    continue  # it came and went before it was told
                self._known.add(key)
                self._remember(key, True)
            batch.append(Outgoing(key, rows[0] if rows else None))
        self._on_their_way = len(batch)
        return batch

    @override
    def done(self, batch: Sequence[Outgoing], refused: Sequence[Refusal], now: int) -> None:
        self._on_their_way = 0
        for refusal in refused:
            self._bury(refusal, now)
        failed = {refusal.message.key for refusal in refused}
        for message in batch:
            if message.key in failed:
                continue
            self._revive(message.key)
            if message.forget or (message.row is None and not self._keeps_gone):
                self._forget(message.key)
            elif message.row is None:
                self._keep_gone(message.key)
            else:
                self._gone.pop(message.key, None)

    @override
    def put_back(self, batch: Sequence[Outgoing]) -> None:
        self._on_their_way = 0
        again = {message.key: None for message in batch if not message.forget}
        self._due = {**again, **self._due}
        self._forgotten |= {message.key: None for message in batch if message.forget}
        for key in again:
            if key in self._unknown or key in self._ambiguous:
                self._due.pop(key, None)

    @override
    def retry(self) -> int:
        keys = tuple(self._dead)
        for key in keys:
            self._revive(key)
            if key not in self._unknown and key not in self._ambiguous:
                self._due[key] = None
        return len(keys)

    @override
    def discard(self) -> int:
        keys = tuple(self._dead)
        for key in keys:
            self._revive(key)
        return len(keys)

    def _look(self, key: Row, *, in_doubt: bool) -> None:
        """Decide what is to be told of a key whose rows may have changed."""
        rows = self._rows.get(key, ())
        self._ambiguous.discard(key)
        if not rows and in_doubt:
            self._due.pop(key, None)
            if key in self._known:
                self._unknown.add(key)
            return
        self._unknown.discard(key)
        if len(rows) > 1:
            self._ambiguous.add(key)
            self._due.pop(key, None)
        elif rows or key in self._known:
            self._due[key] = None
        else:
            self._due.pop(key, None)
        self._forgotten.pop(key, None)

    def _forget(self, key: Row) -> None:
        """Nothing of a key is at the receiver, unless it has a row again by now."""
        self._gone.pop(key, None)
        if key not in self._rows and key in self._known:
            self._known.discard(key)
            self._due.pop(key, None)
            self._remember(key, False)

    def _keep_gone(self, key: Row) -> None:
        self._gone[key] = None
        if len(self._gone) > MAX_GONE:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            self._forgotten[oldest] = None

    def _bury(self, refusal: Refusal, now: int) -> None:
        message = refusal.message
        letter = DeadLetter(message.key, message.row, 0, refusal.reason, refusal.tries, now)
        self._dead.pop(message.key, None)
        self._dead[message.key] = letter
        self._remember_dead(message.key, letter)
        if len(self._dead) > MAX_DEAD:
            self._dropped += 1
            self._revive(next(iter(self._dead)))

    def _revive(self, key: Row) -> None:
        if self._dead.pop(key, None) is not None:
            self._remember_dead(key, None)
