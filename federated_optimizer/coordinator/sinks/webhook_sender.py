"""Messages of sinks to a web address: batches, sent again until they are taken or refused.

A receiver that is away is waited for without end: what waits has its bound in the sink's book.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence

from typing_extensions import override

from federated_optimizer.coordinator.contract.sink_endpoints import WebhookEndpoint
from federated_optimizer.coordinator.sinks.outgoing import Outgoing, Refusal, Sender
from federated_optimizer.coordinator.sinks.row_payloads import payload_of, row_objects
from federated_optimizer.coordinator.sinks.sink_memory import digest
from federated_optimizer.coordinator.sinks.webhook_requests import Outcome, WebhookRequests
from host.clocks import Clock
from streamsql.catalog.sink_definitions import SinkDefinition, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import MICROSECONDS
from streamsql.errors import WireError
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
_DOUBLINGS = 20

Random = Callable[[], float]
"""Gives numbers from 0 to 1."""
Made = tuple[Outgoing, bytes]
"""A message and its JSON."""


class WebhookSender(Sender):
    """Posts the messages of one sink, one request at a time."""

    def __init__(  # noqa: PLR0913, PLR0917 - each is one seam
        self,
        definition: SinkDefinition,
        schema: Schema,
        endpoint: WebhookEndpoint,
        clock: Clock,
        chance: Random = random.random,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self._definition = definition
        self._clock = clock
        self._chance = chance
        self._first_pause = first_pause
        self._object_of = row_objects(definition, schema)
        self._key_schema = Schema(
            tuple(schema.fields[schema.index_of(name)] for name in definition.key)
        )
        timeout = definition.timeout / MICROSECONDS
        self._requests = WebhookRequests(definition.endpoint, endpoint, clock, timeout)
        about = payload_of({"sink": definition.name, "mode": str(definition.mode)})
        self._head, self._tail = about[:-1] + b',"messages":[', b"]}"
        self._problem = ""

    @property
    @override
    def max_batch(self) -> int:
        return self._definition.batch

    @property
    @override
    def problem(self) -> str:
        return self._problem

    @override
    async def send(self, batch: Sequence[Outgoing]) -> list[Refusal]:
        refused: list[Refusal] = []
        made: list[Made] = []
        for message in batch:
            try:
                made.append((message, self._payload(message)))
            except (ValueError, WireError) as error:
                refused.append(Refusal(message, str(error)))
        for part in self._parts(made):
            refused += await self._deliver(part)
        self._problem = ""
        return refused

    @override
    async def close(self) -> None:
        await self._requests.close()

    def _parts(self, made: Sequence[Made]) -> Iterator[list[Made]]:
        """Yield what fits into a request, in order; one message always does."""
        part: list[Made] = []
        size = around = len(self._head) + len(self._tail)
        for message, payload in made:
            if part and size + len(payload) > MAX_PAYLOAD_BYTES:
                yield part
                part, size = [], around
            part.append((message, payload))
            size += len(payload) + 1
        if part:
            yield part

    async def _deliver(self, made: Sequence[Made]) -> list[Refusal]:
        """Send until it is taken or given up; what a receiver finds wrong is sent one by one."""
        body = self._head + b",".join(payload for _, payload in made) + self._tail
        name = f"msg_{digest(body + str(self._clock()).encode())}"
        attempts = refusals = 0
        while True:
            answer = await self._requests.post(body, name)
            attempts += 1
            match answer.outcome:
                case Outcome.TAKEN:
                    return []
                case Outcome.AWAY:
                    self._problem = f"the receiver is away: {answer.reason}"
                case Outcome.REFUSED:
                    refusals += 1
                    self._problem = f"the receiver refuses: {answer.reason}"
                    if refusals >= self._definition.tries:
                        return [Refusal(one, answer.reason, refusals) for one, _ in made]
                case Outcome.BAD_CONTENT if len(made) > 1:
                    return [found for one in made for found in await self._deliver([one])]
                case Outcome.BAD_CONTENT:
                    return [Refusal(one, answer.reason, refusals + 1) for one, _ in made]
            await asyncio.sleep(self._pause(attempts, answer.wait))

    def _payload(self, message: Outgoing) -> bytes:
        """Return a message as JSON.

        Raises:
            ValueError: It is longer than a message may be.
            WireError: JSON cannot carry a value.
        """
        row = None if message.row is None else self._object_of(message.row)
        if self._definition.mode == SinkMode.APPEND:
            payload = payload_of({"number": message.number, "row": row})
        else:
            payload = payload_of({"key": self._key_schema.to_object(message.key), "row": row})
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise ValueError(
                f"the message takes {len(payload)} bytes; the max is {MAX_PAYLOAD_BYTES}"
            )
        return payload

    def _pause(self, attempts: int, asked: float | None) -> float:
        """Return seconds to wait: doubled each time, of it a part by chance; or what is asked."""
        if asked is not None:
            return asked + self._chance() * self._first_pause
        whole = min(self._first_pause * 2.0 ** min(attempts - 1, _DOUBLINGS), LONGEST_PAUSE)
        return whole * (0.5 + 0.5 * self._chance())
