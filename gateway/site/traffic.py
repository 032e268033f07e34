"""Cost of the channels of each query: batches, bytes, and waiting for snapshots."""

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from stream_engine.site.step_result import Outgoing
from streamsql.wire.batch_parts import SentParts, rows_in
from streamsql.wire.messages import TrafficReport

Channel = tuple[str, str]
"""Query and the other site."""


@dataclass(slots=True)
class _Counts:
    resyncs: int = 0
    waited: float = 0.0
    longest: float = 0.0
    sent: SentParts = field(default_factory=SentParts)


@dataclass(slots=True)
class ChannelCounts:
    """Traffic of one channel.

    Attributes:
        batches: Messages.
        rows: Changed rows in them.
        bytes: Of their payloads.
        resyncs: Times the channel to here was out of step, the beginning too.
    """

    batches: int = 0
    rows: int = 0
    bytes: int = 0
    resyncs: int = 0


class Traffic:
    """Counts per query that runs here. Bounded by the queries and their channels."""

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}
        self._waiting: dict[Channel, float] = {}
        self.to: dict[Channel, ChannelCounts] = {}
        self.by: dict[Channel, ChannelCounts] = {}

    def received(self, query: str, sender: str, rows: int, size: int) -> None:
        """Count a batch that a site has sent."""
        _count(self.by.setdefault((query, sender), ChannelCounts()), rows, size)

    def sent(self, outgoing: Outgoing, size: int) -> None:
        """Count a batch that the broker took, with the bytes of its payload."""
        query, to = outgoing.query, outgoing.destination
        rows = rows_in(outgoing.batch)
        _count(self.to.setdefault((query, to), ChannelCounts()), rows, size)
        counts = self._counts.setdefault(query, _Counts())
        counts.sent.sent(outgoing.batch, size, snapshot=outgoing.snapshot)

    def waiting(self, channels: Collection[Channel], now: float) -> None:
        """Ingest which channels to here wait for a snapshot; `now` in seconds, never back."""
        wait = set(channels)
        for channel in [channel for channel in self._waiting if channel not in wait]:
            took = now - self._waiting.pop(channel)
            counts = self._counts.setdefault(channel[0], _Counts())
            counts.resyncs += 1
            counts.waited += took
            counts.longest = max(counts.longest, took)
            self.by.setdefault(channel, ChannelCounts()).resyncs += 1
        for channel in wait - self._waiting.keys():
            self._waiting[channel] = now

    def forget(self, running: Collection[str]) -> None:
        """Drop the queries that do not run any more."""
        for query in [query for query in self._counts if query not in running]:
            del self._counts[query]
        for channels in (self.to, self.by):
            for channel in [channel for channel in channels if channel[0] not in running]:
                del channels[channel]

    def report(self, query: str) -> TrafficReport:
        """Return a query's counts."""
        counts = self._counts.get(query)
        if counts is None:
            return TrafficReport()
        return msgspec.structs.replace(
            counts.sent.report(),
            resyncs=counts.resyncs,
            resync_milliseconds=round(counts.waited * 1_000),
            longest_resync=round(counts.longest * 1_000),
        )


def _count(counts: ChannelCounts, rows: int, size: int) -> None:
    counts.batches += 1
    counts.rows += rows
    counts.bytes += size
