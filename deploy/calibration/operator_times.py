"""Processor time of a step, and of a changed row in each kind of operator.

A reading a step, as gateways have it: the fixed part of a step is then most of it. Workloads take
turns, round by round. What an operator takes is what its query takes beyond a query without it.
"""

from collections.abc import Iterator
from functools import partial
from statistics import fmean

from deploy.calibration.engine_runs import EngineRun
from deploy.calibration.rounds import (
    Measurement,
    beyond,
    measurement,
    processor_time,
    without_collections,
)
from deploy.calibration.workloads import (
    GROUPS,
    JOIN,
    LOG,
    NOTHING,
    PASSED,
    PLAIN,
    RECURSION,
    SILENT,
    WINDOW,
    Source,
    Workload,
)

STEPS = 150
"""Of a workload in one round."""
COMES_AND_GOES = 2
"""Changes of a window that a reading causes."""


class OperatorTimes:
    """Microseconds of a step by workload, round by round.

    State: of each workload an engine, and the rounds so far.
    """

    def __init__(self) -> None:
        workloads = (
            *NOTHING.values(),
            *(SILENT, PLAIN, *PASSED.values()),
            *(LOG, WINDOW, JOIN, *GROUPS.values(), RECURSION),
        )
        self._runs = {workload: EngineRun(workload) for workload in workloads}
        self._rounds: dict[Workload, list[float]] = {workload: [] for workload in workloads}
        self._steps = 0

    def round(self) -> None:
        """Let each workload take so many steps."""
        with without_collections():
            for workload, run in self._runs.items():
                steps = run.next(STEPS)
                took = processor_time(partial(run.take, steps))
                self._rounds[workload].append(took / STEPS)
        self._steps += STEPS

    def measurements(self) -> Iterator[Measurement]:
        """Yield the constants of operators, of the rounds behind the first."""
        silent, plain = self._beyond(SILENT, NOTHING[Source.SENSOR]), self._beyond(PLAIN, SILENT)
        yield measurement("step_microseconds", silent)
        passed = [self._beyond(workload, PLAIN) for workload in PASSED.values()]
        yield measurement("filter_microseconds", _means(passed))
        windows = self._beyond(WINDOW, LOG)
        yield measurement("window_microseconds", [each / COMES_AND_GOES for each in windows])
        yield measurement("join_microseconds", self._beyond(JOIN, PLAIN))
        step, batch = fmean(sorted(silent)[1:-1]), fmean(sorted(plain)[1:-1])
        groups = [self._alone(workload, step, batch) for workload in GROUPS.values()]
        yield measurement("group_microseconds", _means(groups))
        rows = 1 + self._runs[RECURSION].changes / self._steps
        recursion = self._alone(RECURSION, step, batch)
        yield measurement("recursion_microseconds", [each / rows for each in recursion])

    def silent(self) -> list[float]:
        """Return by round what a step takes that passes nothing on, with all of its reading."""
        return self._rounds[SILENT][1:]

    def _beyond(self, workload: Workload, base: Workload) -> list[float]:
        return beyond(self._rounds[workload][1:], self._rounds[base][1:])

    def _alone(self, workload: Workload, step: float, batch: float) -> list[float]:
        """Return what an operator takes without the step and the batches that it makes."""
        sent = self._runs[workload].batches / self._steps
        rounds = self._beyond(workload, NOTHING[workload.source])
        return [each - step - batch * sent for each in rounds]


def _means(rounds: list[list[float]]) -> list[float]:
    return [fmean(each) for each in zip(*rounds, strict=True)]
