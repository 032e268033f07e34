"""The result of a query: the current relation, its changes, and its readers."""

from collections import deque
from collections.abc import Callable
from copy import copy

from federated_optimizer.answer_clock import AnswerClock
from federated_optimizer.coordinator.contract.coordinator_model import (
    Change,
    ChangeBatch,
    QueryStatus,
)
from federated_optimizer.coordinator.queries.result_subscriptions import ResultSubscription
from host.clocks import Clock, monotonic_clock
from streamsql.algebra.streams import Emit, ordered_time
from streamsql.data.delta import Delta, accumulate, difference, sort_key
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.channel_protocol import STREAM_ROWS, ReceivingChannel, Reception, forget_oldest
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch

PROGRESS_MICROSECONDS = 500_000
"""Between two messages that the answer is complete so far."""
RECENT_ROWS = 1_000
"""Rows of a stream (ISTREAM, DSTREAM, RSTREAM) that late readers still get."""


class QueryResult:
    """The result of one query over all versions of its bundle.

    State: one receiving channel per result site, as large as the result, and the relation in view.
    While `held`, changes are ingested but the view stays as it was; `release` shows the
    difference. So a redeployment that changes nothing shows nothing, and neither does the restart
    of a result site, which begins with an empty result.

    A result that is a relation is what `rows` returns. A stream has no current contents: its
    latest rows stand in for them, and nothing else of it is kept.

    Where rows are final, as those of closed windows, a row that was shown stays, and of many only
    the latest are kept.

    Args:
        query: The id by which readers know it; empty: the name of the bundle.
        recovered: The query ran before: what its first snapshot holds is nothing new.
        is_followed: Somebody will call `follow`: changes before are kept for that moment.

    Attributes:
        is_partial: Shown before all that had been there was back; see `release`.
        time: What time it is where the answer is made.
    """

    def __init__(  # noqa: PLR0913 - what a result is told once
        self,
        bundle: FragmentBundle,
        *,
        clock: Clock,
        max_behind: int,
        query: str = "",
        recovered: bool = False,
        is_followed: bool = False,
    ) -> None:
        self._query = query or bundle.query
        self._clock = clock
        self._max_behind = max_behind
        self._silent = recovered and bundle.emit == Emit.STREAM
        self._recent: deque[Change] = deque(maxlen=RECENT_ROWS)
        self._bundle = bundle
        self._channels = _channels(bundle)
        self.view: Delta = {}
        self.forgotten = 0
        self._missed: Delta = {}
        self._time = _time_of(bundle)
        self._last_instant: int | None = None
        self.held = False
        self.held_since = 0
        self.is_partial = False
        self.changes = 0
        self.last_change: int | None = None
        self.readers: set[ResultSubscription] = set()
        self._told_progress = 0
        self._on_change: Callable[[Delta], None] | None = None
        self._unfollowed: Delta | None = {} if is_followed else None
        self.time = AnswerClock()

    def follow(self, on_change: Callable[[Delta], None]) -> None:
        """Have every change of the relation in view told, after it is there; those before, too."""
        self._on_change, before, self._unfollowed = on_change, self._unfollowed, None
        if before:
            on_change(before)

    def join(self, other: "QueryResult") -> None:
        """Know what the result of another query of the same bundle has received so far.

        What it shows is shown here, too, unless this one is held: then the difference follows.
        """
        self._channels = other.channel_copies()
        self.time = copy(other.time)
        if not self.held:
            self._show(dict(other.view), None)
            self.is_partial = other.is_partial
            self.held, self.held_since = other.held, other.held_since

    def channel_copies(self) -> dict[str, ReceivingChannel]:
        """Return other ends of the channels from the result sites that have received the same."""
        return {site: channel.copy() for site, channel in self._channels.items()}

    @property
    def is_synchronised(self) -> bool:
        """Whether every result site has sent its contents."""
        return all(channel.synchronised for channel in self._channels.values())

    @property
    def unsynchronised(self) -> tuple[str, ...]:
        """The result sites that have not."""
        return tuple(s for s, channel in self._channels.items() if not channel.synchronised)

    @property
    def size(self) -> int:
        """Number of distinct rows in view or on their way into it."""
        return max(len(self.view), sum(channel.size for channel in self._channels.values()))

    def notices(self) -> tuple[str, ...]:
        """Return what a reader of the whole result should know."""
        if not self.forgotten:
            return ()
        return (
            f"{self.forgotten} rows of windows that closed long ago were emitted and are "
            "no longer listed; displays and subscribers received all of them",
        )

    def received(self) -> dict[str, int]:
        """Return the next expected sequence number by result site."""
        return {site: channel.expected for site, channel in self._channels.items()}

    def lives(self) -> dict[str, int]:
        """Return the epoch in which each result site has sent that, if it has sent anything."""
        ends = self._channels.items()
        return {site: channel.epoch for site, channel in ends if channel.epoch is not None}

    def accept(self, site: str, batch: DeltaBatch) -> Reception:
        """Ingest a batch; after GAP the site must be asked for a snapshot.

        Raises:
            WireError: The plan has no result of that site.
        """
        channel = self._channels.get(site)
        if channel is None:
            if batch.version == self._bundle.version:
                raise WireError(f"{site!r:.80} sends a result, but the plan has none from it")
            return Reception.STALE
        epoch = channel.epoch
        outcome, delta = channel.accept(batch)
        if outcome == Reception.ACCEPTED:
            self.time.heard(batch.now, self._clock())
        if epoch not in (None, channel.epoch):
            self._hold()
        if outcome == Reception.ACCEPTED and self.held and self._is_stream:
            accumulate(self._missed, delta)
        if outcome == Reception.ACCEPTED and not self.held:
            self._show(delta, batch.ts)
            self._silent = self._silent and batch.more
        return outcome

    def redeploy(self, bundle: FragmentBundle) -> None:
        """Expect another version from now on; the view stays until `release`."""
        self._bundle = bundle
        self._time = _time_of(bundle)
        self._channels = _channels(bundle)
        self._hold()

    def release(self, *, is_partial: bool = False) -> None:
        """Show what has arrived since the redeployment or restart.

        Args:
            is_partial: More is on its way: rows that go now may be back at once.
        """
        self.held, self.is_partial = False, is_partial
        if self._is_stream:
            missed, self._missed = self._missed, {}
            self._show(missed, None)
            self._silent = False
            return
        target = self.contents()
        change = difference(target, self.view)
        if self._bundle.is_final:  # what was given stays, whatever a result site still knows
            change = {row: weight for row, weight in change.items() if weight > 0}
        self._show(change, None)
        self._silent = False

    def contents(self) -> Delta:
        """Return what all result sites have sent, whether it is in view or not."""
        found: Delta = {}
        for channel in self._channels.values():
            for contents in channel.contents.values():
                accumulate(found, contents)
        return found

    def hand_over(self, bundle: FragmentBundle, other: "QueryResult") -> None:
        """Go on with what another result has received of another bundle; show the difference.

        Nothing is shown where both hold the same rows: readers do not notice it.
        """
        self._bundle = bundle
        self._time = _time_of(bundle)
        self._channels = other.channel_copies()
        self.time = copy(other.time)
        self.release()

    def rows(self) -> tuple[Row, ...]:
        """Return the rows in view, sorted; of a stream its latest, oldest first."""
        if self._is_stream:
            return tuple(change.row for change in tuple(self._recent))
        view = dict(self.view)
        return tuple(row for row in sorted(view, key=sort_key) for _ in range(view[row]))

    def contents_by_site(self) -> dict[str, Delta]:
        """Return what every result site has sent, whether it is in view or not."""
        found: dict[str, Delta] = {}
        for site, channel in self._channels.items():
            found[site] = {}
            for contents in channel.contents.values():
                accumulate(found[site], contents)
        return found

    def snapshot(self) -> ChangeBatch:
        """Return everything in view as one batch."""
        if not self._is_stream:
            ts = self._clock()
            changes = tuple(Change(ts, weight, row) for row, weight in self.view.items())
        else:
            changes = tuple(self._recent)
        return ChangeBatch(self._query, changes, snapshot=True)

    @property
    def wants_progress(self) -> bool:
        """Whether some reader is to be told by now up to when the answer is complete."""
        waited = monotonic_clock() - self._told_progress >= PROGRESS_MICROSECONDS
        return waited and any(reader.progress for reader in self.readers)

    def tell_progress(self) -> None:
        """Tell those readers that it is complete as it stands."""
        self._told_progress = monotonic_clock()
        batch = ChangeBatch(self._query, (), progress=self._clock())
        for reader in tuple(self.readers):
            if reader.progress:
                reader.deliver(batch)

    def subscribe(
        self,
        closed: Callable[[ResultSubscription], None],
        *,
        snapshot: bool,
        progress: bool = False,
    ) -> ResultSubscription:
        """Add a reader."""
        reader = ResultSubscription(
            self.snapshot, closed, max_behind=self._max_behind, begin_with_snapshot=snapshot
        )
        reader.progress = progress
        self.readers.add(reader)
        return reader

    def announce(self, status: QueryStatus, error: str) -> None:
        """Tell the readers about a change of status."""
        self._deliver(ChangeBatch(self._query, (), status=status, error=error))

    def end(self, status: QueryStatus, error: str = "") -> None:
        """Tell the readers that this was all."""
        last = ChangeBatch(self._query, (), status=status, error=error)
        for reader in tuple(self.readers):
            reader.end(last)

    @property
    def _is_stream(self) -> bool:
        return self._bundle.emit == Emit.STREAM

    def _hold(self) -> None:
        self.held, self.held_since = True, monotonic_clock()

    def _show(self, delta: Delta, reading_ts: int | None) -> None:
        if not delta:
            return
        if self._is_stream:
            delta = self._unheard(delta)
        else:
            accumulate(self.view, delta)
        if self._bundle.is_final:
            self.forgotten += forget_oldest(self.view, 2 * STREAM_ROWS)
        if self._on_change is not None:
            self._on_change(delta)
        elif self._unfollowed is not None:
            accumulate(self._unfollowed, delta)
        # All that was there before the restart has been emitted before the restart.
        changes = () if self._silent else self._changes(delta, reading_ts)
        if not changes:
            return
        self.changes += len(changes)
        self.last_change = changes[0].ts
        if self._is_stream:
            self._recent.extend(changes)
        self._deliver(ChangeBatch(self._query, changes))

    def _unheard(self, delta: Delta) -> Delta:
        """Return the rows of a stream that are after those shown: a restart may repeat some."""
        time, last = self._time, self._last_instant
        if time is None:
            return delta
        instants = {row: instant for row in delta if isinstance(instant := row[time], int)}
        self._last_instant = max(instants.values(), default=last)
        if last is None:
            return delta
        self._last_instant = max(last, self._last_instant or last)
        return {row: delta[row] for row, instant in instants.items() if instant > last}

    def _changes(self, delta: Delta, reading_ts: int | None) -> tuple[Change, ...]:
        ts = self._clock()
        return tuple(Change(ts, weight, row, reading_ts) for row, weight in delta.items())

    def _deliver(self, batch: ChangeBatch) -> None:
        for reader in tuple(self.readers):
            reader.deliver(batch)


def _time_of(bundle: FragmentBundle) -> int | None:
    """Return where the rows of a stream have their instant, if that is ever later."""
    last = [fragment for fragment in bundle.fragments if not fragment.consumer]
    alone = len(last) == 1 and len(last[0].sites) == 1
    return ordered_time(last[0].plan) if alone else None


def _channels(bundle: FragmentBundle) -> dict[str, ReceivingChannel]:
    return {
        site: ReceivingChannel(version=bundle.version, streams=bundle.streams)
        for site in bundle.result_sites
    }
