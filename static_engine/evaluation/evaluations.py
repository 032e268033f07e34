"""Results of plans, each computed once per version of its tables, whoever asks."""

import time
from dataclasses import dataclass

from static_engine.evaluation.static_executor import EngineLostError, StaticExecutor, tables_of
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta
from streamsql.errors import FederationError, InternalError

_RETRY_SECONDS = 60.0
_MOST_LOSSES = 2

Versions = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Outcome:
    """What became of the last evaluation of a plan."""

    versions: Versions
    at: float
    result: Delta | None = None
    error: FederationError | None = None
    losses: int = 0
    runs: int = 1
    seconds: float | None = None


class Evaluations:
    """A cache of results by plan; a failed evaluation keeps the last result.

    Args:
        store: The tables.
    """

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._outcomes: dict[Plan, _Outcome] = {}
        self.count = 0

    def versions(self, plan: Plan) -> Versions | None:
        """Return the versions of a plan's tables, or None when one has not been read."""
        found = [(name, self._store.find(name)) for name in sorted(tables_of(plan))]
        if any(table is None for _, table in found):
            return None
        return tuple((name, table.version) for name, table in found if table is not None)

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

    def result(self, plan: Plan) -> Delta | None:
        """Return the last result of a plan, or None before the first."""
        outcome = self._outcomes.get(plan)
        return outcome.result if outcome else None

    def error(self, plan: Plan) -> FederationError | None:
        """Return why the last evaluation of a plan failed, or None."""
        outcome = self._outcomes.get(plan)
        return outcome.error if outcome else None

    def runs(self, plan: Plan) -> int:
        """Return how often a plan was evaluated since somebody reads it."""
        outcome = self._outcomes.get(plan)
        return outcome.runs if outcome else 0

    def seconds(self, plan: Plan) -> float | None:
        """Return how long the last evaluation of a plan took; None if there is no such time."""
        outcome = self._outcomes.get(plan)
        return outcome.seconds if outcome else None

    def evaluate(self, plan: Plan, executor: StaticExecutor, now: float) -> None:
        """Evaluate a plan over the present versions.

        Raises:
            EngineLostError: The engine is gone. A plan that loses it twice is given up until its
                tables change, so that one query cannot keep the engine down.
        """
        versions = self.versions(plan) or ()
        before = self._outcomes.get(plan)
        outcome = _Outcome(versions, now, before.result if before else None)
        outcome.runs += before.runs if before else 0
        began = time.perf_counter()
        self.count += 1
        try:
            outcome.result = executor.evaluate(plan)
            outcome.seconds = time.perf_counter() - began
        except EngineLostError as error:
            outcome.losses = 1
            if before is not None and before.error is not None:
                outcome.losses += before.losses
            # Below the bound it is tried again at once, as soon as there is an engine.
            outcome.versions = versions if outcome.losses >= _MOST_LOSSES else ()
            outcome.error = error
            self._outcomes[plan] = outcome
            raise
        except FederationError as error:
            outcome.error = error
        except Exception as error:  # noqa: BLE001 - one query must not stop the others
            outcome.error = InternalError(f"evaluation failed: {type(error).__name__}: {error}")
        self._outcomes[plan] = outcome

    def keep(self, plans: set[Plan]) -> None:
        """Forget every plan but these."""
        for plan in self._outcomes.keys() - plans:
            del self._outcomes[plan]
