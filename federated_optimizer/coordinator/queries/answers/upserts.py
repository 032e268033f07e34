"""ENVELOPE UPSERT: the changes of a relation as the newest row per key, or that there is none."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from federated_optimizer.coordinator.contract.coordinator_model import Change
from streamsql.algebra.operators.orders import in_order
from streamsql.data.schema import Schema
from streamsql.data.types import Row, text_of
from streamsql.errors import FederationError


class KeyNotUniqueError(FederationError):
    """An answer has more than one row of a key by which somebody wants upserts."""

    code = "key_not_unique"


@dataclass(frozen=True, slots=True)
class Upsert:
    """The row that a key has now, or None when it has none any more; `ts` as in `Change`."""

    ts: int
    key: Row
    row: Row | None


class UpsertEnvelope:
    """One reader's picture of an answer, by key. State: the rows of the answer.

    While an answer moves, a key may have its new row before the old one is gone: such keys are
    held back. If one still has two rows when the answer has settled the key is not unique.

    Attributes:
        key: As given.
    """

    def __init__(self, schema: Schema, key: tuple[int, ...]) -> None:
        self._schema = schema
        self.key = key
        self._rows: dict[Row, Counter[Row]] = {}
        self._told: dict[Row, Row] = {}
        self._doubtful: set[Row] = set()

    @property
    def is_doubtful(self) -> bool:
        """Whether some key has more than one row at present."""
        return bool(self._doubtful)

    def take(self, changes: Iterable[Change], *, snapshot: bool = False) -> list[Upsert]:
        """Ingest changes and return what has become of their keys.

        Args:
            changes: Signed rows.
            snapshot: They are the whole answer; the upserts are all of it, too.
        """
        if snapshot:
            self._rows, self._told, self._doubtful = {}, {}, set()
        touched: dict[Row, int] = {}
        for change in changes:
            key = tuple(change.row[p] for p in self.key)
            rows = self._rows.setdefault(key, Counter())
            rows[change.row] += change.diff
            if not rows[change.row]:
                del rows[change.row]
            touched[key] = change.ts
        upserts = []
        for key, ts in touched.items():
            upserts += self._settle(key, ts)
        return upserts

    def check(self) -> None:
        """Refuse to go on; called when the answer has settled.

        Raises:
            KeyNotUniqueError: A key has more than one row; says which.
        """
        for key in self._doubtful:
            names = [self._schema.names[p] for p in self.key]
            shown = ", ".join(f"{n} = {_shown(v)}" for n, v in zip(names, key, strict=True))
            rows = in_order(tuple(self._rows[key].elements()), ())
            listed = " and ".join(f"({', '.join(map(_shown, row))})" for row in rows[:2])
            raise KeyNotUniqueError(
                f"the key ({', '.join(names)}) is not unique: {shown} has {len(rows)} rows, "
                f"{listed}",
                hint="add columns to the key, or GROUP BY it",
            )

    def _settle(self, key: Row, ts: int) -> list[Upsert]:
        rows = self._rows[key]
        present = +rows
        if sum(present.values()) > 1 or len(present) < len(rows):
            self._doubtful.add(key)
            return []
        self._doubtful.discard(key)
        row = next(iter(present), None)
        if row is None:
            del self._rows[key]
            return [Upsert(ts, key, None)] if self._told.pop(key, None) is not None else []
        if self._told.get(key) == row:
            return []
        self._told[key] = row
        return [Upsert(ts, key, row)]


def _shown(value: object) -> str:
    return "NULL" if value is None else text_of(value)  # type: ignore[arg-type]
