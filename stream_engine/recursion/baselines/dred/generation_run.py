"""One site's part in a generation of a distributed delete-and-rederive: its steps and barriers."""

import enum
from collections.abc import Callable, Mapping

from stream_engine.recursion.baselines.dred.dred_evaluation import DredCounters, Evaluation
from stream_engine.recursion.baselines.dred.dred_partition import Partition
from stream_engine.recursion.baselines.dred.dred_streams import Generation, Item, Kind, Stamp
from stream_engine.recursion.program.leaf_relations import LeafInput
from stream_engine.recursion.program.placement import Router
from stream_engine.recursion.program.program import Program
from stream_engine.recursion.program.rules import LeafUse
from streamsql.data.delta import Delta
from streamsql.data.types import Row

Rows = dict[Row, None]


class BaseRows:
    """The distinct, narrowed leaf rows of a site, and what was not told to the recursion yet.

    State: per leaf the rows that are there, those that entered and those that left. A row that
    enters and leaves before it is told was never there.
    """

    def __init__(self, uses: tuple[LeafUse, ...]) -> None:
        self._inputs = tuple(LeafInput(use) for use in uses)
        self._present: tuple[Rows, ...] = tuple({} for _ in uses)
        self._entered: tuple[Rows, ...] = tuple({} for _ in uses)
        self._left: tuple[Rows, ...] = tuple({} for _ in uses)

    def buffer(self, leaf: int, delta: Delta) -> None:
        """Note changes of a leaf."""
        self._inputs[leaf].buffer(delta)

    def take_in(self) -> None:
        """Work out what the noted changes mean."""
        for source, present, waiting, leaving in zip(
            self._inputs, self._present, self._entered, self._left, strict=True
        ):
            entered, left = source.take()
            for row in left:
                del present[row]
                if row in waiting:
                    del waiting[row]
                else:
                    leaving[row] = None
            for row in entered:
                present[row] = None
                if row in leaving:
                    del leaving[row]
                else:
                    waiting[row] = None

    @property
    def has_left(self) -> bool:
        """Whether rows left that the recursion still has."""
        return any(self._left)

    def take_entered(self) -> tuple[Rows, ...]:
        """Return, per leaf, the rows to tell now."""
        entered, self._entered = self._entered, tuple({} for _ in self._entered)
        return entered

    def take_left(self) -> tuple[Rows, ...]:
        """Return, per leaf, the rows to take back now."""
        left, self._left = self._left, tuple({} for _ in self._left)
        return left

    def restart(self) -> None:
        """Nothing was told: all rows have just entered."""
        self._entered = tuple(dict(present) for present in self._present)
        self._left = tuple({} for _ in self._left)


class ChannelCounts:
    """Channel counting (Mattern 1987, section 5), which finds out that a step is over at all sites.

    Every idle member reports how many items it has sent to and worked on from every other. Once the
    last reports of all members agree for every channel, they describe a consistent cut: no item is
    under way, and since an idle member becomes active only by an item, none ever will be.

    Args:
        members: Indexes of all members, in the same order everywhere.
        own: Index of this site.
    """

    def __init__(self, members: tuple[int, ...], own: int) -> None:
        self._members = members
        self._own = own
        self._sent = dict.fromkeys(members, 0)
        self._worked = dict.fromkeys(members, 0)
        self._reports: dict[int, tuple[int, ...]] = {}
        self._told: tuple[int, ...] = ()

    def sent(self, to: int) -> None:
        """Count an item that was sent."""
        self._sent[to] += 1

    def worked(self, sender: int) -> None:
        """Count an item that was worked on."""
        self._worked[sender] += 1

    def begin_step(self) -> None:
        """Discard the reports: they are of the last step."""
        self._reports = {}
        self._told = ()

    def news(self) -> tuple[int, ...] | None:
        """Return this site's report, per member sent and worked on; None if it was told already."""
        report = tuple(
            count
            for member in self._members
            for count in (self._sent[member], self._worked[member])
        )
        if report == self._told:
            return None
        self._told = self._reports[self._own] = report
        return report

    def note(self, member: int, report: tuple[int, ...]) -> None:
        """Note a member's report."""
        if member in self._sent and len(report) == 2 * len(self._members):
            self._reports[member] = report

    def is_over(self) -> bool:
        """Whether all members were idle and nothing was under way."""
        reports = [self._reports.get(member) for member in self._members]
        return all(
            mine is not None and theirs is not None and mine[2 * b] == theirs[2 * a + 1]
            for a, mine in enumerate(reports)
            for b, theirs in enumerate(reports)
        )


Send = Callable[[str, Item, Stamp], None]


class Phase(enum.Enum):
    """What a step of a generation is for."""

    LOAD = "load"
    OPEN = "open"
    OVER_DELETE = "over-delete"
    REDERIVE = "rederive"


_WAVE = (Phase.OPEN, Phase.OVER_DELETE, Phase.REDERIVE)


def phase_of(step: int) -> Phase:
    """Return the phase of a step: a generation is loaded, then opened, and waves go round.

    Examples:
        >>> [phase_of(step).value for step in range(5)]
        ['load', 'open', 'over-delete', 'rederive', 'open']
    """
    return _WAVE[(step - 1) % len(_WAVE)] if step else Phase.LOAD


class GenerationRun:
    """Goes through the steps of a generation.

    A step that is *closed* takes in no leaf rows and ends when the leader knows that all members
    are idle and no item is under way. All steps are closed but the open ones, until the leader
    closes them because somebody has deletions.

    Attributes:
        was_shown: Whether the view of this generation has been given out; kept by the caller.
    """

    def __init__(  # noqa: PLR0913  (what it is, where it is, and whom it talks to)
        self,
        generation: Generation,
        members: Mapping[str, int],
        *,
        program: Program,
        rules: Evaluation,
        counters: DredCounters,
        base: BaseRows,
        router: Router,
        site: str,
        indexes: Mapping[str, int],
        send: Send,
    ) -> None:
        self.generation = generation
        self.members = members
        self.step = 0
        self.was_shown = False
        self.partition = Partition(
            program,
            rules,
            counters,
            router=router,
            site=site,
            indexes=indexes,
            tell=self._tell,
        )
        self._counters = counters
        self._base = base
        self._site = site
        self._indexes = indexes
        self._send = send
        self._leader = next(name for name, i in indexes.items() if i == generation.leader)
        self._leads = site == self._leader
        self._counts = ChannelCounts(tuple(indexes.values()), indexes[site])
        self._closed = True
        self._wanted = False
        self._advancing = False
        counters.generations += 1
        base.restart()
        self.partition.insert(base.take_entered())

    @property
    def phase(self) -> Phase:
        """What the present step is for."""
        return phase_of(self.step)

    def take(self, sender: str, item: Item) -> None:
        """Ingest an item of the present step."""
        match item.kind:
            case Kind.WANT:
                self._close()
            case Kind.CLOSE:
                self._closed = True
            case Kind.REPORT:
                self._counts.note(self._indexes[sender], item.numbers)
            case Kind.ADVANCE:
                self._advancing = True
            case _:
                self._counts.worked(self._indexes[sender])
                self.partition.take(sender, item)

    def work(self, rounds: int | None) -> int:
        """Ingest leaf rows if it is their time, and derive; return the rounds it took."""
        if not self._closed:
            self.partition.insert(self._base.take_entered())
            if self._base.has_left:
                self._want()
        return self.partition.run(rounds)

    def conclude(self) -> bool:
        """End the step if it is over, else say what there is to say; return whether it ended.

        To be called when this site is idle.
        """
        if self._advancing:
            self._enter_next()
            return True
        if not self._closed:
            return False
        report = self._counts.news()
        if not self._leads:
            if report is not None:
                self._tell(self._leader, Item(Kind.REPORT, (), report))
            return False
        if not self._counts.is_over():
            return False
        self._tell_all(Kind.ADVANCE)
        self._enter_next()
        return True

    def _enter_next(self) -> None:
        self.step += 1
        self._advancing = self._wanted = False
        self._counts.begin_step()
        match self.phase:
            case Phase.OVER_DELETE:
                self._counters.waves += 1
                self.partition.delete(self._base.take_left())
            case Phase.REDERIVE:
                self.partition.rederive()
            case Phase.OPEN | Phase.LOAD:
                self.partition.end_wave()
                self._closed = False

    def _want(self) -> None:
        if self._leads:
            self._close()
        elif not self._wanted:
            self._wanted = True
            self._tell(self._leader, Item(Kind.WANT))

    def _close(self) -> None:
        if self._leads and not self._closed:
            self._closed = True
            self._tell_all(Kind.CLOSE)

    def _tell_all(self, kind: Kind) -> None:
        for site in self._indexes:
            if site != self._site:
                self._tell(site, Item(kind))

    def _tell(self, site: str, item: Item) -> None:
        if item.kind.works:
            self._counts.sent(self._indexes[site])
        self._send(site, item, Stamp(self.generation, self.step))
