"""EXPLAIN of a run: which queries read it, or why only one does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from federated_optimizer.coordinator.queries.planner import Planned
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.shared_runs import SharedRuns

MAX_NAMES = 20


@dataclass(frozen=True, slots=True)
class SharingNote:
    """The other queries that sites compute in one run with a query.

    Attributes:
        alone: Why there can be none, in words; else empty.
        names: Of those that whoever asks may see.
        hidden: Number of the others.
    """

    alone: str = ""
    names: tuple[str, ...] = ()
    hidden: int = 0

    def __str__(self) -> str:
        """The note as a line of EXPLAIN."""
        if self.alone:
            return f"Not shared with equal queries: {self.alone}"
        count = len(self.names) + self.hidden
        if not count:
            return "Shared with equal queries; no other one runs"
        what = "query" if count == 1 else "queries"
        names = ", ".join(self.names[:MAX_NAMES])
        more = ", …" if len(self.names) > MAX_NAMES else ""
        if not self.hidden:
            return f"Shared with {count} equal {what}: {names}{more}"
        hidden = f"Shared with {count} equal {what}, {self.hidden} of which you may not see"
        return f"{hidden}: {names}{more}" if names else hidden

    def data(self) -> dict[str, object]:
        """Return the note as plain data."""
        return {"alone": self.alone, "queries": list(self.names), "hidden": self.hidden}


class Sharing:
    """Who shares what, as somebody may see it.

    Args:
        runs: All that sites run.
        seen: The queries that whoever asks may see.
    """

    def __init__(self, runs: SharedRuns, seen: Iterable[RunningQuery]) -> None:
        self._runs = runs
        self._seen = frozenset(query.id for query in seen)

    def of_plan(self, planned: Planned) -> SharingNote:
        """Return the note on a query that would be started."""
        alike = self._runs.alike(planned)
        return self._note(planned.alone, () if alike is None else self._runs.live(alike.run))

    def of_running(self, query: RunningQuery) -> SharingNote:
        """Return the note on a query that runs."""
        return self._note(query.alone, self._runs.sharers(query))

    def _note(self, alone: str, others: Sequence[RunningQuery]) -> SharingNote:
        names = tuple(query.name for query in others if query.id in self._seen)
        return SharingNote(alone, names, len(others) - len(names))
