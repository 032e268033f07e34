"""What a restart has lost for good: which queries miss which stretch of time, and until when."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from stream_engine.snapshot.recorded_site import RecordedSite, Restored
from streamsql.wire.messages import QueryProblem

CODE = "state_lost"
_HINT = "stop the query and start it again to begin anew"


@dataclass(frozen=True, slots=True)
class Loss:
    """A stretch of time that is missing.

    Attributes:
        since: Microseconds, or None: from the beginning.
        until: Microseconds.
        reason: In words.
    """

    since: int | None
    until: int
    reason: str

    def __str__(self) -> str:
        """Return a sentence."""
        since = "the beginning" if self.since is None else _shown(self.since)
        return (
            f"what came in from {since} to {_shown(self.until)} is missing in the answer: "
            f"{self.reason}"
        )


@dataclass(slots=True)
class StateLosses:
    """The losses of one restart.

    Only queries with a history here miss something for longer than it takes to be told again: all
    others are rebuilt from what sources hold and other sites send.

    Attributes:
        general: Of every query that ran before the restart, or None.
    """

    general: Loss | None = None
    _own: dict[str, Loss] = field(default_factory=dict)
    _found: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)

    @staticmethod
    def of(restored: Restored, now: int, cut: str, damage: str) -> "StateLosses":
        """Return what was lost.

        Args:
            restored: What could be restored.
            now: The time of the restart.
            cut: Why the journal's end is missing, or empty.
            damage: Why the snapshot could not be used, or empty.
        """
        losses = StateLosses()
        if damage:
            losses.general = Loss(None, now, damage)
        elif cut:
            losses.general = Loss(restored.now, now, cut)
        for query, (since, reason) in restored.unsaved.items():
            losses._own[query] = Loss(since, now, reason)
        return losses

    def find(self, engine: RecordedSite) -> None:
        """Note the queries that run: call it while what ran before the restart is installed."""
        if self.general is not None:
            self._found.update(engine.with_history())

    def missed(self, engine: RecordedSite, loss: Loss) -> None:
        """Add a loss of the queries that read sources here and miss nothing worse."""
        for query in engine.readers():
            if query not in self._found:
                self._own.setdefault(query, loss)

    def due(self, engine: RecordedSite, now: int) -> Iterator[tuple[str, QueryProblem | None]]:
        """Yield the problem of each query that misses something, None once when it is over.

        It is over when the windows of the query have passed the time that is missing.
        """
        for query in engine.queries:
            loss = self._own.get(query)
            if loss is None and query in self._found:
                loss = self.general
            if loss is None:
                continue
            memory = engine.memory_of(query)
            if memory is not None and now >= loss.until + memory:
                if query in self._said:
                    self._said.discard(query)
                    yield query, None
                continue
            self._said.add(query)
            yield query, QueryProblem(CODE, str(loss), _HINT, now, engine.site)


def _shown(microseconds: int) -> str:
    """Return a time as people read it, UTC."""
    moment = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")
