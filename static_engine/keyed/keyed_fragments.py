"""Answers of a fragment that looks keys up, kept by key: a new key costs one lookup."""

from collections.abc import Iterable
from dataclasses import dataclass

from streamsql.algebra.operators import Join, JoinKind, Plan, RemoteSource
from streamsql.data.delta import Delta, accumulate, difference, negated
from streamsql.data.types import Row
from streamsql.errors import UnsupportedError, WireError

MAX_KEYS = 200_000
LOOKUP_KEYS = 5_000
"""Keys of one lookup: another query waits no longer than that takes."""


@dataclass(frozen=True, slots=True)
class KeyJob:
    """Keys to look up.

    Attributes:
        version: Of the tables.
        everything: Whether these are all keys, whose answers replace what there was.
    """

    keys: tuple[Row, ...]
    version: object
    everything: bool


class KeyedFragment:
    """Answers by key: state as large as the fragment's result and the keys that have none.

    Args:
        plan: A join of keys with tables, as `federated_optimizer.cutting.keyed_joins` makes it.

    Raises:
        WireError: The plan is no such join.

    Attributes:
        join: The plan.
        keys: The leaf that stands for the keys.
        tables: The other side of the join.
        table_keys: Columns of the keys in a row of the tables.
        positions: Columns of the keys in a row of the result.
        rows: Of the result.
    """

    def __init__(self, plan: Plan) -> None:
        if not isinstance(plan, Join) or plan.residual is not None or not plan.keys:
            raise WireError("a fragment reads keys but is no join by keys")
        own = isinstance(plan.left, RemoteSource)
        keys, tables = (plan.left, plan.right) if own else (plan.right, plan.left)
        if not isinstance(keys, RemoteSource) or (not own and plan.kind != JoinKind.SEMI):
            raise WireError("a fragment reads keys but is no join by keys")
        self.join, self.keys, self.tables = plan, keys, tables
        pairs = {(a if own else b): (b if own else a) for a, b in plan.keys}
        if sorted(pairs) != list(range(len(keys.schema))) or len(pairs) != len(plan.keys):
            raise WireError("a fragment joins by some columns of its keys only")
        self.table_keys = tuple(pairs[number] for number in sorted(pairs))
        self.positions = tuple(sorted(pairs)) if own else self.table_keys
        self._version: object = None
        self.rows = 0
        self._answers: dict[Row, Delta] = {}
        self._waiting: dict[Row, None] = {}

    @property
    def count(self) -> int:
        """The number of keys."""
        return len(self._answers) + len(self._waiting)

    def change(self, here: Iterable[Row], gone: Iterable[Row]) -> Delta:
        """Note which keys are there; return the change of the result."""
        for key in here:
            if key not in self._answers:
                self._waiting[key] = None
        change: Delta = {}
        for key in gone:
            self._waiting.pop(key, None)
            accumulate(change, negated(self._answers.pop(key, {})))
        self.rows += sum(change.values())
        return change

    def is_due(self, version: object) -> bool:
        """Whether keys wait, or were answered over another version of the tables."""
        return bool(self._waiting) or (bool(self._answers) and self._version != version)

    def begin(self, version: object) -> KeyJob:
        """Return what to look up next.

        Raises:
            UnsupportedError: There are too many keys.
        """
        if self.count > MAX_KEYS:
            raise UnsupportedError(
                f"a stream has {self.count:,} distinct keys for a join with a stored table; the "
                f"most are {MAX_KEYS:,}",
                hint="make its window shorter, or filter the stream",
                code="limit_exceeded",
            )
        if self._answers and self._version != version:
            return KeyJob((*self._answers, *self._waiting), version, everything=True)
        return KeyJob(tuple(self._waiting)[:LOOKUP_KEYS], version, everything=False)

    def finish(self, job: KeyJob, rows: Delta) -> Delta:
        """Take the rows found for a job's keys; return the change of the result."""
        self._version = job.version
        found: dict[Row, Delta] = {}
        for row, weight in rows.items():
            found.setdefault(tuple([row[p] for p in self.positions]), {})[row] = weight
        change: Delta = {}
        for key in job.keys:
            known = self._answers.get(key)
            if known is None and key not in self._waiting:
                continue  # it has gone meanwhile
            self._waiting.pop(key, None)
            answer = self._answers[key] = found.get(key, {})
            accumulate(change, difference(answer, known or {}))
        self.rows += sum(change.values())
        return change
