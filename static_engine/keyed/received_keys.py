"""The receiving ends of a query's channels at the static engine: keys of streams."""

from collections.abc import Iterator

from streamsql.algebra.operators import RemoteSource, walk_plan
from streamsql.data.delta import Delta, accumulate
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.fragments import Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch


class ReceivedKeys:
    """Keys by sending fragment, and how they have changed since somebody looked.

    A sender that is away keeps its keys: rows that nobody asks for any more do no harm, and a
    snapshot of its next incarnation takes away what is gone.

    Args:
        bundle: The whole plan.
        site: Our id.
    """

    def __init__(self, bundle: FragmentBundle, site: str) -> None:
        self._version = bundle.version
        self._widths: dict[tuple[str, str], int] = {}
        self._counts: dict[str, Delta] = {}
        self._changed: dict[str, dict[Row, None]] = {}
        self.channels: dict[str, ReceivingChannel] = {}
        for fragment in bundle.own:
            if not fragment.consumer or site not in fragment.destinations:
                continue
            self._counts[fragment.id], self._changed[fragment.id] = {}, {}
            for sender in fragment.sites:
                self._widths[sender, fragment.id] = len(fragment.plan.schema)
                if sender not in self.channels:
                    self.channels[sender] = ReceivingChannel(
                        version=bundle.version, first_port=fragment.id
                    )

    def accept(self, sender: str, batch: DeltaBatch) -> Reception:
        """Ingest a batch.

        Raises:
            WireError: The plan has no such channel or port, or a row has the wrong width.
        """
        if batch.version != self._version:
            return Reception.STALE
        channel = self.channels.get(sender)
        width = self._widths.get((sender, batch.port))
        if channel is None or width is None:
            raise WireError(
                f"site {sender!r:.80} sends for port {batch.port!r:.80}, which it does not feed"
            )
        for weighted in batch.deltas:
            if len(weighted.row) != width:
                raise WireError(
                    f"port {batch.port} from site {sender}: a row has {len(weighted.row)} columns "
                    f"instead of {width}"
                )
        reception, delta = channel.accept(batch)
        if delta:
            accumulate(self._counts[batch.port], delta)
            self._changed[batch.port].update(dict.fromkeys(delta))
        return reception

    def is_complete(self, port: str) -> bool:
        """Whether every sender has sent this port's keys once."""
        return all(
            port in self.channels[sender].contents for sender, fed in self._widths if fed == port
        )

    def take(self, port: str) -> tuple[list[Row], list[Row]]:
        """Return the keys that have come and those that have gone since the last call.

        A key that came and went in between may be among those gone.
        """
        changed, counts = self._changed[port], self._counts[port]
        self._changed[port] = {}
        here = [key for key in changed if counts.get(key, 0) > 0]
        gone = [key for key in changed if counts.get(key, 0) <= 0]
        return here, gone

    def has_news(self, port: str) -> bool:
        """Whether `take` would return anything."""
        return bool(self._changed[port])

    def unsynchronised(self) -> Iterator[str]:
        """Yield the senders whose channel lacks a snapshot."""
        return (by for by, channel in self.channels.items() if not channel.synchronised)

    def received(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return next sequence number and epoch of every sender whose snapshot has come."""
        ends = {by: end for by, end in self.channels.items() if end.synchronised}
        lives = {by: end.epoch for by, end in ends.items() if end.epoch is not None}
        return {by: end.expected for by, end in ends.items()}, lives


def keys_port(fragment: Fragment) -> str:
    """Return the fragment whose keys a fragment looks up; empty if it looks nothing up."""
    found = [n.fragment for n in walk_plan(fragment.plan) if isinstance(n, RemoteSource)]
    return found[0] if found else ""
