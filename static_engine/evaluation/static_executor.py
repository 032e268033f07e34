"""The interface of executors, which evaluate plans over stored tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from static_engine.evaluation.bags import Bag
from streamsql.algebra.explain import describe
from streamsql.algebra.operators import (
    Plan,
    RemoteSource,
    Scan,
    SourceKind,
    Window,
    walk_plan,
)
from streamsql.data.delta import Delta
from streamsql.errors import DeploymentError, UnsupportedError

_STREAMING = Window | RemoteSource


class EngineLostError(DeploymentError):
    """The engine behind an executor is gone; it must be started again."""

    code = "engine_lost"


class EvaluationError(DeploymentError):
    """A plan could not be evaluated although it is legal."""

    code = "evaluation_failed"


class EvaluationCancelledError(EvaluationError):
    """An evaluation was ended because nobody reads its plan any more."""

    code = "evaluation_cancelled"


class StaticExecutor(Protocol):
    """Evaluates plans over the current versions of a `TableStore`, and over the past.

    Called by one thread at a time, never by the event loop's; `cancel` by any other.
    """

    @property
    def description(self) -> str:
        """What it is, for people."""
        ...

    @property
    def is_gone(self) -> bool:
        """True once its process has ended; nobody is asked, so any thread may look."""
        ...

    def evaluate(self, plan: Plan) -> Delta:
        """Return what `collect` does as Python objects; of plans with few rows."""
        ...

    def collect(self, plan: Plan) -> Bag:
        """Return the rows of a plan: positive weights, values of the schema's types.

        Raises:
            TableError: A table has not been read, or was declared again.
            LakeError: The past cannot be read.
            UnsupportedError: The plan needs the stream engine.
            EvaluationError: It failed, takes too long, or its result is too large.
            EvaluationCancelledError: `cancel` ended it.
            EngineLostError: The engine is gone.
        """
        ...

    def batches(self, plan: Plan, scratch: Path) -> Iterator[pa.RecordBatch]:
        """Evaluate a plan; return its rows in `arrow_schema`, which need not fit memory.

        Args:
            plan: As for `collect`, with columns.
            scratch: A folder for files meanwhile; whatever is in it goes.

        Raises:
            FederationError: As `collect`, before the first batch is taken.
        """
        ...

    def cancel(self, plan: Plan) -> None:
        """End the evaluation of a plan if it runs now and can be ended."""
        ...

    def stop(self) -> None:
        """Release what it holds; safe to call twice."""
        ...


def check_size(rows: int, limit: int, setting: str = "max_result_rows") -> None:
    """Refuse results that would not fit.

    Raises:
        EvaluationError: There are more rows than allowed.
    """
    if rows > limit:
        raise EvaluationError(
            f"the stored part of the query has more than {limit} rows",
            hint=f"filter or aggregate it, or raise {setting}",
        )


def refuse_streams(plan: Plan) -> None:
    """Check that a plan needs nothing but stored tables and the past.

    Args:
        plan: Of `with_kept_rows`: windows over the past are conditions on it.

    Raises:
        UnsupportedError: It does; the text names the operator.
    """
    for node in walk_plan(plan):
        stream = isinstance(node, Scan) and node.kind != SourceKind.TABLE
        if stream or isinstance(node, _STREAMING):
            raise UnsupportedError(
                f"the static engine has no streams: {describe(node)}",
                hint="this part belongs to the stream engine",
            )


def tables_of(plan: Plan) -> frozenset[str]:
    """Return the names of the tables a plan reads, as they are now."""
    scans = (node for node in walk_plan(plan) if isinstance(node, Scan))
    return frozenset(scan.source for scan in scans if scan.history is None)
