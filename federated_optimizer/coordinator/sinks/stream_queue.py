"""Rows of a stream that a receiver has still to be told, oldest first.

Pure. Rows are numbered; those that wait and the latest that were sent are remembered. After a
restart the site that makes the stream sends its latest rows again: those that are remembered have
been queued before, the others came while nobody listened.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from typing_extensions import override

from federated_optimizer.coordinator.contract.sink_model import DeadLetter
from federated_optimizer.coordinator.sinks.outgoing import Book, Outgoing, Refusal
from federated_optimizer.coordinator.sinks.upsert_book import MAX_DEAD
from streamsql.data.types import Row
from streamsql.wire.channel_protocol import STREAM_ROWS

MAX_WAITING = 100_000
"""Rows that wait for a receiver; of more the oldest are dropped."""
MAX_WAITING_BYTES = 64_000_000
"""Of those rows; a single row may be larger."""
KEPT = 2 * STREAM_ROWS
"""Rows that were sent and are remembered: a site sends as many again."""

Remember = Callable[[int, Row | None], None]
RememberDead = Callable[[int, DeadLetter | None], None]


class StreamQueue(Book):
    """State: the rows that wait, and the latest ones that were sent.

    Args:
        rows: With their numbers, in order: what is remembered.
        acknowledged: Number of the last row that is done with.
        dead: Messages that were given up.
        remember: Called when a row is queued, or is no longer worth remembering.
        remember_dead: Called when a letter dies, or is sent again.
    """

    def __init__(
        self,
        *,
        rows: Iterable[tuple[int, Row]] = (),
        acknowledged: int = 0,
        dead: Iterable[DeadLetter] = (),
        remember: Remember,
        remember_dead: RememberDead,
    ) -> None:
        self._remember = remember
        self._remember_dead = remember_dead
        self._waiting: deque[tuple[int, Row]] = deque()
        self._bytes = 0
        self._sent: deque[int] = deque()
        self._repeated: Counter[Row] = Counter()
        self._dead = {letter.number: letter for letter in dead}
        self._next = 1 + max((acknowledged, *self._dead))
        for number, row in rows:
            self._repeated[row] += 1
            self._next = max(self._next, number + 1)
            if number > acknowledged:
                self._append(number, row)
            else:
                self._sent.append(number)
        self.acknowledged = acknowledged
        self._dropped = 0

    @property
    @override
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    @override
    def dead(self) -> tuple[DeadLetter, ...]:
        return tuple(self._dead.values())

    @property
    @override
    def dropped(self) -> int:
        return self._dropped

    def follow(self, rows: Iterable[tuple[Row, int]]) -> None:
        """Ingest rows that were added, each with its multiplicity."""
        for row, weight in rows:
            for _ in range(weight):
                if self._repeated[row] > 0:
                    self._repeated[row] -= 1
                else:
                    self._add(row)

    def caught_up(self) -> None:
        """The site has sent what it had: equal rows are new ones from now on."""
        self._repeated.clear()

    @override
    def take(self, limit: int) -> list[Outgoing]:
        taken = islice(self._waiting, limit)
        return [Outgoing(row=row, number=number) for number, row in taken]

    @override
    def done(self, batch: Sequence[Outgoing], refused: Sequence[Refusal], now: int) -> None:
        for refusal in refused:
            self._bury(refusal, now)
        for message in batch:
            # Dropped meanwhile: it is no longer the first, but done all the same.
            if self._waiting and self._waiting[0][0] == message.number:
                self._pop()
            self._note_sent(message.number)

    @override
    def put_back(self, batch: Sequence[Outgoing]) -> None:
        """Nothing: rows stay in the queue until they are done."""

    @override
    def retry(self) -> int:
        letters = self.dead
        self.discard()
        for letter in letters:
            if letter.row is not None:
                self._add(letter.row)
        return len(letters)

    @override
    def discard(self) -> int:
        numbers = tuple(self._dead)
        for number in numbers:
            del self._dead[number]
            self._remember_dead(number, None)
        return len(numbers)

    @property
    def is_full(self) -> bool:
        """Whether the next row that comes, if it is like the others, drops the oldest."""
        waiting = len(self._waiting)
        one_more = self._bytes + self._bytes / waiting if waiting else 0
        return waiting >= MAX_WAITING or one_more > MAX_WAITING_BYTES

    def _add(self, row: Row) -> None:
        number, self._next = self._next, self._next + 1
        self._append(number, row)
        self._remember(number, row)
        while len(self._waiting) > 1 and (
            len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES
        ):
            self._dropped += 1
            self._note_sent(self._pop())

    def _append(self, number: int, row: Row) -> None:
        self._waiting.append((number, row))
        self._bytes += _size(row)

    def _pop(self) -> int:
        number, row = self._waiting.popleft()
        self._bytes -= _size(row)
        return number

    def _note_sent(self, number: int) -> None:
        if number <= self.acknowledged:
            return
        self.acknowledged = number
        self._sent.append(number)
        if len(self._sent) > KEPT:
            self._remember(self._sent.popleft(), None)

    def _bury(self, refusal: Refusal, now: int) -> None:
        message = refusal.message
        letter = DeadLetter((), message.row, message.number, refusal.reason, refusal.tries, now)
        self._dead[message.number] = letter
        self._remember_dead(message.number, letter)
        if len(self._dead) > MAX_DEAD:
            oldest = next(iter(self._dead))
            del self._dead[oldest]
            self._remember_dead(oldest, None)
            self._dropped += 1


def _size(row: Row) -> int:
    """Return about how many bytes a row takes."""
    return 100 + 30 * len(row) + sum(len(value) for value in row if isinstance(value, str))
