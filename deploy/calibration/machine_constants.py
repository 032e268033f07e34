"""All measurements of a calibration, within a time."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from deploy.calibration.batch_times import BatchTimes
from deploy.calibration.broker_times import broker_times
from deploy.calibration.bunch_times import BunchTimes
from deploy.calibration.executor_times import executor_times
from deploy.calibration.kept_memory import SIZES, kept_bytes
from deploy.calibration.operator_times import OperatorTimes
from deploy.calibration.rounds import LEAST, Measurement, measurement
from federated_optimizer.statistics.calibrated_constants import BEYOND, CONSTANTS, refused
from streamsql.errors import FederationError

SECONDS = 30.0
QUICK_SECONDS = 10.0
MOST_ROUNDS = 60
"""More do not make a median better."""
_RESERVED = 0.3
"""Share of the time for what comes after the operators."""

Report = Callable[[str, float], None]
"""Called with what is measured, and the share of the time that has passed."""


@dataclass(slots=True)
class Calibration:
    """Measured constants, and notes on those that could not be measured.

    Attributes:
        measured: By name of the constant.
        notes: A sentence each.
    """

    measured: dict[str, Measurement] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take(self, found: Measurement) -> None:
        """Take a measurement, unless what else the machine does has swallowed it.

        A first quartile that is no possible number, such as one below zero, is set to the least
        possible one, with a note: the rounds are too far apart to tell the low end.
        """
        default = CONSTANTS[found.name]
        least = default.low / BEYOND
        low = max(found.low, least)
        if found.value <= 0 or refused(found.name, "", found.value, low, found.high):
            self.notes.append(
                f"{found.name} is left out: {found.value:.3g} is no possible number; the machine "
                "does too much else to measure it now"
            )
        else:
            if low > found.low:
                self.notes.append(
                    f"{found.name}: the low end of the spread was not measured: the first "
                    f"quartile, {found.low:.3g}, is no possible number, {low:g} is in its place"
                )
            self.measured[found.name] = replace(found, low=low)


def calibrate(
    report: Report,
    *,
    quick: bool = False,
    operators_only: bool = False,
    hops: Callable[[], Sequence[float]] | None = None,
) -> Calibration:
    """Return the constants of this machine.

    Args:
        report: Hears how far it is.
        quick: Fewer rounds: a third of the time.
        operators_only: Only what may differ between gateways and base sites.
        hops: Gives milliseconds of messages over the broker of a running federation; None: a
            broker of our own is asked.
    """
    whole = QUICK_SECONDS if quick else SECONDS
    began, made = time.monotonic(), Calibration()

    def passed(words: str) -> float:
        share = (time.monotonic() - began) / whole
        report(words, min(share, 1.0))
        return share

    def stage(words: str, measure: Callable[[], Iterator[Measurement]]) -> None:
        passed(words)
        try:
            for found in measure():
                made.take(found)
        except (FederationError, OSError, ImportError) as error:
            said = error.message if isinstance(error, FederationError) else str(error)
            made.notes.append(f"{words}: not measured: {said}")

    if not operators_only:
        stage("memory of what operators keep", lambda: kept_bytes(SIZES[::3] if quick else SIZES))
    passed("operators and batches")
    operators, bunches, batches = OperatorTimes(), BunchTimes(), BatchTimes()
    for number in range(MOST_ROUNDS):
        operators.round()
        bunches.round()
        batches.round()
        enough = number > LEAST and passed("operators and batches") > 1 - _RESERVED
        if enough:
            break
    stage("operators and batches", operators.measurements)
    stage("rows that change at once", bunches.measurements)
    if operators_only:
        return made
    stage("batches", lambda: batches.measurements(operators.silent()))
    stage("a message over a broker", lambda: _broker(2 if quick else 8, hops))
    stage("the local executor of stored tables", lambda: executor_times(2 if quick else 5))
    report("done", 1.0)
    return made


def _broker(rounds: int, hops: Callable[[], Sequence[float]] | None) -> Iterator[Measurement]:
    for found in broker_times(rounds):
        if hops is None or found.name != "hop_milliseconds":
            yield found
    if hops is not None:
        yield measurement("hop_milliseconds", hops())
