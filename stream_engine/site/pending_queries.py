"""The queries of a site that have pending work, found without asking all of them."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING

from stream_engine.state.source_relation import SourceChanges
from stream_engine.state.wakeups import Wakeups
from streamsql.algebra.operators import Scan
from streamsql.catalog.system import is_site_source

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


class PendingQueries:
    """Index of the queries that have pending work: a step costs O(those), not O(all queries).

    Work is pending when a query was touched from outside (started, a batch for it, a lost sender, a
    snapshot to send), when a source that it reads has changed, when its time has come, or when the
    last step has left some. Every caller that touches a query reports it here.

    Work: O(queries with pending work, log queries) a step.

    Attributes:
        readers: The queries that read a scan, by scan.
        told: The sources about sites that a query here reads, in lower case.
    """

    def __init__(self) -> None:
        self.readers: dict[Scan, dict[str, None]] = {}
        self.told: frozenset[str] = frozenset()
        self._places: dict[str, int] = {}
        self._numbers = count()
        self._touched: set[str] = set()
        self._wakeups: Wakeups[str] = Wakeups()
        self._changes: dict[str, int] = {}  # the one that has changed last comes last
        self._change = 0

    def add(self, name: str, query: "InstalledQuery") -> None:
        """Add a query that is about to make its first step, or that goes on as another bundle."""
        self._places[name] = next(self._numbers)
        self._wakeups.set(name, query.next_wakeup())
        for scan in query.scans:
            self.readers.setdefault(scan, {})[name] = None
        self.touch(name)
        self._tell(query.scans)

    def drop(self, name: str, query: "InstalledQuery") -> None:
        """Remove a query."""
        del self._places[name]
        for scan in query.scans:
            readers = self.readers[scan]
            del readers[name]
            if not readers:
                del self.readers[scan]
        self._touched.discard(name)
        self._wakeups.set(name, None)
        self._changes.pop(name, None)
        self._tell(query.scans)

    def _tell(self, changed: Iterable[Scan]) -> None:
        if any(is_site_source(scan.source) for scan in changed):
            read = {scan.source for scan in self.readers}
            self.told = frozenset(name.lower() for name in read if is_site_source(name))

    def touch(self, name: str) -> None:
        """Let the next step check a query that was changed from outside."""
        self._touched.add(name)
        self.changed(name)

    def touch_all(self) -> None:
        """Let the next step check all queries."""
        for name in self._places:
            self.touch(name)

    def take(
        self, queries: "Mapping[str, InstalledQuery]", sources: SourceChanges, now: int
    ) -> list[str]:
        """Return the queries with pending work, oldest first; hand each to `stepped` or `drop`."""
        found, self._touched = self._touched, set()
        found.update(self._wakeups.take_due(now))
        for scan in sources.deltas:
            found.update(self.readers.get(scan, ()))
        names = [name for name in found if queries[name].has_work(sources, now)]
        if len(names) > 1:
            names.sort(key=self._places.__getitem__)
        for name in names:
            self.changed(name)
        return names

    def place(self, name: str) -> int:
        """Return a number that is greater than those of all queries that were there before."""
        return self._places[name]

    def stepped(self, name: str, query: "InstalledQuery") -> None:
        """Note whether a query has work left, and when its time comes."""
        self._wakeups.set(name, query.next_wakeup())
        if query.is_busy:
            self._touched.add(name)

    @property
    def earliest(self) -> int | None:
        """When time alone gives a query work, or None."""
        return self._wakeups.earliest

    @property
    def change(self) -> int:
        """The number of the last change of any query; grows."""
        return self._change

    def changed_since(self, change: int) -> list[str]:
        """Return the queries that have changed after a change; O(those)."""
        found = []
        for name in reversed(self._changes):
            if self._changes[name] <= change:
                break
            found.append(name)
        return found

    def changed(self, name: str) -> None:
        """Note that the counts of a query's channels may have changed."""
        self._change += 1
        self._changes.pop(name, None)
        self._changes[name] = self._change
