"""Results of plans, each computed once per version of its tables, whoever asks."""

import threading
import time
from collections.abc import Set
from dataclasses import dataclass

from static_engine.evaluation.bags import Bag
from static_engine.evaluation.engine_times import EngineTimes
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import (
    EngineLostError,
    EvaluationCancelledError,
    StaticExecutor,
    tables_of,
)
from static_engine.history.past_readings import PastReadings
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan
from streamsql.errors import FederationError, InternalError
from streamsql.wire.site_messages import ENGINES

_RETRY_SECONDS = 60.0
_MOST_LOSSES = 2

Versions = tuple[tuple[str, int | str], ...]


@dataclass(slots=True)
class Outcome:
    """Outcome of the last evaluation of a plan.

    Attributes:
        versions: Of the tables it read.
        at: When it began, monotonic seconds.
        result: Of the last evaluation that succeeded.
        error: Why the last one failed.
        losses: Evaluations in a row that have lost the engine.
        runs: Evaluations since somebody reads the plan.
        seconds: How long the last evaluation took; None if it failed.
    """

    versions: Versions
    at: float
    result: Bag | None = None
    error: FederationError | None = None
    losses: int = 0
    runs: int = 0
    seconds: float | None = None


_NOTHING_YET = Outcome((), float("-inf"))


class Evaluations:
    """A cache of results by plan; a failed evaluation keeps the last result.

    Args:
        store: The tables.
        past: What is kept of the past.
    """

    def __init__(self, store: TableStore, past: PastReadings) -> None:
        self._store = store
        self._past = past
        self._outcomes: dict[Plan, Outcome] = {}
        self._narrowed: dict[Plan, Plan] = {}
        self._running: tuple[Plan, Plan, StaticExecutor] | None = None
        self.count = 0
        self._times = {engine: EngineTimes() for engine in ENGINES}

    @property
    def figures(self) -> dict[str, int]:
        """Times of the engines, as counters of the state."""
        parts = (times.figures(engine) for engine, times in self._times.items())
        return {name: value for part in parts for name, value in part.items()}

    def narrow(self, plans: dict[Plan, Plan]) -> None:
        """Evaluate plans over parts of their tables, as the plans beside them say."""
        self._narrowed = plans

    def narrowed(self, plan: Plan) -> Plan:
        """Return the plan that is evaluated in place of one."""
        return self._narrowed.get(plan, plan)

    def versions(self, plan: Plan) -> Versions | None:
        """Return the versions of what a plan reads, or None when some of it cannot be read."""
        past = self._past.versions(plan)
        if past is None:
            return None
        tables = tables_of(self.narrowed(plan))
        found = [(name, self._store.find(name)) for name in sorted(tables)]
        if any(table is None for _, table in found):
            return None
        return (*((name, table.version) for name, table in found if table is not None), *past)

    def is_due(self, plan: Plan, now: float) -> bool:
        """Whether a plan should be evaluated: it can be, and was not over these versions."""
        versions = self.versions(plan)
        if versions is None:
            return False
        outcome = self._outcomes.get(plan)
        if outcome is None or outcome.versions != versions:
            return True
        failed = outcome.error is not None and outcome.losses < _MOST_LOSSES
        return failed and now - outcome.at >= _RETRY_SECONDS

    def outcome(self, plan: Plan) -> Outcome:
        """Return the outcome of a plan's last evaluation; an empty one before the first."""
        return self._outcomes.get(plan, _NOTHING_YET)

    def evaluate(self, plan: Plan, executor: StaticExecutor, now: float) -> None:
        """Evaluate a plan over the present versions.

        Raises:
            EngineLostError: The engine is gone. A plan that loses it twice is given up until its
                tables change, so that one query cannot keep the engine down.
        """
        self._running = plan, self.narrowed(plan), executor
        try:
            self._evaluate(plan, executor, now)
        finally:
            self._running = None

    def cancel_unneeded(self, plans: Set[Plan]) -> None:
        """End the evaluation of a plan that is none of these, in the background."""
        running = self._running
        if running is not None and running[0] not in plans:
            _plan, evaluated, executor = running
            threading.Thread(target=executor.cancel, args=(evaluated,), daemon=True).start()

    def _evaluate(self, plan: Plan, executor: StaticExecutor, now: float) -> None:
        versions = self.versions(plan) or ()
        before = self.outcome(plan)
        outcome = Outcome(versions, now, before.result, runs=before.runs + 1)
        began = time.perf_counter()
        self.count += 1
        try:
            outcome.result = executor.collect(self.narrowed(plan))
            outcome.seconds = time.perf_counter() - began
            self._time(plan, executor, outcome.seconds)
        except EngineLostError as error:
            outcome.losses = 1 + (before.losses if before.error is not None else 0)
            # Below the bound it is tried again at once, as soon as there is an engine.
            outcome.versions = versions if outcome.losses >= _MOST_LOSSES else ()
            outcome.error = error
            self._outcomes[plan] = outcome
            raise
        except EvaluationCancelledError:
            return  # as if it had not begun: whoever reads the plan meanwhile has it evaluated
        except FederationError as error:
            outcome.error = error
        except Exception as error:  # noqa: BLE001 - one query must not stop the others
            outcome.error = InternalError(f"evaluation failed: {type(error).__name__}: {error}")
        self._outcomes[plan] = outcome

    def _time(self, plan: Plan, executor: StaticExecutor, seconds: float) -> None:
        """Count the time of an evaluation over tables: nobody has counted the rows of the past."""
        tables = [self._store.find(name) for name in tables_of(self.narrowed(plan))]
        if tables and not self._past.versions(plan):
            rows = sum(table.row_count for table in tables if table is not None)
            engine = "local" if isinstance(executor, LocalExecutor) else "spark"
            self._times[engine].add(rows, seconds)

    def keep(self, plans: set[Plan]) -> None:
        """Discard every plan but these."""
        for plan in self._outcomes.keys() - plans:
            del self._outcomes[plan]
