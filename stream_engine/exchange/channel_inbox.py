"""The receiving ends of a query's channels at one site."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from stream_engine.state.sited_ports import is_sited, port_of, sited, with_site, without_site
from streamsql.data.delta import Delta, accumulate
from streamsql.errors import WireError
from streamsql.wire.channel_protocol import Forgotten, ReceivingChannel, Reception
from streamsql.wire.messages import DeltaBatch


@dataclass(slots=True)
class Arrivals:
    """The change of one fragment's output since the last step; `ts` of its oldest reading."""

    delta: Delta = field(default_factory=dict)
    ts: int | None = None
    _is_own: bool = False

    def add(self, delta: Delta, ts: int | None) -> None:
        """Add a change; the first one is kept as it is, and never altered."""
        self.ts = oldest(self.ts, ts)
        if not self.delta:
            self.delta, self._is_own = delta, False
            return
        if not self._is_own:
            self.delta, self._is_own = dict(self.delta), True
        accumulate(self.delta, delta)


Reader = Callable[[Delta, int | None], None]
"""Takes a change and the time of the oldest reading behind it, or None."""


def oldest(first: int | None, second: int | None) -> int | None:
    """Return the earlier of two times, either of which may be unknown."""
    if first is None or second is None:
        return second if first is None else first
    return min(first, second)


def split_port(port: str) -> tuple[str, str]:
    """Split the port of a message inside a recursion into the recursion and the rest.

    Examples:
        >>> split_port("f1"), split_port("f1/0"), split_port("f1/0/256/rows")
        (('f1', ''), ('f1/0', ''), ('f1/0', '256/rows'))
    """
    fragment, _, rest = port.partition("/")
    number, _, within = rest.partition("/")
    return (f"{fragment}/{number}" if number else fragment, within)


class Inbox:
    """One receiving channel per remote sender, and the changes pending for the next step.

    State: what every sender has sent, integrated (so that a snapshot becomes a change and the loss
    of a site a retraction), and the pending changes, which are no larger.

    Args:
        version: Of the fragment bundle.
        widths: Number of columns by (sending site, port), in the sender's order of ports; 0 for the
            port of a recursion.
        streams: The ports that emit streams.
        trimmed: Whether senders may still send ports of the bundle from which this one was
            trimmed: they are told of that later than we are.
        read: Names by which changes are taken: ports, and ports with sites (`sited_ports`). None:
            all ports, without sites.
    """

    def __init__(
        self,
        version: int,
        widths: Mapping[tuple[str, str], int],
        streams: Collection[str] = (),
        *,
        trimmed: bool = False,
        read: Collection[str] | None = None,
    ) -> None:
        self._version = version
        self._widths = widths
        self._trimmed = trimmed
        self.channels: dict[str, ReceivingChannel] = {}
        for sender, port in widths:
            if sender not in self.channels:
                self.channels[sender] = ReceivingChannel(
                    version=version, first_port=port, streams=streams
                )
        self._pending: dict[str, Arrivals] = {}
        self._given_up: set[str] = set()
        self._readers: dict[str, Reader] = {}
        self._sited = frozenset(port_of(name) for name in read or () if is_sited(name))
        self._only_sited = self._sited - frozenset(read or ())
        self._dropped: frozenset[tuple[str, str]] = frozenset()  # may still come, for nobody

    def go_on(self, former: "Inbox") -> None:
        """Go on with the channels of an inbox that had these ports and others."""
        self._dropped = (former._dropped | former._widths.keys()) - self._widths.keys()  # noqa: SLF001 - its own class
        for sender, channel in self.channels.items():
            known = former.channels[sender]
            known.first_port = channel.first_port
            known.drop_ports({port for by, port in self._dropped if by == sender})
            self.channels[sender] = known
        ports = {port for _sender, port in self._widths}
        names = ports | set(map(sited, self._sited & ports))
        self._pending = {p: change for p, change in former._pending.items() if p in names}  # noqa: SLF001 - its own class
        self._given_up = former._given_up & self.channels.keys()  # noqa: SLF001 - its own class
        readers = former._readers.items()  # noqa: SLF001 - its own class
        self._readers = {name: read for name, read in readers if port_of(name) in ports}

    def accept(self, sender: str, batch: DeltaBatch) -> Reception:
        """Ingest a batch; its message of a recursion is left to the caller.

        Raises:
            WireError: The plan has no such channel or port, or a row has the wrong width.
        """
        if batch.version != self._version:
            return Reception.STALE  # another plan may have other channels
        channel = self.channels.get(sender)
        is_dropped = (sender, batch.port) in self._dropped
        if channel is None:
            if is_dropped or self._trimmed:
                return Reception.STALE
            raise WireError(f"site {sender} sends a batch, but the plan has no channel from it")
        if is_dropped:
            reception, _rows = channel.accept(batch)
            channel.drop_ports({batch.port})
            return reception
        port, within = split_port(batch.port)
        if self._trimmed and (sender, port) not in self._widths:
            return Reception.STALE
        self._check(sender, batch)
        if within:
            batch = msgspec.structs.replace(batch, port=port)
        reception, delta = channel.accept(batch)
        if reception == Reception.ACCEPTED:
            self._given_up.discard(sender)
        if delta:
            self._arrive(sender, batch.port, delta, batch.ts)
        return reception

    def lose(self, sender: str, epoch: int | None) -> None:
        """Retract everything a sender has sent, unless it was received in a later epoch."""
        channel = self.channels.get(sender)
        if channel is None:
            return
        if epoch is not None and channel.epoch is not None and epoch < channel.epoch:
            return
        self._given_up.add(sender)
        for port, delta in channel.lose_sender().items():
            self._arrive(sender, port, delta, None)

    def _arrive(self, sender: str, port: str, delta: Delta, ts: int | None) -> None:
        """Let a change wait for the next step, here and where others read the port."""
        name = sited(port)
        if port in self._sited or name in self._readers:
            told = with_site(delta, sender)
            if port in self._sited:
                self._wait(name, told, ts)
            if name in self._readers:
                self._readers[name](told, ts)
        if port not in self._only_sited:
            self._wait(port, delta, ts)
        if port in self._readers:
            self._readers[port](delta, ts)

    def give(self, port: str, delta: Delta, ts: int | None) -> None:
        """Let a change wait for the next step; it is of a port that is read without sites."""
        self._wait(port, delta, ts)

    def give_sited(self, port: str, delta: Delta, ts: int | None) -> None:
        """Let a change of rows with their sites wait for the next step."""
        self._wait(sited(port), delta, ts)
        if port not in self._only_sited:
            self._wait(port, without_site(delta), ts)

    def _wait(self, name: str, delta: Delta, ts: int | None) -> None:
        if not delta:
            return
        change = self._pending.get(name)
        if change is None:
            self._pending[name] = Arrivals(delta, ts)
        else:
            change.add(delta, ts)

    def read(self, name: str, give: Reader) -> None:
        """Hand each change of a port on, too, when it arrives, with sites if the name says so."""
        self._readers[name] = give

    def unread(self, name: str) -> None:
        """End what `read` began; nothing happens if it was not called."""
        self._readers.pop(name, None)

    def total(self, name: str) -> Delta:
        """Return all that the senders have sent of a port, with what waits for the next step."""
        rows: Delta = {}
        for sender, channel in self.channels.items():
            sent = channel.contents.get(port_of(name), {})
            accumulate(rows, with_site(sent, sender) if is_sited(name) else sent)
        return rows

    def senders_of(self, ports: Collection[str]) -> list[str]:
        """Return the senders that feed one of these ports."""
        return list(dict.fromkeys(sender for sender, port in self._widths if port in ports))

    def rows_of(self, ports: Collection[str]) -> int:
        """Return the number of distinct rows kept of some ports."""
        return sum(
            len(rows)
            for channel in self.channels.values()
            for port, rows in channel.contents.items()
            if port in ports
        )

    def forget(self, forgotten: Forgotten, retracted: Collection[str]) -> None:
        """Discard rows that feed no open window, when no change is pending.

        Rows of the `retracted` ports, which operators keep, are retracted in the next step.
        """
        for channel in self.channels.values():
            for port, delta in channel.forget(forgotten).items():
                if port in retracted:
                    self._pending.setdefault(port, Arrivals()).add(delta, None)

    @property
    def is_complete(self) -> bool:
        """Whether every sender has sent all its ports, recursions aside, or is given up."""
        return all(
            not width or sender in self._given_up or port in self.channels[sender].contents
            for (sender, port), width in self._widths.items()
        )

    def believe_in_all(self) -> None:
        """Give no sender up any more: what was known of them is of another incarnation."""
        self._given_up.clear()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is pending."""
        return not self._pending

    def take(self) -> dict[str, Arrivals]:
        """Remove and return the pending changes, by port."""
        pending, self._pending = self._pending, {}
        return pending

    def _check(self, sender: str, batch: DeltaBatch) -> None:
        port, _within = split_port(batch.port)
        width = self._widths.get((sender, port))
        if width is None:
            raise WireError(
                f"site {sender} sends for port {batch.port!r:.80}, which it does not feed"
            )
        for weighted in batch.deltas:
            if len(weighted.row) != width:
                raise WireError(
                    f"port {batch.port} from site {sender}: a row has {len(weighted.row)} columns "
                    f"instead of {width}"
                )
