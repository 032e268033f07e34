"""Costs of sending: a message, a hop, and how many hops there are between sites."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from federated_optimizer.statistics.default_facts import (
    BATCH_MICROSECONDS,
    BYTE_NANOSECONDS,
    ENVELOPE_BYTES,
    HOP_ENERGY,
    HOP_MILLISECONDS,
    MESSAGE_MICROSECONDS,
    TOPIC_BYTES,
)

ONE_HOP = 1.0
"""Between sites of which nobody knows better."""
LEAST_DELIVERED = 0.1
"""A worse share is taken for this one: it was counted while something was out of order."""
MOST_PAIRS = 10_000
"""Of sites that are looked at for a mean."""


@dataclass(frozen=True, slots=True)
class Wires:
    """Costs of what travels.

    Attributes:
        message_bytes: Of a message without its rows.
        hop_milliseconds: From a site to the next.
        hop_energy: Microjoules of a byte from a site to the next.
        message_microseconds: Of processor in the clients of the broker, at both ends together.
        batch_microseconds: Of processor for a message that is a batch of rows: to make, encode and
            decode it, and the step that reads it.
        byte_nanoseconds: Of processor that a byte takes to encode and decode.
        delivered: Share of the batches of a site that need no repetition; where it is missing, all.
        hops: Between two sites, in either order; where a pair is missing, one.
    """

    message_bytes: float = ENVELOPE_BYTES.value + TOPIC_BYTES.value
    hop_milliseconds: float = HOP_MILLISECONDS.value
    hop_energy: float = HOP_ENERGY.value
    message_microseconds: float = MESSAGE_MICROSECONDS.value
    batch_microseconds: float = BATCH_MICROSECONDS.value
    byte_nanoseconds: float = BYTE_NANOSECONDS.value
    delivered: Mapping[str, float] = field(default_factory=dict)
    hops: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def between(self, a: str, b: str) -> float:
        """Return the hops between two different sites."""
        return self.hops.get((a, b), self.hops.get((b, a), ONE_HOP))

    def processor(self, messages: float, size: float) -> float:
        """Return the milliseconds of processor at both ends of messages of so many bytes in all."""
        micros = messages * (self.message_microseconds + self.batch_microseconds)
        return (micros + size * self.byte_nanoseconds / 1_000) / 1_000

    def repetitions(self, senders: Sequence[str]) -> float:
        """Return how often a batch of some sites is sent until it has arrived, in the mean."""
        if not self.delivered:
            return 1.0
        shares = (max(self.delivered.get(site, 1.0), LEAST_DELIVERED) for site in senders)
        return sum(1.0 / share for share in shares) / len(senders)

    def distances(self, senders: Sequence[str], receivers: Sequence[str]) -> tuple[float, float]:
        """Return the mean and the most hops from one of some sites to another one of some sites.

        Nothing goes from a site to itself. Of very many pairs some stand for all.
        """
        if not self.hops:
            return ONE_HOP, ONE_HOP
        step = len(senders) * len(receivers) // MOST_PAIRS + 1
        senders = senders[::step]
        found = [self.between(a, b) for a in senders for b in receivers if a != b] or [ONE_HOP]
        return sum(found) / len(found), max(found)


DEFAULT_WIRES = Wires()
"""Nothing is measured, and each site is one hop from each other."""
