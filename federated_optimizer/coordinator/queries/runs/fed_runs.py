"""Which runs read rows of which others, and whose readers have changed."""

from collections.abc import Collection, Iterable, Mapping

from streamsql.wire.fragments import Feed


class FedRuns:
    """Index of runs by the runs whose rows they read.

    State: both directions, by fragment who reads it, and the runs that somebody has to look at
    because they, or what reads them, are no longer as they were.
    """

    def __init__(self) -> None:
        self._readers: dict[str, dict[str, None]] = {}
        self._feeders: dict[str, set[str]] = {}
        self._parts: dict[str, dict[str, dict[str, None]]] = {}  # readers by run and fragment
        self._read: dict[str, tuple[tuple[str, str], ...]] = {}
        self._changed: dict[str, None] = {}

    def readers(self, run: str) -> Collection[str]:
        """Return the runs that read rows of a run."""
        return self._readers.get(run, {}).keys()

    def feeders(self, run: str) -> Collection[str]:
        """Return the runs whose rows a run reads."""
        return self._feeders.get(run, set())

    def parts(self, run: str) -> Mapping[str, Collection[str]]:
        """Return the fragments of a run that others read, each with the runs that do."""
        return self._parts.get(run, {})

    def resting_on(self, run: str) -> set[str]:
        """Return a run, and those that read it or read one of these."""
        found, waiting = {run}, [run]
        while waiting:
            readers = self._readers.get(waiting.pop(), {}).keys() - found
            found |= readers
            waiting.extend(readers)
        return found

    def put(self, run: str, feeds: Iterable[Feed]) -> None:
        """Note whose rows a run reads now, and of which fragments."""
        parts = tuple((feed.run, feed.source) for feed in feeds)
        self._put_parts(run, parts)
        feeders = {feeder for feeder, _ in parts}
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

    def _put_parts(self, run: str, parts: tuple[tuple[str, str], ...]) -> None:
        for feeder, fragment in self._read.pop(run, ()):
            readers = self._parts[feeder][fragment]
            del readers[run]
            if not readers:
                del self._parts[feeder][fragment]
                if not self._parts[feeder]:
                    del self._parts[feeder]
        for feeder, fragment in dict.fromkeys(parts):
            self._parts.setdefault(feeder, {}).setdefault(fragment, {})[run] = None
        if parts:
            self._read[run] = tuple(dict.fromkeys(parts))

    def note(self, run: str) -> None:
        """Note that the queries of a run, or its state, are no longer as they were."""
        self._changed[run] = None

    def take_changed(self) -> Collection[str]:
        """Return the runs that have changed, or whose readers have, since this was last asked."""
        changed, self._changed = self._changed, {}
        return changed
