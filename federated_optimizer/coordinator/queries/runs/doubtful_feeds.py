"""Runs that may have to read other runs than they do, until somebody has looked."""

from collections.abc import Iterable, Mapping


class DoubtfulFeeds:
    """Set of runs to be looked at: a look costs what has changed, not what runs.

    What a run reads follows from its own fragments and from the runs that have equal ones for
    others. So a change of a run leaves no doubt about runs that share nothing with it.

    Args:
        parts: Runs by the closure prints of all their fragments.
        given: Runs by the closure prints of the fragments that they have for others.
        prints: Closure prints by run and fragment.
    """

    def __init__(
        self,
        parts: Mapping[str, Mapping[str, str]],
        given: Mapping[str, Mapping[str, str]],
        prints: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._parts = parts
        self._given = given
        self._prints = prints
        self._runs: dict[str, None] = {}

    def note(self, run: str) -> None:
        """Note that a run has changed: its plan, or whether others may read it."""
        self._runs[run] = None
        for printed in set(self._prints.get(run, {}).values()):
            if run in self._given.get(printed, ()):
                self._runs.update(dict.fromkeys(self._parts[printed]))

    def add(self, runs: Iterable[str]) -> None:
        """Add runs, without those that share fragments with them."""
        self._runs.update(dict.fromkeys(runs))

    def take(self) -> tuple[str, ...]:
        """Return the runs, in any order, and empty the set."""
        taken = tuple(self._runs)
        self._runs.clear()
        return taken
