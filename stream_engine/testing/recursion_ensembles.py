"""Several sites in one process that compute a recursion, for tests and benchmarks."""

import random
from collections import deque

from stream_engine.operators.rows.operator import RecursiveMessage
from stream_engine.recursion.absorption.recursion_outbox import row_count
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.strategies import recursive_operator
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta, accumulate
from streamsql.data.types import Row
from streamsql.errors import InternalError
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.messages import DeltaBatch


class Ensemble:
    """The same fixpoint at several sites, with FIFO channels delivered in seeded random order.

    Every message passes the wire codec.
    """

    def __init__(
        self,
        node: Fixpoint,
        sites: tuple[str, ...],
        options: RecursionOptions | None = None,
        *,
        seed: int = 0,
        max_steps: int = 100_000,
    ) -> None:
        self.operators = {
            site: recursive_operator(node, site=site, sites=sites, epoch=1, options=options)
            for site in sites
        }
        self.channels: dict[tuple[str, str], deque[bytes]] = {}
        self.views: dict[str, Delta] = {site: {} for site in sites}
        self.random = random.Random(seed)  # noqa: S311  (not for secrets)
        self.max_steps = max_steps
        self.bytes_sent = 0

    def apply(self, site: str, leaf: int, delta: Delta) -> None:
        """Give changes of a leaf to one site, without settling."""
        self.operators[site].apply(leaf, delta)

    def step(self, site: str, rounds: int | None = None) -> int:
        """Settle one site and put its messages on the channels; return the number of rows sent."""
        accumulate(self.views[site], self.operators[site].settle(rounds))
        sent = 0
        for message in self.operators[site].drain():
            payload = encode_packed(_batch(message))
            self.channels.setdefault((site, message.site), deque()).append(payload)
            self.bytes_sent += len(payload)
            sent += row_count(message) + len(message.kills)
        return sent

    def deliver(self, sender: str, receiver: str) -> None:
        """Hand over the oldest message of a channel."""
        batch = decode_packed(self.channels[sender, receiver].popleft(), DeltaBatch)
        self.operators[receiver].receive(sender, batch.port, batch.annotated, batch.kills)

    def act(self) -> bool:
        """Deliver from, or settle, a random place; return False when all is quiet."""
        waiting = [channel for channel, queue in self.channels.items() if queue]
        busy = [site for site, operator in self.operators.items() if not operator.is_settled]
        if not waiting and not busy:
            return False
        if busy and (not waiting or self.random.random() < 0.5):
            self.step(self.random.choice(busy))
        else:
            self.deliver(*self.random.choice(waiting))
        return True

    def run(self) -> None:
        """Act until all is quiet.

        Raises:
            InternalError: It does not become quiet.
        """
        for _ in range(self.max_steps):
            if not self.act():
                return
        raise InternalError(f"not quiet after {self.max_steps} steps")

    def rounds(self) -> list[int]:
        """Work in synchronous rounds until quiet; return the number of rows sent per round."""
        sent: list[int] = []
        while len(sent) < self.max_steps:
            count = sum(self.step(site, rounds=1) for site in self.operators)
            if not count and all(o.is_settled for o in self.operators.values()):
                return sent
            sent.append(count)
            for sender, receiver in list(self.channels):
                while self.channels[sender, receiver]:
                    self.deliver(sender, receiver)
        raise InternalError(f"not quiet after {self.max_steps} rounds")

    def rows(self) -> set[Row]:
        """Return the union of all partitions."""
        return {row for operator in self.operators.values() for row in operator.state_rows()}


def _batch(message: RecursiveMessage) -> DeltaBatch:
    return DeltaBatch(
        version=1,
        epoch=1,
        seq=0,
        port=message.port,
        annotated=message.annotated,
        kills=message.kills,
    )
