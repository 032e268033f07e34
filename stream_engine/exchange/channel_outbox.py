"""The sending ends of a query's channels at one site."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from stream_engine.exchange.channel_inbox import Arrivals, Reader
from stream_engine.exchange.peered_fixpoint import PeeredFixpoint, PeerMessage, address
from stream_engine.state.columns import picker
from streamsql.data.delta import Delta
from streamsql.data.types import Row
from streamsql.wire.bundles.partitioning import HomeOwner, site_of
from streamsql.wire.channel_protocol import SendingChannel
from streamsql.wire.fragments import Fragment
from streamsql.wire.messages import DeltaBatch

Owner = Callable[[Row, Sequence[str]], str]
"""Chooses, of some sites, the one that owns a key."""

RESULT = ""
"""The destination of the query's result."""


class Outbox:
    """One sending channel per destination; per step at most one change a channel and port.

    Each channel begins with a snapshot. State: what has been sent, integrated, as large as what the
    receivers hold. The result is kept in the same way where it is only read here, by others.

    Args:
        version: Of the fragment bundle.
        epoch: Of this site.
        first: The first sequence number; above those of any channel closed in this epoch, or
            receivers would take the new batches for duplicates.
        ports: Fragments and recursions that send, by destination.
        recursions: By port; asked for replays.
        streams: The ports that emit streams.
        silent: Whether the result is kept without being sent.

    Attributes:
        repeated: Destinations to which the last `flush` has sent a snapshot.
    """

    def __init__(  # noqa: PLR0913  (what every channel is told)
        self,
        *,
        version: int,
        epoch: int,
        first: int,
        ports: Mapping[str, Iterable[str]],
        recursions: Mapping[str, PeeredFixpoint],
        streams: Collection[str] = (),
        silent: bool = False,
    ) -> None:
        self._recursions = recursions
        self._messages: dict[str, list[tuple[str, PeerMessage]]] = {}
        self.channels: dict[str, SendingChannel] = {}
        for destination, names in ports.items():
            channel = SendingChannel(version=version, epoch=epoch, ports=names, streams=streams)
            channel.sequence = first
            self.channels[destination] = channel
        self._unsent = frozenset((RESULT,) if silent else ())
        self._snapshots = dict.fromkeys(name for name in ports if name not in self._unsent)
        self.repeated: frozenset[str] = frozenset()
        self._pending: dict[str, dict[str, Arrivals]] = {}
        self._owners: dict[str, Owner] = {}
        self._readers: dict[str, Reader] = {}

    def go_on(self, former: "Outbox") -> None:
        """Go on with the channels of an outbox that had these ports and others, but for results."""
        for destination, channel in self.channels.items():
            if destination == RESULT:
                continue
            known = former.channels[destination]
            known.contents = {port: known.contents.get(port, {}) for port in channel.contents}
            self.channels[destination] = known
            if destination not in former._snapshots:  # noqa: SLF001 - its own class
                self._snapshots.pop(destination, None)
            left = former._pending.get(destination, {})  # noqa: SLF001 - its own class
            kept = {port: change for port, change in left.items() if port in channel.contents}
            if kept:
                self._pending[destination] = kept

    def collect(self, destination: str, port: str, delta: Delta, ts: int | None) -> None:
        """Add a change to the next batch of a channel and port."""
        changes = self._pending.setdefault(destination, {})
        change = changes.get(port)
        if change is None:
            changes[port] = Arrivals(delta, ts)
        else:
            change.add(delta, ts)

    def dispatch(self, fragment: Fragment, delta: Delta, ts: int | None, *, here: str) -> Delta:
        """Collect a fragment's change for its destinations; return the part that stays here."""
        if not fragment.consumer:
            self.collect(RESULT, fragment.id, delta, ts)
            return {}
        owner = self._owners.get(fragment.id)
        if owner is None:
            owner = HomeOwner(dict(fragment.homes)) if fragment.homes else site_of
            self._owners[fragment.id] = owner
        parts = route(delta, fragment.destinations, fragment.partition, owner)
        stays = parts.pop(here, {})
        for destination, part in parts.items():
            self.collect(destination, fragment.id, part, ts)
        return stays

    def collect_recursive(self, port: str, message: PeerMessage) -> None:
        """Add a message of a recursion."""
        self._messages.setdefault(message.site, []).append((port, message))

    def request_snapshot(self, destination: str) -> bool:
        """Send everything again in the next step; return whether there is such a channel."""
        if destination not in self.channels or destination in self._unsent:
            return False
        self._snapshots[destination] = None
        return True

    def read(self, port: str, give: Reader) -> None:
        """Hand each change of a part of the result on from the next `flush` on."""
        self._readers[port] = give

    def unread(self, port: str) -> None:
        """Hand on no more."""
        self._readers.pop(port, None)

    def total(self, port: str) -> Delta:
        """Return a part of the result as of the last `flush`; the caller must not change it."""
        channel = self.channels.get(RESULT)
        return {} if channel is None else channel.contents.get(port, {})

    @property
    def sequences(self) -> dict[str, int]:
        """The next sequence number of every channel that is sent, by destination."""
        return {
            to: channel.sequence for to, channel in self.channels.items() if to not in self._unsent
        }

    @property
    def is_empty(self) -> bool:
        """Whether the next `flush` would send nothing."""
        return not (self._pending or self._snapshots or self._messages)

    def flush(self, now: int) -> list[tuple[str, DeltaBatch]]:
        """Return what has to be sent; a snapshot takes the place of the change it includes."""
        if self.repeated:
            self.repeated = frozenset()
        pending = self._pending
        if self._snapshots or self._messages:
            sent = list(self._taken(now))
        elif pending:
            self._pending = {}
            sent = self._pushed(pending, now)
        else:
            return []
        if self._readers:
            for port, change in pending.get(RESULT, {}).items():
                if port in self._readers and change.delta:
                    self._readers[port](change.delta, change.ts)
        return sent

    def _pushed(
        self, pending: Mapping[str, Mapping[str, Arrivals]], now: int
    ) -> list[tuple[str, DeltaBatch]]:
        """Return the batches of changes, which are all that has to be sent in most steps."""
        sent: list[tuple[str, DeltaBatch]] = []
        for destination, channel in self.channels.items():
            changes = pending.get(destination)
            if not changes:
                continue
            is_sent = destination not in self._unsent
            for port, change in changes.items():
                if not is_sent:
                    channel.note(port, change.delta)
                    continue
                batches = channel.push(port, change.delta, now=now, ts=change.ts)
                sent += [(destination, batch) for batch in batches]
        return sent

    def _taken(self, now: int) -> Iterator[tuple[str, DeltaBatch]]:
        pending, self._pending = self._pending, {}
        snapshots, self._snapshots = self._snapshots, {}
        if snapshots:
            self.repeated = frozenset(snapshots)
        messages, self._messages = self._messages, {}
        for destination, channel in self.channels.items():
            changes = pending.get(destination, {})
            if destination in snapshots or destination in self._unsent:
                for port, change in changes.items():
                    channel.note(port, change.delta)
            if destination in self._unsent:
                continue
            if destination in snapshots:
                for batch in channel.snapshot(now=now):
                    yield (destination, batch)
                for number, message in self._replays(destination):
                    yield (destination, _recursive(channel, number, message, now))
                continue
            for port, change in changes.items():
                for batch in channel.push(port, change.delta, now=now, ts=change.ts):
                    yield (destination, batch)
            for number, message in messages.get(destination, ()):
                yield (destination, _recursive(channel, number, message, now))

    def _replays(self, destination: str) -> Iterator[tuple[str, PeerMessage]]:
        for port, recursion in self._recursions.items():
            if destination in recursion.peers:
                for message in recursion.replay(destination):
                    yield (port, message)

    def last_sequence(self) -> int:
        """Return a sequence number that no channel has used."""
        return max((channel.sequence for channel in self.channels.values()), default=0)


def _recursive(channel: SendingChannel, port: str, message: PeerMessage, now: int) -> DeltaBatch:
    """Return a recursion's message as the next batch of a channel."""
    batch = DeltaBatch(
        version=channel.version,
        epoch=channel.epoch,
        seq=channel.sequence,
        port=f"{port}/{address(message)}",
        annotated=message.annotated,
        kills=message.kills,
        now=now,
    )
    channel.sequence += 1
    return batch


def route(
    delta: Delta,
    destinations: Sequence[str],
    partition: tuple[int, ...],
    owner: Owner = site_of,
) -> dict[str, Delta]:
    """Split a change over the sites that take it; sites that get nothing are left out.

    With partition columns each row goes to the one site that owns their values; without, every row
    goes to all (the parts are then the same object, which nobody may change).

    Examples:
        >>> route({("a",): 1}, ["base"], (0,))
        {'base': {('a',): 1}}
        >>> route({("a",): 1}, ["one", "two"], ())
        {'one': {('a',): 1}, 'two': {('a',): 1}}
    """
    if not delta:
        return {}
    if len(destinations) == 1 or not partition:
        return dict.fromkeys(destinations, delta)
    key_of = picker(partition)
    parts: dict[str, Delta] = {}
    for row, weight in delta.items():
        parts.setdefault(owner(key_of(row), destinations), {})[row] = weight
    return parts
