"""Messages of a connection in queues that have turns; what has to keep its order shares one."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gateway.connectors.mqtt.served_source import ServedSource
from host.mqtt.packet_stream import Received

MAX_TOPICS = 20_000
"""Topics whose sources are remembered."""

Match = tuple[ServedSource, Mapping[str, str], bool]
"""A source that reads a topic, the levels by name, and whether it tells availability."""


class _Queue:
    """Messages that wait for their turn, with their numbers and times of arrival.

    Attributes:
        has_turn: Whether it waits for its turn or has it.
        successor: The queue that has absorbed this one.
    """

    __slots__ = ("has_turn", "messages", "successor")

    def __init__(self) -> None:
        self.messages: deque[tuple[int, Received, tuple[Match, ...], int]] = deque()
        self.has_turn = False
        self.successor: _Queue | None = None

    def last(self) -> "_Queue":
        """Return the queue in which the messages of this one wait now."""
        found = self
        while found.successor is not None:
            found = found.successor
        if found is not self:
            self.successor = found
        return found


class _Place(NamedTuple):
    """Sources of a message, and the queue in which it waits for them."""

    matches: tuple[Match, ...]
    queue: _Queue


class MessageQueues:
    """Queues of one connection.

    Messages wait in a queue for each set of sources that they are for, and the queues have turns: a
    source that is flooded delays another one by a turn. The messages of a topic keep their order,
    and so do all messages of a source that is read in order: their queues become one.

    Args:
        find: Returns which sources a message is for.
    """

    def __init__(self, find: Callable[[Received], Iterable[Match]]) -> None:
        self._find = find
        self._places: dict[tuple[str, tuple[int, ...]], _Place] = {}
        self._of_topics: dict[str, _Queue] = {}
        self._of_sources: dict[tuple[ServedSource, ...], _Queue] = {}
        self._turns: deque[_Queue] = deque()
        self._in_turn: _Queue | None = None
        self._number = 0

    def __bool__(self) -> bool:
        """Whether a queue waits for its turn."""
        return bool(self._turns)

    def add(self, messages: Iterable[Received], now: int) -> None:
        """Let messages wait for their turn; they came now, in microseconds since 1970."""
        for message in messages:
            matches, queue = self._place(message)
            queue = queue.last()
            self._number += 1
            queue.messages.append((self._number, message, matches, now))
            self._give_turn(queue)

    def waits_since(self, source: ServedSource) -> int | None:
        """Return when the first waiting message of a source came that is read in order, or None."""
        queue = self._of_sources.get((source,))
        messages = queue.last().messages if queue is not None else ()
        return messages[0][3] if messages else None

    def next_queue(self) -> _Queue:
        """Return the queue whose turn it is; hand it to `end_turn` afterwards."""
        self._in_turn = self._turns.popleft()
        return self._in_turn

    def end_turn(self, queue: _Queue) -> None:
        """Let a queue wait for its next turn if it still has messages."""
        self._in_turn = None
        queue.has_turn = False
        if queue.messages:
            self._give_turn(queue)

    def _give_turn(self, queue: _Queue) -> None:
        if not queue.has_turn:
            queue.has_turn = True
            self._turns.append(queue)

    def _place(self, message: Received) -> _Place:
        key = (message.topic, message.subscriptions)
        found = self._places.get(key)
        if found is None:
            if len(self._places) >= MAX_TOPICS:
                self._forget_topics()
            matches = tuple(self._find(message))
            found = _Place(matches, self._queue(message.topic, matches))
            self._places[key] = found
        return found

    def _queue(self, topic: str, matches: Iterable[Match]) -> _Queue:
        """Return the queue of a topic for its sources.

        A broker names one subscription of a retained message, and all of a live one: the messages
        of a topic may be for different sources, and wait in one queue all the same.
        """
        sources = tuple(source for source, _, _ in matches)
        queues = [self._of((source,)) for source in sources if source.is_in_order]
        if topic in self._of_topics:
            queues.append(self._of_topics[topic].last())
        queue = queues[0] if queues else self._of(sources)
        for other in queues[1:]:
            self._absorb(queue, other)
        self._of_topics[topic] = queue
        return queue

    def _of(self, sources: tuple[ServedSource, ...]) -> _Queue:
        return self._of_sources.setdefault(sources, _Queue()).last()

    def _absorb(self, queue: _Queue, other: _Queue) -> None:
        """Move the messages of one queue into another one, in the order in which they came."""
        if other is queue:
            return
        both = heapq.merge(queue.messages, other.messages, key=lambda entry: entry[0])
        queue.messages, other.messages, other.successor = deque(both), deque(), queue
        if queue.messages:
            self._give_turn(queue)

    def _forget_topics(self) -> None:
        """Forget all topics but those that have messages waiting: they keep their queues."""
        in_turn = () if self._in_turn is None else (self._in_turn,)
        waiting = (*in_turn, *self._turns)
        self._places.clear()
        self._of_topics = {
            message.topic: queue for queue in waiting for _, message, *_ in queue.messages
        }
        former = {of: queue.last() for of, queue in self._of_sources.items()}
        self._of_sources = {of: queue for of, queue in former.items() if queue in waiting}
