"""Answers of runs: what result sites have sent and what is shown, once for all equal queries."""

from collections import deque
from collections.abc import Iterator
from copy import copy
from typing import Protocol

from federated_optimizer.answer_clock import AnswerClock
from federated_optimizer.coordinator.contract.coordinator_model import Change
from host.clocks import Clock, monotonic_clock
from streamsql.algebra.streams import Emit, ordered_time
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.errors import WireError
from streamsql.wire.channel_protocol import STREAM_ROWS, ReceivingChannel, Reception, forget_oldest
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch

RECENT_ROWS = 1_000
"""Rows of a stream (ISTREAM, DSTREAM, RSTREAM) that late readers still get."""


class Showing(Protocol):
    """The result of one query, which shows an answer."""

    query: str
    answer: "RunAnswer"

    @property
    def is_watched(self) -> bool:
        """Return whether somebody has to be told of changes."""
        ...

    @property
    def changes(self) -> int:
        """Rows that came and went in view so far."""
        ...

    def go_on_counting(self, changes: int) -> None:
        """Count changes from a number on."""
        ...

    def told(self, delta: Delta, changes: tuple[Change, ...]) -> None:
        """Tell whoever watches of a change of the view; no `changes` if it is nothing new."""
        ...


class RunAnswer:
    """Answer of one bundle: its rows as sites have sent them and as they are shown, kept once.

    State: one receiving channel per result site, as large as the result, and the relation in view:
    once, however many queries show it. A change costs what those cost that are watched.

    While `held`, changes are ingested but the view stays as it was; `release` shows the difference.

    Queries of one answer stay together as long as they read the same. One that reads something else
    leaves (`left_for`), and takes a copy of the view with it, which all share that leave for the
    same. One that is stopped keeps what there was then: before the next change those that are
    stopped are given a copy, one for all of them.

    Attributes:
        bundle: Of which it is the answer.
        view: The rows in view, with how often each is.
        rows: Their number.
        is_final: Whether rows are only added; see `FragmentBundle.is_final`.
        members: The results that show it, in the order in which they came.
        stopped: Those of them that go on showing what there is now.
        started: Whether all inputs were there once, with this version of the bundle.
        is_partial: Shown before all that had been there was back; see `release`.
        changes: Rows that were added to or taken from the view so far.
        time: What time it is where the answer is made.
    """

    def __init__(self, bundle: FragmentBundle, clock: Clock, *, recovered: bool = False) -> None:
        self.clock = clock
        self.silent = recovered and bundle.emit == Emit.STREAM
        self.recent: deque[Change] = deque(maxlen=RECENT_ROWS)
        self.view: Delta = {}
        self.rows = 0
        self.forgotten = 0
        self._missed: Delta = {}
        self._last_instant: int | None = None
        self.held = False
        self.held_since = 0
        self.is_partial = False
        self.started = False
        self.changes = 0
        self.last_change: int | None = None
        self.time = AnswerClock()
        self.members: dict[Showing, None] = {}
        self.stopped: dict[Showing, None] = {}
        self._watched: dict[Showing, None] = {}
        self._follows: RunAnswer | None = None
        self._left_for: tuple[FragmentBundle, RunAnswer] | None = None
        self._expect(bundle)

    def _expect(self, bundle: FragmentBundle) -> None:
        self._read(bundle)
        self.channels = {
            site: ReceivingChannel(version=bundle.version, streams=bundle.streams)
            for site in bundle.result_sites
        }

    def _read(self, bundle: FragmentBundle) -> None:
        self.bundle, self.is_final = bundle, bundle.is_final
        self._time = _time_of(bundle)

    # --- who shows it -------------------------------------------------------------------------

    @property
    def is_stream(self) -> bool:
        """Return whether it is a stream of changes, which has no current contents."""
        return self.bundle.emit == Emit.STREAM

    @property
    def is_live(self) -> bool:
        """Return whether a query shows it that goes on."""
        return len(self.members) > len(self.stopped)

    @property
    def is_plain(self) -> bool:
        """Return whether what is shown follows from what was sent: so equal queries share it."""
        return not (self.is_stream or self.is_final)

    def live(self) -> Iterator[str]:
        """Yield the ids of the queries that show it and go on."""
        return (member.query for member in self.members if member not in self.stopped)

    def watched(self) -> Iterator[str]:
        """Yield the ids of those that somebody watches."""
        return (m.query for m in self._watched if m.is_watched and m not in self.stopped)

    def enter(self, member: Showing) -> None:
        """Let a result show it."""
        member.answer = self
        self.members[member] = None
        self.watch(member)

    def leave(self, member: Showing) -> None:
        """Let a result show it no more."""
        self.members.pop(member, None)
        self.stopped.pop(member, None)
        self._watched.pop(member, None)

    def watch(self, member: Showing) -> None:
        """Tell a result of changes as long as it is watched."""
        if member.is_watched:
            self._watched[member] = None

    def stop(self, member: Showing) -> None:
        """Let a result show what there is now from now on."""
        self.stopped[member] = None

    def own(self, member: Showing) -> "RunAnswer":
        """Return an answer that a result has for itself."""
        if len(self.members) == 1:
            return self
        twin = self._copy()
        twin.channels = self.channel_copies()
        self._move([member], twin)
        return twin

    def left_for(self, member: Showing, bundle: FragmentBundle) -> "RunAnswer":
        """Let a result expect another bundle; return its answer, which shows the same until then.

        Others that do so before anything has come share it.
        """
        known = self._left_for
        if known is not None and known[0] is bundle and known[1].is_untouched:
            self._move([member], known[1])
            return known[1]
        if len(self.members) == 1:
            self.redeploy(bundle)
            return self
        twin = self._copy()
        twin.redeploy(bundle)
        self._left_for = (bundle, twin)
        self._move([member], twin)
        return twin

    @property
    def is_untouched(self) -> bool:
        """Return whether nothing has come of the bundle, but what another answer had."""
        has_begun = any(channel.epoch is not None for channel in self.channels.values())
        return self.held and (self._follows is not None or not has_begun)

    def _copy(self) -> "RunAnswer":
        twin = RunAnswer(self.bundle, self.clock)
        twin.silent, twin.recent = self.silent, copy(self.recent)
        twin.view, twin.rows, twin.forgotten = dict(self.view), self.rows, self.forgotten
        twin._missed, twin._last_instant = dict(self._missed), self._last_instant
        twin.held, twin.held_since = self.held, self.held_since
        twin.is_partial, twin.started = self.is_partial, self.started
        twin.changes, twin.last_change = self.changes, self.last_change
        twin.time = copy(self.time)
        return twin

    def _move(self, members: list[Showing], to: "RunAnswer") -> None:
        for member in members:
            before = member.changes
            self.leave(member)
            to.enter(member)
            member.go_on_counting(before)

    def _part(self) -> None:
        """Give those that are stopped what there is, before it changes."""
        if self.stopped and self.is_live:
            twin = self._copy()
            twin.channels = self.channel_copies()
            stopped = list(self.stopped)
            self._move(stopped, twin)
            twin.stopped.update(dict.fromkeys(stopped))

    # --- what comes ---------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of distinct rows in view or on their way into it."""
        return max(len(self.view), sum(channel.size for channel in self.channels.values()))

    @property
    def is_synchronised(self) -> bool:
        """Return whether every result site has sent its contents."""
        return all(channel.synchronised for channel in self.channels.values())

    def received(self) -> dict[str, int]:
        """Return the next expected sequence number by result site."""
        return {site: channel.expected for site, channel in self.channels.items()}

    def lives(self) -> dict[str, int]:
        """Return the epoch in which each result site has sent that, if it has sent anything."""
        ends = self.channels.items()
        return {site: channel.epoch for site, channel in ends if channel.epoch is not None}

    def channel_copies(self) -> dict[str, ReceivingChannel]:
        """Return other ends of the channels from the result sites that have received the same."""
        return {site: channel.copy() for site, channel in self.channels.items()}

    def contents(self) -> Delta:
        """Return what all result sites have sent, whether it is in view or not."""
        found: Delta = {}
        for channel in self.channels.values():
            for contents in channel.contents.values():
                accumulate(found, contents)
        return found

    def accept(self, site: str, batch: DeltaBatch) -> Reception:
        """Ingest a batch; after GAP the site must be asked for a snapshot.

        Raises:
            WireError: The plan has no result of that site.
        """
        channel = self.channels.get(site)
        if channel is None:
            # A run goes on silent under its version once others alone read it.
            if batch.version == self.bundle.version and not self.bundle.silent:
                raise WireError(f"{site!r:.80} sends a result, but the plan has none from it")
            return Reception.STALE
        self._part()
        self._follows = self._left_for = None
        epoch = channel.epoch
        outcome, delta = channel.accept(batch)
        if outcome == Reception.ACCEPTED:
            self.time.heard(batch.now, self.clock())
        if epoch not in (None, channel.epoch):
            self._hold()
        if outcome == Reception.ACCEPTED and self.held and self.is_stream:
            accumulate(self._missed, delta)
        if outcome == Reception.ACCEPTED and not self.held:
            self._show(delta, batch.ts)
            self.silent = self.silent and batch.more
        return outcome

    def redeploy(self, bundle: FragmentBundle) -> None:
        """Expect another version from now on; the view stays until `release`."""
        self._part()
        self._follows = self._left_for = None
        self._expect(bundle)
        self._hold()

    def follow(self, other: "RunAnswer") -> None:
        """Know what another answer of the same bundle has received, and show it when released."""
        if self._follows is not other:
            self._follows = other
            self.channels = other.channel_copies()
            self.time = copy(other.time)

    def release(self, *, is_partial: bool = False) -> None:
        """Show what has arrived since the redeployment or restart.

        Args:
            is_partial: More is on its way: rows that go now may be back at once.
        """
        self._part()
        self._follows = self._left_for = None
        self.held, self.is_partial = False, is_partial
        if self.is_stream:
            missed, self._missed = self._missed, {}
            self._show(missed, None)
            self.silent = False
            return
        change = difference(self.contents(), self.view)
        if self.is_final:  # what was given stays, whatever a result site still knows
            change = {row: weight for row, weight in change.items() if weight > 0}
        self._show(change, None)
        self.silent = False

    def hand_over(self, bundle: FragmentBundle, other: "RunAnswer") -> None:
        """Go on with what another answer has received of another bundle; show the difference."""
        self._part()
        self._read(bundle)
        self.channels = other.channel_copies()
        self.time = copy(other.time)
        self.release()

    def merge_into(self, other: "RunAnswer") -> bool:
        """Let what shows it show another answer instead, if that is the same by now."""
        both = (self, other)
        if self.bundle is not other.bundle or not all(answer.is_plain for answer in both):
            return False
        if any(answer.held for answer in both) or self.is_partial != other.is_partial:
            return False
        if not (self.is_synchronised and other.is_synchronised):
            return False
        if self.received() != other.received() or self.lives() != other.lives():
            return False
        self._part()
        other.started = other.started or self.started
        self._move([member for member in self.members if member not in self.stopped], other)
        return True

    def _hold(self) -> None:
        self.held, self.held_since = True, monotonic_clock()

    def _show(self, delta: Delta, reading_ts: int | None) -> None:
        if not delta:
            return
        if self.is_stream:
            delta = self._unheard(delta)
        else:
            accumulate(self.view, delta)
            self.rows += sum(delta.values())
        if self.is_final:
            self.forgotten += forget_oldest(self.view, 2 * STREAM_ROWS)
            self.rows = sum(self.view.values())
        # All that was there before the restart has been emitted before the restart.
        is_new = bool(delta) and not self.silent
        if is_new:
            self.changes += len(delta)
            self.last_change = self.clock()
        if not self._watched and not self.is_stream:
            return
        changes = changes_of(delta, self.last_change, reading_ts) if is_new else ()
        if self.is_stream:
            self.recent.extend(changes)
        for member in tuple(self._watched):
            if member.is_watched:
                member.told(delta, changes)
            else:
                del self._watched[member]

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


def changes_of(delta: Delta, at: int | None, reading_ts: int | None) -> tuple[Change, ...]:
    """Return a change of a view as readers are told of it."""
    return tuple(Change(at or 0, weight, row, reading_ts) for row, weight in delta.items())


def _time_of(bundle: FragmentBundle) -> int | None:
    """Return where the rows of a stream have their instant, if that is ever later."""
    last = [fragment for fragment in bundle.fragments if not fragment.consumer]
    alone = len(last) == 1 and len(last[0].sites) == 1
    return ordered_time(last[0].plan) if alone else None
