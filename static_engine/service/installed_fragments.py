"""The part of one query that runs here: results of its fragments and channels to their readers."""

from collections.abc import Iterator, Sequence

from static_engine.evaluation.static_executor import tables_of
from streamsql.data.delta import Delta, difference
from streamsql.errors import WireError
from streamsql.wire.channel_protocol import SendingChannel
from streamsql.wire.fragments import Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, FlowReport
from streamsql.wire.partitioning import site_of

RESULT = ""
"""The destination of a query's result, as engines name it."""


class InstalledQuery:
    """Turns results of fragments into batches for the sites that read them.

    State: the last result of every fragment (shared between queries), and what was sent.

    Args:
        bundle: The query.
        site: Our id.
        epoch: Our session.
        first: Sequence number to begin with; above all used before in this session.

    Raises:
        WireError: A fragment here has a reader but no destination.
    """

    def __init__(self, bundle: FragmentBundle, site: str, epoch: int, first: int) -> None:
        self.bundle = bundle
        self.fragments = bundle.at(site)
        self._epoch, self._first = epoch, first
        ports: dict[str, list[str]] = {}
        for fragment in self.fragments:
            for destination in destinations_of(fragment):
                ports.setdefault(destination, []).append(fragment.id)
        self.channels: dict[str, SendingChannel] = {}
        for destination, names in ports.items():
            channel = SendingChannel(version=bundle.version, epoch=epoch, ports=names)
            channel.sequence = first
            self.channels[destination] = channel
        self._snapshots = set(ports)
        self._results: dict[str, Delta] = {}
        self._new: dict[str, Delta] = {}

    @property
    def tables(self) -> frozenset[str]:
        """Names of the tables that the fragments here read."""
        return frozenset().union(*(tables_of(f.plan) for f in self.fragments))

    def update(self, fragment: str, result: Delta) -> None:
        """Take a fragment's new result, which nobody may change any more."""
        known = self._new.get(fragment, self._results.get(fragment))
        if known is not result:
            self._new[fragment] = result

    def request_snapshot(self, destination: str) -> bool:
        """Send everything to a reader again; return whether there is such a reader."""
        if destination not in self.channels:
            return False
        self._snapshots.add(destination)
        return True

    def request_all(self) -> None:
        """Send everything to every reader again."""
        self._snapshots.update(self.channels)

    @property
    def has_work(self) -> bool:
        """Whether `batches` would yield something."""
        return bool(self._new) or any(map(self._can_begin, self._snapshots))

    @property
    def is_complete(self) -> bool:
        """Whether every fragment has a result."""
        return all(f.id in self._results or f.id in self._new for f in self.fragments)

    def batches(self, now: int) -> Iterator[tuple[str, DeltaBatch]]:
        """Yield what has to be sent, with its destination.

        When the caller stops in the middle it calls `request_snapshot` for that destination.
        """
        new, self._new = self._new, {}
        old = {name: self._results.get(name, {}) for name in new}
        self._results.update(new)
        ready = sorted(filter(self._can_begin, self._snapshots))
        for fragment in self.fragments:
            if fragment.id not in new:
                continue
            delta = difference(new[fragment.id], old[fragment.id])
            for destination, part in route(fragment, delta).items():
                if destination not in self._snapshots:
                    channel = self.channels[destination]
                    for batch in channel.push(fragment.id, part, now=now):
                        yield destination, batch
        for destination in ready:
            self._snapshots.discard(destination)
            channel = self.channels[destination]
            self._refill(destination, channel)
            for batch in channel.snapshot(now=now):
                yield destination, batch

    def flow(self, *, busy: bool) -> FlowReport:
        """Return the next sequence number of every channel."""
        sent = {to: channel.sequence for to, channel in self.channels.items()}
        waiting = busy or self.has_work or not self.is_complete
        version = self.bundle.version
        return FlowReport(version, self._epoch, sent, {}, waiting, first=self._first)

    def last_sequence(self) -> int:
        """Return a sequence number that no channel has used."""
        return max((channel.sequence for channel in self.channels.values()), default=0)

    def _can_begin(self, destination: str) -> bool:
        """Whether all that a reader gets from here is known: half an answer is none."""
        return all(
            port in self._results or port in self._new
            for port in self.channels[destination].contents
        )

    def _refill(self, destination: str, channel: SendingChannel) -> None:
        for fragment in self.fragments:
            if fragment.id in channel.contents:
                parts = route(fragment, self._results[fragment.id])
                channel.contents[fragment.id] = dict(parts.get(destination, {}))


def destinations_of(fragment: Fragment) -> tuple[str, ...]:
    """Return the sites that read a fragment; `RESULT` when it is the query's result.

    Raises:
        WireError: It has a reader but no site for it.
    """
    if not fragment.consumer:
        return (RESULT,)
    if not fragment.destinations:
        raise WireError(f"fragment {fragment.id} has a consumer but no destination")
    return fragment.destinations


def route(fragment: Fragment, rows: Delta) -> dict[str, Delta]:
    """Split rows over the sites that read a fragment; sites that get nothing may be left out."""
    destinations: Sequence[str] = destinations_of(fragment)
    columns = fragment.partition
    if len(destinations) == 1 or not columns:
        return dict.fromkeys(destinations, rows)
    parts: dict[str, Delta] = {}
    for row, weight in rows.items():
        owner = site_of(tuple([row[column] for column in columns]), destinations)
        parts.setdefault(owner, {})[row] = weight
    return parts
