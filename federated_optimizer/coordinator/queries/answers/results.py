"""The result of a query: the relation that it shows, its changes, and its readers."""

from collections.abc import Callable

from federated_optimizer.answer_clock import AnswerClock
from federated_optimizer.coordinator.contract.coordinator_model import (
    Change,
    ChangeBatch,
    QueryStatus,
)
from federated_optimizer.coordinator.queries.answers.result_subscriptions import ResultSubscription
from federated_optimizer.coordinator.queries.answers.run_answers import RunAnswer, changes_of
from host.clocks import Clock, monotonic_clock
from streamsql.data.delta import Delta, accumulate, difference, sort_key
from streamsql.data.types import Row
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch

PROGRESS_MICROSECONDS = 500_000
"""Between two messages that the answer is complete so far."""


class QueryResult:
    """The result of one query over all versions of its bundle.

    State: readers, and what the query has shown beyond its answer. The rows are in the answer
    (`RunAnswer`), which queries of one run share: `join` enters that of another query. While the
    answer is `held` the view stays as it was. So a redeployment that changes nothing shows nothing,
    and neither does the restart of a result site, which begins with an empty result.

    A result that is a relation is what `rows` returns. A stream has no current contents: its
    latest rows stand in for them, and nothing else of it is kept.

    Where rows are final, as those of closed windows, a row that was shown stays, and of many only
    the latest are kept.

    Args:
        query: The id by which readers know it; empty: the name of the bundle.
        recovered: The query ran before: what its first snapshot holds is nothing new.
        is_followed: Somebody will call `follow`: changes before are kept for that moment.

    Attributes:
        query: The id by which readers know it.
        answer: The answer that it shows, alone or with other queries.
        readers: Whoever reads it.
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
        self.query = query or bundle.query
        self._clock = clock
        self._max_behind = max_behind
        self.readers: set[ResultSubscription] = set()
        self._told_progress = 0
        self._on_change: Callable[[Delta], None] | None = None
        self._unfollowed: Delta | None = {} if is_followed else None
        self._shown_alone = 0
        self._alone_at: int | None = None
        self.answer = RunAnswer(bundle, clock, recovered=recovered)
        self.answer.enter(self)

    # --- the answer ---------------------------------------------------------------------------

    @property
    def view(self) -> Delta:
        """The rows in view; not to be changed."""
        return self.answer.view

    @property
    def held(self) -> bool:
        """Return whether the view stays as it is."""
        return self.answer.held

    @property
    def held_since(self) -> int:
        """When that began last, by `monotonic_clock`."""
        return self.answer.held_since

    @property
    def is_partial(self) -> bool:
        """Return whether it is shown before all that had been there was back; see `release`."""
        return self.answer.is_partial

    @is_partial.setter
    def is_partial(self, partial: bool) -> None:
        self.answer.is_partial = partial

    @property
    def time(self) -> AnswerClock:
        """The time where the answer is made."""
        return self.answer.time

    @property
    def changes(self) -> int:
        """Rows that readers could see come and go so far."""
        return self.answer.changes + self._shown_alone

    def go_on_counting(self, changes: int) -> None:
        """Count changes from a number on: the answer is another one."""
        self._shown_alone = changes - self.answer.changes

    @property
    def last_change(self) -> int | None:
        """When that was last, by the wall clock, or None."""
        moments = (self.answer.last_change, self._alone_at)
        return max((moment for moment in moments if moment is not None), default=None)

    @property
    def is_synchronised(self) -> bool:
        """Return whether every result site has sent its contents."""
        return self.answer.is_synchronised

    @property
    def unsynchronised(self) -> tuple[str, ...]:
        """The result sites that have not."""
        ends = self.answer.channels.items()
        return tuple(site for site, channel in ends if not channel.synchronised)

    @property
    def size(self) -> int:
        """Number of distinct rows in view or on their way into it."""
        return self.answer.size

    def notices(self) -> tuple[str, ...]:
        """Return what a reader of the whole result should know."""
        if not self.answer.forgotten:
            return ()
        return (
            f"{self.answer.forgotten} rows of windows that closed long ago were emitted and are "
            "no longer listed; displays and subscribers received all of them",
        )

    def received(self) -> dict[str, int]:
        """Return the next expected sequence number by result site."""
        return self.answer.received()

    def lives(self) -> dict[str, int]:
        """Return the epoch in which each result site has sent that, if it has sent anything."""
        return self.answer.lives()

    def channel_copies(self) -> dict[str, ReceivingChannel]:
        """Return other ends of the channels from the result sites that have received the same."""
        return self.answer.channel_copies()

    def contents(self) -> Delta:
        """Return what all result sites have sent, whether it is in view or not."""
        return self.answer.contents()

    def contents_by_site(self) -> dict[str, Delta]:
        """Return what every result site has sent, whether it is in view or not."""
        found: dict[str, Delta] = {}
        for site, channel in self.answer.channels.items():
            found[site] = {}
            for contents in channel.contents.values():
                accumulate(found[site], contents)
        return found

    def rows(self) -> tuple[Row, ...]:
        """Return the rows in view, sorted; of a stream its latest, oldest first."""
        if self.answer.is_stream:
            return tuple(change.row for change in tuple(self.answer.recent))
        view = dict(self.view)
        return tuple(row for row in sorted(view, key=sort_key) for _ in range(view[row]))

    # --- what comes, and what it reads --------------------------------------------------------

    def accept(self, site: str, batch: DeltaBatch) -> Reception:
        """Ingest a batch, for all queries of the answer; see `RunAnswer.accept`."""
        return self.answer.accept(site, batch)

    def release(self, *, is_partial: bool = False) -> None:
        """Show what has arrived, to all queries of the answer; see `RunAnswer.release`."""
        self.answer.release(is_partial=is_partial)

    def join(self, other: "QueryResult") -> None:
        """Know what the result of another query of the same bundle has received so far.

        What it shows is shown here, too, unless this one is held: then the difference follows.
        """
        if self.answer is other.answer:
            return
        if self.held:
            self.answer.follow(other.answer)
        else:
            self._show_instead(other.answer)

    def redeploy(self, bundle: FragmentBundle) -> None:
        """Expect another version from now on; the view stays until `release`."""
        answer = self.answer.left_for(self, bundle)
        answer.stopped.pop(self, None)

    def hand_over(self, bundle: FragmentBundle, other: "QueryResult") -> None:
        """Go on with what another result has received of another bundle; show the difference.

        Nothing is shown where both hold the same rows: readers do not notice it.
        """
        answer = other.answer
        if answer.is_plain and not (answer.held or answer.is_partial):
            self._show_instead(answer)
        else:
            self.answer.own(self).hand_over(bundle, answer)

    def stop(self) -> None:
        """Go on showing what there is now: the query has ended, and the run may go on."""
        self.answer.stop(self)

    def leave(self) -> None:
        """Show nothing any more: the query is gone."""
        self.answer.leave(self)

    def _show_instead(self, answer: RunAnswer) -> None:
        """Show another answer from now on; tell what is different."""
        former = self.answer
        change = difference(answer.view, former.view) if former.view else dict(answer.view)
        before = self.changes
        former.leave(self)
        answer.enter(self)
        self.go_on_counting(before + len(change))
        if change:
            self._alone_at = self._clock()
            self.told(change, changes_of(change, self._alone_at, None) if self.readers else ())

    # --- whoever watches ----------------------------------------------------------------------

    @property
    def is_watched(self) -> bool:
        """Return whether somebody has to be told of changes."""
        is_followed = self._on_change is not None or self._unfollowed is not None
        return is_followed or bool(self.readers)

    def told(self, delta: Delta, changes: tuple[Change, ...]) -> None:
        """Tell whoever watches of a change of the view; no `changes` if it is nothing new."""
        if self._on_change is not None:
            self._on_change(delta)
        elif self._unfollowed is not None:
            accumulate(self._unfollowed, delta)
        if changes and self.readers:
            self._deliver(ChangeBatch(self.query, changes))

    def follow(self, on_change: Callable[[Delta], None]) -> None:
        """Have every change of the relation in view told, after it is there; those before, too."""
        self._on_change, before, self._unfollowed = on_change, self._unfollowed, None
        self.answer.watch(self)
        if before:
            on_change(before)

    def snapshot(self) -> ChangeBatch:
        """Return everything in view as one batch."""
        if not self.answer.is_stream:
            ts = self._clock()
            changes = tuple(Change(ts, weight, row) for row, weight in self.view.items())
        else:
            changes = tuple(self.answer.recent)
        return ChangeBatch(self.query, changes, snapshot=True)

    @property
    def tells_progress(self) -> bool:
        """Return whether some reader is to be told up to when the answer is complete."""
        return any(reader.progress for reader in self.readers)

    @property
    def wants_progress(self) -> bool:
        """Return whether some reader is to be told by now up to when the answer is complete."""
        waited = monotonic_clock() - self._told_progress >= PROGRESS_MICROSECONDS
        return waited and self.tells_progress

    def tell_progress(self) -> None:
        """Tell those readers that it is complete as it stands."""
        self._told_progress = monotonic_clock()
        batch = ChangeBatch(self.query, (), progress=self._clock())
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
        self.answer.watch(self)
        return reader

    def announce(self, status: QueryStatus, error: str) -> None:
        """Tell the readers about a change of status."""
        if self.readers:
            self._deliver(ChangeBatch(self.query, (), status=status, error=error))

    def end(self, status: QueryStatus, error: str = "") -> None:
        """Tell the readers that this was all."""
        last = ChangeBatch(self.query, (), status=status, error=error)
        for reader in tuple(self.readers):
            reader.end(last)

    def _deliver(self, batch: ChangeBatch) -> None:
        for reader in tuple(self.readers):
            reader.deliver(batch)
