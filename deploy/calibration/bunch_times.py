"""Processor time of further rows that change at once: in operators, and where readers are found.

Workloads take steps of few and of many readings, in turns; what a step of many takes beyond one of
few is that of further rows.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from statistics import fmean, median

from deploy.calibration.engine_runs import EngineRun
from deploy.calibration.rounds import (
    Measurement,
    beyond,
    measurement,
    processor_time,
    without_collections,
)
from deploy.calibration.workloads import GROUPS, JOIN, PASSED, PLAIN, SILENT, Workload
from stream_engine.exchange.filter_bank import FilterBank
from streamsql.algebra.expressions import Column
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType
from streamsql.wire.bundles.reader_conditions import OneOf, RowCondition, Within, term_of

FEW, MANY = 10, 100
"""Readings of a step, each of another device."""
STEPS: Mapping[int, int] = {FEW: 8, MANY: 2}
"""Of each size in a round."""
ROWS = 1_000
"""Among which readers are looked up; none needs one of them."""
_NUMBER = term_of(Column(1, "number", DataType.INTEGER))
CONDITIONS: tuple[RowCondition, ...] = (
    OneOf(_NUMBER, frozenset((-1,))),
    Within(_NUMBER, low=(ROWS, 0)),
    Within(_NUMBER, low=(ROWS, 0), high=(2 * ROWS, 0)),
)


class BunchTimes:
    """Microseconds of a step by workload and number of readings, round by round.

    State: of each workload an engine, and the rounds so far.
    """

    def __init__(self) -> None:
        workloads = (SILENT, PLAIN, *PASSED.values(), JOIN, *GROUPS.values())
        self._runs = {workload: EngineRun(workload) for workload in workloads}
        self._rounds: dict[tuple[Workload, int], list[float]] = {
            (workload, size): [] for workload in workloads for size in STEPS
        }
        self._sent = dict.fromkeys(self._rounds, 0.0)  # rows of a step, in the last round
        self._banks = [FilterBank() for _ in CONDITIONS]
        for bank, condition in zip(self._banks, CONDITIONS, strict=True):
            bank.add("reader", condition)
        self._delta: Delta = {(f"m-{number}", number): 1 for number in range(ROWS)}
        self._lookups: list[float] = []

    def round(self) -> None:
        """Let each workload take steps of few readings, and of many; look readers up."""
        with without_collections():
            for (workload, size), rounds in self._rounds.items():
                run = self._runs[workload]
                steps = [_distinct(run, size) for _ in range(STEPS[size])]
                before = run.changes
                took = processor_time(partial(run.take, steps))
                rounds.append(took / len(steps))
                self._sent[workload, size] = (run.changes - before) / len(steps)
            took = sum(processor_time(partial(bank.parts, self._delta)) for bank in self._banks)
            self._lookups.append(took / (len(self._banks) * ROWS))

    def measurements(self) -> Iterator[Measurement]:
        """Yield the constants of further rows, of the rounds behind the first."""
        passed = [self._further(workload) for workload in PASSED.values()]
        yield measurement("filter_row_microseconds", _means(passed))
        yield measurement("join_row_microseconds", self._further(JOIN))
        groups = [self._further(workload) for workload in GROUPS.values()]
        yield measurement("group_row_microseconds", _means(groups))
        yield measurement("lookup_microseconds", self._lookups[1:])

    def _further(self, workload: Workload) -> list[float]:
        """Return by round what a further row takes in the operator of a workload."""
        few, many = (self._operator(workload, size) for size in (FEW, MANY))
        return [each / (MANY - FEW) for each in beyond(many, few)]

    def _operator(self, workload: Workload, size: int) -> list[float]:
        """Return by round what a step takes beyond reading, and beyond sending as many rows."""
        read, sent = (median(self._rounds[each, size][1:]) for each in (SILENT, PLAIN))
        share = self._sent[workload, size] / self._sent[PLAIN, size]
        without = read + share * (sent - read)
        return [each - without for each in self._rounds[workload, size][1:]]


def _distinct(run: EngineRun, count: int) -> list[SourceEvent]:
    """Return the next readings of so many devices."""
    found: dict[object, SourceEvent] = {}
    while len(found) < count:
        ((event,),) = run.next(1)
        found.setdefault(event.row[0], event)
    return list(found.values())


def _means(rounds: list[list[float]]) -> list[float]:
    return [fmean(each) for each in zip(*rounds, strict=True)]
