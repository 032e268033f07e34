"""Which runs read rows of which others, and whose readers have changed."""

from collections.abc import Collection


class FedRuns:
    """Index of runs by the runs whose rows they read.

    State: both directions, and the runs that somebody has to look at because they, or what reads
    them, are no longer as they were.
    """

    def __init__(self) -> None:
        self._readers: dict[str, dict[str, None]] = {}
        self._feeders: dict[str, set[str]] = {}
        self._changed: dict[str, None] = {}

    def readers(self, run: str) -> Collection[str]:
        """Return the runs that read rows of a run."""
        return self._readers.get(run, {}).keys()

    def feeders(self, run: str) -> Collection[str]:
        """Return the runs whose rows a run reads."""
        return self._feeders.get(run, set())

    def resting_on(self, run: str) -> set[str]:
        """Return a run, and those that read it or read one of these."""
        found, waiting = {run}, [run]
        while waiting:
            readers = self._readers.get(waiting.pop(), {}).keys() - found
            found |= readers
            waiting.extend(readers)
        return found

    def put(self, run: str, feeders: set[str]) -> None:
        """Note whose rows a run reads now: of which fragments may have changed, too."""
        before = self._feeders.pop(run, set())
        for feeder in before - feeders:
            del self._readers[feeder][run]
            if not self._readers[feeder]:
                del self._readers[feeder]
        for feeder in feeders:
            self._readers.setdefault(feeder, {})[run] = None
        if feeders:
            self._feeders[run] = feeders
        self._changed.update(dict.fromkeys((run, *before, *feeders)))

    def note(self, run: str) -> None:
        """Note that the queries of a run, or its state, are no longer as they were."""
        self._changed[run] = None

    def take_changed(self) -> Collection[str]:
        """Return the runs that have changed, or whose readers have, since this was last asked."""
        changed, self._changed = self._changed, {}
        return changed
