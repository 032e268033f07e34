"""The part of one query that runs here: results of its fragments and channels to their readers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from static_engine.evaluation.bag_difference import difference
from static_engine.evaluation.bags import PART_ROWS, Bag
from static_engine.evaluation.static_executor import tables_of
from static_engine.keyed.keyed_queries import KeyedQuery
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta, accumulate
from streamsql.errors import FederationError, WireError
from streamsql.history.past_plans import fixed
from streamsql.wire.batch_parts import SentParts
from streamsql.wire.bundles.partitioning import site_of
from streamsql.wire.bundles.trimmed_bundles import goes_on_trimmed
from streamsql.wire.channel_protocol import SendingChannel
from streamsql.wire.fragments import (
    GATEWAY_ROW_BYTES,
    TABLE_OUTGROWN,
    Fragment,
    FragmentBundle,
)
from streamsql.wire.messages import DeltaBatch, FlowReport

RESULT = ""
"""The destination of a query's result, as engines name it."""


class InstalledQuery:
    """Turns results of fragments into batches for the sites that read them.

    State: the last result of every fragment, which queries share and channels do not copy.

    Args:
        bundle: The query.
        site: Our id.
        epoch: Our session.
        first: Sequence number to begin with; above all used before in this session.
        max_gateway_rows: Most rows of a fragment that gateways keep.

    Raises:
        WireError: A fragment here has a reader but no destination, or reads keys and is no join by
            them.

    Attributes:
        keyed: The fragments that look keys up.
        whole: The others, which are evaluated over whole tables.
        outgrown: Why new results are not sent: gateways would have to keep too many rows.
        traffic: Counts of the batches that were sent.
    """

    def __init__(
        self,
        bundle: FragmentBundle,
        site: str,
        epoch: int,
        first: int,
        max_gateway_rows: int = 40_000,
    ) -> None:
        self.bundle = bundle
        self._max_gateway_rows, self._at_gateways = max_gateway_rows, bundle.at_gateways
        self.outgrown: FederationError | None = None
        bundle = _standing_still(bundle)
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
        self._results: dict[str, Bag] = {}
        self._new: dict[str, Bag] = {}
        self._compared: dict[str, Bag] = {}
        self._routed: dict[tuple[str, bool], RoutedRows] = {}
        self._looked: dict[str, Delta] = {}
        self._changes: dict[str, Delta] = {}
        self.keyed = KeyedQuery(bundle, site)
        self.traffic = SentParts()
        self.whole = tuple(f for f in self.fragments if f.id not in self.keyed.looked)

    def gives_way(self, bundle: FragmentBundle) -> bool:
        """Return whether a bundle takes its place; it goes on as the same one, trimmed."""
        stays = {fragment.id for fragment in bundle.fragments} >= {f.id for f in self.fragments}
        if stays and goes_on_trimmed(self.bundle, bundle):
            self.bundle = bundle
            return False
        return supersedes(bundle, self.bundle)

    @property
    def keyed_tables(self) -> frozenset[str]:
        """Names of the tables that have to be read because keys are looked up in them."""
        looked = [f for f in self.fragments if f.id in self.keyed.looked]
        read = [f for f in looked if not self.keyed.asks_database(f.id)]
        return frozenset().union(*(tables_of(f.plan) for f in read))

    @property
    def named_tables(self) -> frozenset[str]:
        """Names of all tables that the fragments here name."""
        return frozenset().union(*(tables_of(f.plan) for f in self.fragments))

    def update_all(self, results: Mapping[str, Bag]) -> None:
        """Take new results of fragments: all or, if gateways would keep too much, none.

        Gateways and base meet rows of one table: they must not have it as it was at two times.
        """
        self.outgrown = next(filter(None, map(self._why_outgrown, results.items())), None)
        if self.outgrown is None:
            for fragment, result in results.items():
                self.update(fragment, result)

    def _why_outgrown(self, named: tuple[str, Bag]) -> FederationError | None:
        """Return why gateways do not keep the result of a fragment; None: they do, or need not."""
        (name, result), most = named, self._max_gateway_rows
        if name not in self._at_gateways:
            return None
        if max(len(result), result.nbytes / GATEWAY_ROW_BYTES) <= most:
            return None
        tables = " and ".join(sorted(tables_of(self.bundle.fragment(name).plan)))
        return FederationError(
            f"{tables} has {len(result):,} rows ({result.nbytes / 1e6:,.1f} MB) for the gateways "
            f"of this query, which keep at most {most:,} of {GATEWAY_ROW_BYTES} bytes",
            hint="wait: the query is planned again, and its gateways keep no table from then on",
            code=TABLE_OUTGROWN,
        )

    def update(self, fragment: str, result: Bag) -> None:
        """Take a fragment's new result."""
        known = self._new.get(fragment, self._results.get(fragment))
        if known is not result:
            self._new[fragment] = result
            self._compared.pop(fragment, None)
            self._routed.pop((fragment, False), None)
            self._routed.pop((fragment, True), None)

    def change(self, fragment: str, delta: Delta) -> None:
        """Add to the result of a fragment that looks keys up; also to say that it is complete."""
        accumulate(self._changes.setdefault(fragment, {}), delta)

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
        return bool(self._new or self._changes) or any(map(self._can_begin, self._snapshots))

    @property
    def is_complete(self) -> bool:
        """Whether every fragment has a result."""
        return all(self._is_known(f.id) for f in self.fragments)

    def compare(self) -> None:
        """Compare new results with what was sent and route rows, as `batches` would.

        It may take seconds. Another thread may do it, while nobody calls `update` or `batches`.
        """
        snapshots = tuple(self._snapshots)  # which others may ask for meanwhile
        begun = set(filter(self._can_begin, snapshots))
        for fragment in self.whole:
            old, new = self._results.get(fragment.id), self._new.get(fragment.id)
            destinations = destinations_of(fragment)
            if not set(snapshots).issuperset(destinations) and old is not None and new is not None:
                if fragment.id not in self._compared:
                    self._compared[fragment.id] = difference(new, old)
                self._route(fragment, self._compared[fragment.id])
            current = old if new is None else new
            if current is not None and not begun.isdisjoint(destinations):
                self._route(fragment, current, reset=True)

    def batches(self, now: int) -> Iterator[tuple[str, DeltaBatch]]:
        """Yield what has to be sent, with its destination.

        When the caller stops in the middle it calls `request_all`.
        """
        changes = self._take_changes()
        ready = sorted(filter(self._can_begin, self._snapshots))
        for fragment in self.fragments:
            if fragment.id in changes:
                rows = changes[fragment.id]
                for destination in destinations_of(fragment):
                    if destination not in self._snapshots:
                        parts = self._route(fragment, rows).parts(destination)
                        for batch in self.channels[destination].carry(fragment.id, parts, now=now):
                            yield destination, batch
        for destination in ready:
            self._snapshots.discard(destination)
            channel = self.channels[destination]
            for fragment in self.fragments:
                if fragment.id in channel.contents:
                    rows = self._sent(fragment.id)
                    parts = self._route(fragment, rows, reset=True).parts(destination)
                    for batch in channel.carry(fragment.id, parts, now=now, reset=True):
                        yield destination, batch
        self._routed.clear()

    def _route(self, fragment: Fragment, rows: Bag | Delta, *, reset: bool = False) -> "RoutedRows":
        """Return rows by destination; the same rows are routed once."""
        routed = self._routed.get((fragment.id, reset))
        if routed is None or routed.rows is not rows:
            routed = self._routed[fragment.id, reset] = RoutedRows(fragment, rows)
        return routed

    def _take_changes(self) -> dict[str, Bag | Delta]:
        """Return the changes of fragments somebody has rows of; the new results count as sent."""
        self.compare()
        # What was routed stays so, but for what grows in place.
        self._routed = {k: r for k, r in self._routed.items() if isinstance(r.rows, Bag)}
        deltas, compared = self._changes, self._compared
        for name, delta in deltas.items():
            accumulate(self._looked.setdefault(name, {}), delta)
        self._results |= self._new
        self._new, self._changes, self._compared = {}, {}, {}
        return {**deltas, **compared}

    def _sent(self, fragment: str) -> Bag | Delta:
        if fragment in self._results:
            return self._results[fragment]
        return self._looked[fragment]

    def flow(self, *, busy: bool) -> FlowReport:
        """Return the next sequence number of every channel."""
        sent = {to: channel.sequence for to, channel in self.channels.items()}
        received, lives = self.keyed.received.received()
        return FlowReport(
            version=self.bundle.version,
            epoch=self._epoch,
            sent=sent,
            received=received,
            busy=busy or self.has_work or not self.is_complete,
            lives=lives,
            first=self._first,
            traffic=self.traffic.report(),
        )

    def last_sequence(self) -> int:
        """Return a sequence number that no channel has used."""
        return max((channel.sequence for channel in self.channels.values()), default=0)

    def _can_begin(self, destination: str) -> bool:
        """Whether all that a reader gets from here is known: half an answer is none."""
        return all(map(self._is_known, self.channels[destination].contents))

    def _is_known(self, fragment: str) -> bool:
        known = (self._results, self._new, self._looked, self._changes)
        return any(fragment in results for results in known)


def _standing_still(bundle: FragmentBundle) -> FragmentBundle:
    """Return the bundle with times of the past that do not move with the start of the query."""
    fragments = tuple(
        msgspec.structs.replace(part, plan=fixed(part.plan, bundle.started))
        for part in bundle.fragments
    )
    return msgspec.structs.replace(bundle, fragments=fragments)


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


class RoutedRows:
    """Rows of a fragment by the sites that read them: a row is hashed once for all sites.

    State: of a bag the number of every entry's owner, 4 bytes; of a delta its parts.
    """

    def __init__(self, fragment: Fragment, rows: Bag | Delta) -> None:
        self.rows = rows
        self._split = {} if isinstance(rows, Bag) else route(fragment, rows)
        self._numbers: dict[str, int] = {}
        sites, columns = destinations_of(fragment), fragment.partition
        if isinstance(rows, Bag) and len(sites) > 1 and columns:
            numbers = self._numbers = {site: number for number, site in enumerate(sites)}
            owners = (numbers[site_of(key, sites)] for key in rows.keys(columns))
            self._owners = np.fromiter(owners, np.int32, len(rows))

    def parts(self, destination: str) -> Iterator[Delta]:
        """Yield the rows of a site, of a bag some thousand at a time."""
        rows = self.rows
        if not isinstance(rows, Bag):
            yield self._split.get(destination, {})
        elif not self._numbers:
            yield from rows.parts()
        else:
            places = np.flatnonzero(self._owners == self._numbers[destination])
            for begin in range(0, len(places), PART_ROWS):
                some = places[begin : begin + PART_ROWS]
                yield from rows.take(some, rows.weights[some]).parts()


def supersedes(bundle: FragmentBundle, old: FragmentBundle) -> bool:
    """Whether a bundle is not just the retained copy again, after a reconnect.

    A different one of the same version comes from a new catalog, whose versions start again.
    """
    return bundle.version > old.version or (bundle.version == old.version and bundle != old)


def whole_plans(queries: Iterable[InstalledQuery]) -> set[Plan]:
    """Return the plans that are evaluated over whole tables."""
    return {fragment.plan for query in queries for fragment in query.whole}
