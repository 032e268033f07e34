"""Read observations back as source events, for windows that count the rows of all gateways.

A ROWS window over a stream of several gateways cannot run at any one of them; the base site that
runs it listens to the observation lanes, live and history.
"""

from dataclasses import dataclass, field

from gateway.senml import rows_of
from streamsql.algebra.operators import Scan, SourceKind, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import MICROSECONDS
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import ObservationPack

MAX_LANES = 10_000


@dataclass(slots=True)
class ObservationReader:
    """Knows which streams are wanted, and which packs were seen already."""

    _wanted: dict[str, dict[str, Scan]] = field(default_factory=dict)
    _seen: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)

    def installed(self, bundle: FragmentBundle, site: str) -> set[str]:
        """Note the streams a bundle reads directly at this site; return all wanted ones."""
        self._wanted[bundle.query] = {
            node.source: node
            for fragment in bundle.at(site)
            for node in walk_plan(fragment.plan)
            if isinstance(node, Scan) and node.kind != SourceKind.TABLE
        }
        return self.streams()

    def uninstalled(self, query: str) -> set[str]:
        """Forget a query; return the streams that are still wanted."""
        self._wanted.pop(query, None)
        return self.streams()

    def streams(self) -> set[str]:
        """Return the streams to listen to."""
        return {source for scans in self._wanted.values() for source in scans}

    def events(self, gateway: str, lane: str, stream: str, payload: bytes) -> list[SourceEvent]:
        """Return the events in a pack; none if it was seen or nobody wants it.

        Raises:
            WireError: It is no legal pack of that stream.
        """
        scan = next((s[stream] for s in self._wanted.values() if stream in s), None)
        if scan is None:
            return []
        pack = decode_json(payload, ObservationPack)
        key = (gateway, lane, stream)
        if (pack.epoch, pack.seq) <= self._seen.get(key, (-1, -1)):
            return []
        if len(self._seen) < MAX_LANES or key in self._seen:
            self._seen[key] = (pack.epoch, pack.seq)
        try:
            return [
                SourceEvent(scan.columns.coerce_row(dict(values)), round(seconds * MICROSECONDS))
                for _, seconds, values in rows_of(pack.e)
            ]
        except ValueError as error:
            raise WireError(f"observations of {stream}: {error}") from error
