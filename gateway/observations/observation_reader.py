"""Read observations back as source events, for windows that count the rows of all gateways.

A ROWS window over a stream of several gateways cannot run at any one of them; the base site that
runs it listens to the observation lanes, live and history. A pack may come on both: sent live,
unacknowledged when its gateway died, and sent again as history. It counts once.

Coordinator and static engine run no fragments that read `sys_stream`. Their rows come over the
observation lane of that stream to the base site that gathers a query, and become rows of it there.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from streamsql.algebra.operators import Scan, SourceKind, walk_plan
from streamsql.catalog.system import SYS_STREAM, is_site_source
from streamsql.data.events import SourceEvent
from streamsql.data.types import EARLIEST, LATEST
from streamsql.errors import WireError
from streamsql.wire.bounds import MAX_OBSERVED_BYTES
from streamsql.wire.codec import decode_compressed_json, decode_json
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import ObservationPack, SystemRows
from streamsql.wire.senml import microseconds, row_from, rows_of
from streamsql.wire.source_shapes import layout_of

PACK = "pack"
"""The note on events that were read from the observation lanes: which pack it was, and how far the
log of its stream has come with it."""

MAX_LANES = 10_000
MAX_HOSTS = 100
REMEMBERED = 1_024
"""Packs remembered per gateway and stream: far more than can be sent and not yet acknowledged."""

_Pack = tuple[int, int]
Seen = tuple[str, str, int, int]
"""Gateway, stream, epoch and number of a pack."""


def _unknown_layout(_stream: str) -> int | None:
    """Know no definition."""
    return None


@dataclass(slots=True)
class ObservationReader:
    """Knows which streams are wanted, and which packs were seen already.

    Attributes:
        layout_of: Returns the layout of a declared source as it is defined now; None: unknown.
    """

    layout_of: Callable[[str], int | None] = _unknown_layout
    _wanted: dict[str, dict[str, Scan]] = field(default_factory=dict)
    _seen: dict[tuple[str, str], dict[_Pack, None]] = field(default_factory=dict)

    def installed(self, bundle: FragmentBundle, site: str) -> set[str]:
        """Note the streams a bundle reads directly at this site; return all wanted ones."""
        self._wanted[bundle.query] = {
            node.source: node
            for fragment in bundle.at(site)
            for node in walk_plan(fragment.plan)
            if isinstance(node, Scan) and _is_heard(node, bundle, site)
        }
        return self.streams()

    def uninstalled(self, query: str) -> set[str]:
        """Forget a query; return the streams that are still wanted."""
        self._wanted.pop(query, None)
        streams = self.streams()
        self._seen = {key: packs for key, packs in self._seen.items() if key[1] in streams}
        return streams

    def streams(self) -> set[str]:
        """Return the streams to listen to."""
        return {source for scans in self._wanted.values() for source in scans}

    def streams_of(self, query: str) -> frozenset[str]:
        """Return the streams that a query reads directly at this site."""
        return frozenset(self._wanted.get(query, ()))

    def readers(self, stream: str) -> list[str]:
        """Return the queries that read a stream directly at this site."""
        return [query for query, scans in self._wanted.items() if stream in scans]

    def pack(self, stream: str, payload: bytes) -> ObservationPack | None:
        """Return a pack of a stream; None if nobody wants it.

        Raises:
            WireError: It is no legal pack.
        """
        if not any(stream in scans for scans in self._wanted.values()):
            return None
        return decode_compressed_json(payload, ObservationPack, limit=MAX_OBSERVED_BYTES)

    def is_outdated(self, stream: str, pack: ObservationPack) -> bool:
        """Whether a pack was made by a definition whose rows mean something else than now."""
        if not pack.layout:
            return False
        now = self.layout_of(stream)
        if now is None:  # the catalog's definition is still on its way; the plan knows it
            scan = self._scan(stream)
            now = pack.layout if scan is None else layout_of(scan)
        return now != pack.layout

    def outdated(self, gateway: str, stream: str, pack: ObservationPack) -> Seen | None:
        """Note a pack that is not counted; return which it is, None if that is known.

        Raises:
            WireError: Too many gateways and streams send.
        """
        is_new = self._is_new(gateway, stream, (pack.epoch, pack.seq))
        return (gateway, stream, pack.epoch, pack.seq) if is_new else None

    def events_of(
        self, gateway: str, stream: str, pack: ObservationPack
    ) -> tuple[list[SourceEvent], Seen | None]:
        """Return the events of a pack and which it is; none if it was seen or nobody wants it.

        Raises:
            WireError: It is no legal pack of that stream.
        """
        scan = self._scan(stream)
        if scan is None:
            return [], None
        try:
            withdrawn = frozenset(pack.d)
            events = [
                SourceEvent(
                    row_from(values, scan.columns), _event_time(seconds), place in withdrawn
                )
                for place, (_, seconds, values) in enumerate(rows_of(pack.e))
            ]
        except ValueError as error:
            raise WireError(f"observations of {stream}: {error}") from error
        if pack.d and max(pack.d) >= len(events):
            raise WireError(
                f"observations of {stream}: row {max(pack.d)} is withdrawn of {len(events)}"
            )
        if not self._is_new(gateway, stream, (pack.epoch, pack.seq)):
            return [], None
        return events, (gateway, stream, pack.epoch, pack.seq)

    def seen(self) -> list[Seen]:
        """Return the packs that are remembered, oldest first per gateway and stream."""
        return [(*key, *pack) for key, packs in self._seen.items() for pack in packs]

    def recall(self, packs: Iterable[Seen]) -> None:
        """Remember packs that an earlier life has counted."""
        for gateway, stream, epoch, number in packs:
            self._is_new(gateway, stream, (epoch, number))

    def _scan(self, stream: str) -> Scan | None:
        """Return how queries read a stream; None: none does."""
        return next((s[stream] for s in self._wanted.values() if stream in s), None)

    def _is_new(self, gateway: str, stream: str, pack: _Pack) -> bool:
        key = (gateway, stream)
        if key not in self._seen and len(self._seen) >= MAX_LANES:
            raise WireError(f"more than {MAX_LANES} gateways and streams send observations")
        seen = self._seen.setdefault(key, {})
        if pack in seen:
            return False
        seen[pack] = None
        if len(seen) > REMEMBERED:
            del seen[next(iter(seen))]
        return True


class SystemLane:
    """Rows of other hosts, each once."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}

    def events(self, host: str, payload: bytes, now: int) -> list[SourceEvent]:
        """Return the events of a message; none if it was seen already.

        Args:
            host: Who sends.
            payload: `SystemRows`.
            now: The site's time, which the rows get: the sender may live in another.

        Raises:
            WireError: It cannot be read, or too many hosts send.
        """
        pack = decode_json(payload, SystemRows, limit=MAX_OBSERVED_BYTES)
        if host not in self._newest and len(self._newest) >= MAX_HOSTS:
            raise WireError(f"more than {MAX_HOSTS} hosts report")
        number = (pack.epoch, pack.seq)
        if number <= self._newest.get(host, (-1, -1)):
            return []
        self._newest[host] = number
        return [
            SourceEvent((now, host, query, entity, kind, name, value), now)
            for query, entity, kind, name, value in pack.rows
        ]


def _event_time(seconds: float) -> int:
    """Return when an event was, in microseconds.

    Raises:
        ValueError: In no year from 1 to 9999.
    """
    time = microseconds(seconds)
    if not EARLIEST <= time < LATEST:
        raise ValueError(f"{seconds} s since 1970 is outside the years 1 to 9999")
    return time


def _is_heard(scan: Scan, bundle: FragmentBundle, site: str) -> bool:
    """Whether others send rows of a source here; what sites tell of themselves stays with them."""
    if is_site_source(scan.source):
        return scan.source == SYS_STREAM.name and site in bundle.result_sites
    return scan.kind != SourceKind.TABLE
