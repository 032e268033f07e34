"""One sink: its query's answer, its book, and the task that empties it."""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from typing_extensions import override

from federated_optimizer.coordinator.contract.sink_model import SinkInfo, SinkStatus
from federated_optimizer.coordinator.notices.followed_answers import FollowedAnswer
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sinks.outgoing import Book, Outgoing, Sender
from federated_optimizer.coordinator.sinks.sink_memory import (
    Remembered,
    SinkCounters,
    SinkMemory,
)
from federated_optimizer.coordinator.sinks.stream_queue import StreamQueue
from federated_optimizer.coordinator.sinks.upsert_book import UpsertBook
from host.clocks import Clock
from streamsql.catalog.sink_definitions import SinkDefinition, SinkMode
from streamsql.data.delta import Delta
from streamsql.data.types import text_of
from streamsql.errors import FederationError

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
"""Before something is tried again that the sender itself does not repeat."""


@dataclass(frozen=True, slots=True)
class SinkParts:
    """Parts of a sink.

    Attributes:
        known: What is known of it from before.
        may_send: Whether this coordinator is in charge.
    """

    definition: SinkDefinition
    query: RunningQuery
    sender: Sender
    memory: SinkMemory
    known: Remembered
    clock: Clock
    may_send: Callable[[], bool]


class Sink(FollowedAnswer):
    """Follows an answer and sends it, each batch after the one before.

    Attributes:
        unreadable: What is wrong with entries of its memory that cannot be read.
    """

    book: Book

    def __init__(self, parts: SinkParts) -> None:
        self.definition = parts.definition
        self.sender = parts.sender
        self.unreadable = parts.known.unreadable
        self._memory = parts.memory
        self._may_send = parts.may_send
        self._before = self._counters = parts.known.counters
        self._delivered, self._last = self._before.delivered, self._before.last
        self._problem = ""
        self._due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        super().__init__(parts.query, parts.clock)

    def start(self) -> None:
        """Send from now on, in a task of its own."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._due.set()

    async def stop(self) -> None:
        """Send nothing more; what is on its way may arrive or not."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.sender.close()

    def wake(self) -> None:
        """Send what is due."""
        if self.book.waiting:
            self._due.set()

    def retry(self) -> int:
        """Send dead letters again; return how many."""
        count = self.book.retry()
        self.wake()
        return count

    def discard(self) -> int:
        """Forget dead letters; return how many."""
        return self.book.discard()

    def note_counters(self) -> None:
        """Let the counters be written, if they have changed."""
        now = self._counted()
        if now != self._counters:
            self._counters = now
            self._memory.note_counters(self.definition.name, now)

    def info(self) -> SinkInfo:
        """Return the sink as lists show it."""
        problems = (self._problem or self.sender.problem, self._complaint())
        problem = "; ".join(filter(None, problems))
        status = SinkStatus.RUNNING if self.is_met else SinkStatus.STARTING
        book, counters = self.book, self._counted()
        return SinkInfo(
            definition=self.definition,
            query=self.query.id,
            query_status=str(self.query.status),
            schema=self.query.bundle.schema,
            status=SinkStatus.FAILING if problem else status,
            problem=problem,
            delivered=counters.delivered,
            waiting=book.waiting,
            unknown=self._unknown(),
            dead=book.dead,
            dropped=counters.dropped,
            last=counters.last,
        )

    @override
    def waited(self) -> None:
        self.wake()

    def _counted(self) -> SinkCounters:
        """Return the counters as they are."""
        dropped = self._before.dropped + self.book.dropped
        return SinkCounters(self._delivered, self._acknowledged(), dropped, self._last)

    @abstractmethod
    def _acknowledged(self) -> int:
        """Return the number of the last row that is done with, or 0."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Whether the answer is such that it may be sent."""

    @abstractmethod
    def _complaint(self) -> str:
        """Return what of the answer cannot be sent, or empty."""

    @abstractmethod
    def _unknown(self) -> int:
        """Return the number of keys nobody can tell of whether they have a row."""

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            while self._may_send() and self._is_ready():
                batch = self.book.take(self.sender.max_batch)
                if not batch:
                    break
                try:
                    await self._send(batch)
                except FederationError as error:
                    self.book.put_back(batch)
                    self._problem = error.message
                    await asyncio.sleep(PAUSE_SECONDS)
                except Exception as error:
                    # Without it the sink sends nothing more until the coordinator restarts.
                    log.exception("a defect interrupted sink %s; it continues", self.query.name)
                    self.book.put_back(batch)
                    self._problem = f"a defect: {type(error).__name__}: {error}"[:200]
                    await asyncio.sleep(PAUSE_SECONDS)

    async def _send(self, batch: Sequence[Outgoing]) -> None:
        await self._before_sending()
        refused = await self.sender.send(batch)
        now = self._clock()
        self.book.done(batch, refused, now)
        self._problem = ""
        taken = len(batch) - len(refused)
        if taken:
            self._delivered += taken
            self._last = now

    @abstractmethod
    async def _before_sending(self) -> None:
        """Do what must be done before the next messages leave."""


class UpsertSink(Sink):
    """The newest row of each key."""

    book: UpsertBook

    def __init__(self, parts: SinkParts) -> None:
        definition, memory, known = parts.definition, parts.memory, parts.known
        name, schema = definition.name, parts.query.bundle.schema
        self.book = UpsertBook(
            [schema.index_of(column) for column in definition.key],
            known=known.keys,
            dead=known.dead,
            remember=lambda key, is_known: memory.note_key(name, key, known=is_known),
            remember_dead=lambda key, letter: memory.note_dead(name, 0, key, letter),
            keeps_gone=bool(definition.discovery),
        )
        super().__init__(parts)

    @override
    def meet(self, *, in_doubt: bool) -> None:
        """Nothing: every change was followed, and what is missing is decided when it settles."""

    @override
    def follow(self, delta: Delta, *, in_doubt: bool) -> None:
        self.book.follow(delta, self.query.result.view, in_doubt=in_doubt or not self.is_met)
        self.wake()

    @override
    def settled(self, *, away: frozenset[str]) -> None:
        self.book.decide()
        self.wake()

    def tell_all_again(self) -> None:
        """The receiver may have lost everything."""
        self.book.tell_all_again()
        self.wake()

    @override
    def _acknowledged(self) -> int:
        return 0

    @override
    def _is_ready(self) -> bool:
        return self.is_met  # before, counts and the like pass that never held

    @override
    def _complaint(self) -> str:
        found = self.book.ambiguous
        if found is None or not self.query.is_settled():
            return ""
        key, _rows = found
        names = zip(self.definition.key, key, strict=True)
        shown = ", ".join(f"{n} = {'NULL' if v is None else text_of(v)}" for n, v in names)
        return (
            f"the key ({', '.join(self.definition.key)}) is not unique: "
            f"{shown or 'the answer'} has more than one row"
        )

    @override
    def _unknown(self) -> int:
        return self.book.unknown

    @override
    async def _before_sending(self) -> None:
        # A key that was told and not remembered could never be taken back.
        await self._memory.write_keys(self.definition.name)


class StreamSink(Sink):
    """Each row of a stream once."""

    book: StreamQueue

    def __init__(self, parts: SinkParts) -> None:
        name, memory, known = parts.definition.name, parts.memory, parts.known
        self.book = StreamQueue(
            rows=known.rows,
            acknowledged=known.counters.acknowledged,
            dead=known.dead,
            remember=lambda number, row: memory.note_row(name, number, row),
            remember_dead=lambda number, letter: memory.note_dead(name, number, (), letter),
        )
        super().__init__(parts)

    @override
    def meet(self, *, in_doubt: bool) -> None:
        self.book.caught_up()

    @override
    def follow(self, delta: Delta, *, in_doubt: bool) -> None:
        self.book.follow((row, weight) for row, weight in delta.items() if weight > 0)
        self.wake()

    @override
    def settled(self, *, away: frozenset[str]) -> None:
        """Nothing: rows of a stream never go."""

    @override
    def _acknowledged(self) -> int:
        return self.book.acknowledged

    @override
    def _is_ready(self) -> bool:
        return True

    @override
    def _complaint(self) -> str:
        if not self.book.is_full:
            return ""
        return f"{self.book.waiting} rows wait, the max: with each new one the oldest is dropped"

    @override
    def _unknown(self) -> int:
        return 0

    @override
    async def _before_sending(self) -> None:
        """Nothing: rows are written with the next look, and sent again after a crash."""


def make_sink(parts: SinkParts) -> Sink:
    """Return a sink of the definition's mode."""
    return UpsertSink(parts) if parts.definition.mode == SinkMode.UPSERT else StreamSink(parts)
