"""The sending ends of a query's channels at one site."""

from collections.abc import Iterable, Iterator, Mapping

from stream_engine.exchange.inbox import Arrivals
from streamsql.data.delta import Delta, accumulate
from streamsql.wire.channels import SendingChannel
from streamsql.wire.messages import DeltaBatch

RESULT = ""
"""The destination of the query's result."""


class Outbox:
    """One sending channel per destination; per step at most one change a channel and port.

    State: what has been sent, integrated, as large as what the receivers hold.
    """

    def __init__(
        self, *, version: int, epoch: int, first: int, ports: Mapping[str, Iterable[str]]
    ) -> None:
        """Open the channels; each begins with a snapshot.

        Args:
            version: Of the fragment bundle.
            epoch: Of this site.
            first: The first sequence number; above those of any channel closed in this epoch, or
                receivers would take the new batches for duplicates.
            ports: Fragments that send, by destination.
        """
        self.channels: dict[str, SendingChannel] = {}
        for destination, names in ports.items():
            channel = SendingChannel(version=version, epoch=epoch, ports=names)
            channel.sequence = first
            self.channels[destination] = channel
        self._snapshots = dict.fromkeys(ports)
        self._pending: dict[str, dict[str, Arrivals]] = {}

    def collect(self, destination: str, port: str, delta: Delta, ts: int | None) -> None:
        """Add a change to the next batch of a channel and port."""
        self._pending.setdefault(destination, {}).setdefault(port, Arrivals()).add(delta, ts)

    def request_snapshot(self, destination: str) -> bool:
        """Send everything again in the next step; return whether there is such a channel."""
        if destination not in self.channels:
            return False
        self._snapshots[destination] = None
        return True

    @property
    def is_empty(self) -> bool:
        """Whether the next `flush` would send nothing."""
        return not self._pending and not self._snapshots

    def flush(self, now: int) -> Iterator[tuple[str, DeltaBatch]]:
        """Yield what has to be sent; a snapshot takes the place of the change it includes."""
        pending, self._pending = self._pending, {}
        snapshots, self._snapshots = self._snapshots, {}
        for destination, channel in self.channels.items():
            changes = pending.get(destination, {})
            if destination in snapshots:
                for port, change in changes.items():
                    accumulate(channel.contents.setdefault(port, {}), change.delta)
                for batch in channel.snapshot(now=now):
                    yield (destination, batch)
                continue
            for port, change in changes.items():
                for batch in channel.push(port, change.delta, now=now, ts=change.ts):
                    yield (destination, batch)

    def last_sequence(self) -> int:
        """Return a sequence number that no channel has used."""
        return max((channel.sequence for channel in self.channels.values()), default=0)
