"""The alarm of stored tables that cannot be read, or have lost nearly all of their rows.

No query computes its rows: the static engine reports them in its state. What was raised stays so
while the static engine is away. One that has just restarted has not read its tables again yet: a
problem that it does not report is unknown for `DOUBT_MICROSECONDS`, not cleared.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from federated_optimizer.alarm_life_cycle import AlarmBook, AlarmRow, AlarmState
from federated_optimizer.coordinator.contract.coordinator_model import AlarmInfo, alarm_info
from federated_optimizer.coordinator.notices.followed_answers import DOUBT_MICROSECONDS
from federated_optimizer.coordinator.shared_parts import SharedParts
from host.clocks import monotonic_clock
from streamsql.catalog.read_gate import Gate, Read
from streamsql.catalog.system import TABLE_ALARM, TABLE_ALARM_SCHEMA
from streamsql.data.types import Row
from streamsql.wire.site_messages import TableProblem

_OPEN = (AlarmState.RAISED, AlarmState.ACKNOWLEDGED)


class TableAlarm:
    """Follows what the static engine reports.

    Args:
        shared: Of the coordinator.
        next_id: Gives a number that no row of any alarm ever had.
        known: What was known before a restart of the coordinator.
    """

    schema = TABLE_ALARM_SCHEMA

    def __init__(
        self, shared: SharedParts, next_id: Callable[[], int], known: Iterable[AlarmRow] = ()
    ) -> None:
        self.book = AlarmBook(TABLE_ALARM, next_id, known)
        self._shared = shared
        self._static = shared.settings.static
        self._epoch = -1  # of the static engine that was heard last
        self._since = 0  # when it was first heard, by `monotonic_clock`
        self._before: set[Row] = set()  # what was open then, and has not been reported since

    @property
    def now(self) -> int:
        """Wall-clock microseconds."""
        return self._shared.clock()

    def look(self) -> None:
        """Ingest what the static engine has reported."""
        membership, now = self._shared.membership, self.now
        state = membership.state(self._static)
        if state is None or not membership.is_in_touch(self._static):
            return
        opened = {entry.row for entry in self.book.rows if entry.state in _OPEN}
        if state.epoch != self._epoch:
            self._epoch, self._since, self._before = state.epoch, monotonic_clock(), opened
        relation = {_row(problem): 1 for problem in state.table_problems}
        self._before -= relation.keys()
        in_doubt = monotonic_clock() - self._since < DOUBT_MICROSECONDS
        self.book.follow(self._before, relation, now, in_doubt=in_doubt)
        self.book.meet(relation, now)
        if not in_doubt and self.book.has_unknown:
            self.book.decide(relation, now)

    def info(self) -> AlarmInfo | None:
        """Return the alarm as lists show it; None while it has no rows."""
        if not self.book.rows:
            return None
        return alarm_info(self.book, self.schema)


def shown_alarms(
    infos: Iterable[AlarmInfo], queries: Collection[str], gate: Gate
) -> tuple[AlarmInfo, ...]:
    """Return what somebody may see of alarms.

    Args:
        infos: All alarms.
        queries: Ids of the queries whose answers may be read.
        gate: Says which tables may not be read.
    """
    shown = (
        _shown(info, gate) if info.definition == TABLE_ALARM else info
        for info in infos
        if info.query in queries or info.definition == TABLE_ALARM
    )
    return tuple(info for info in shown if info is not None)


def _shown(info: AlarmInfo, gate: Gate) -> AlarmInfo | None:
    """Return the alarm with the rows of tables that may be read; None: there are none."""
    rows = tuple(row for row in info.rows if gate(Read(str(row.row[0]).lower())) is None)
    if not rows:
        return None
    raised = [row.raised for row in rows if row.raised is not None and row.cleared is None]
    return replace(
        info,
        rows=rows,
        raised=sum(row.state in _OPEN for row in rows),
        unknown=sum(row.state == AlarmState.UNKNOWN for row in rows),
        unacknowledged=sum(row.needs_acknowledgement for row in rows),
        since=min(raised, default=None),
    )


def _row(problem: TableProblem) -> Row:
    what = "shrunken" if problem.shrunken else "unreadable"
    return (problem.table, what, problem.served, problem.found, problem.detail)
