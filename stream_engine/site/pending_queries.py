"""Which queries of a site have something to do, found without asking all of them."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING

from stream_engine.site.query_exchange import SourceChanges
from stream_engine.state.wakeups import Wakeups
from streamsql.algebra.operators import Scan
from streamsql.catalog.system import is_site_source

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


class QueryNews:
    """What has to be known of queries so that a step costs what the queries with news cost.

    A query has something to do when it was touched from outside (started, a batch for it, a lost
    sender, a snapshot to send), when a source that it reads has changed, when its time has come, or
    when the last step has left something. Whoever touches a query says so here.

    Work: O(queries with news, log queries) a step.

    Attributes:
        readers: The queries that read a scan, by scan.
        told: The sources that tell of sites and that a query here reads, in lower case.
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

    # --- queries that come and go ---------------------------------------------------------------

    def add(self, name: str, query: "InstalledQuery") -> None:
        """Take in a query that is about to make its first step."""
        self._places[name] = next(self._numbers)
        for scan in query.scans:
            self.readers.setdefault(scan, {})[name] = None
        self.touch(name)
        self._tell(query.scans)

    def drop(self, name: str, query: "InstalledQuery") -> None:
        """Forget a query."""
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

    # --- news -----------------------------------------------------------------------------------

    def touch(self, name: str) -> None:
        """Let the next step look at a query: something was done to it."""
        self._touched.add(name)
        self._changed(name)

    def touch_all(self) -> None:
        """Let the next step look at all queries."""
        for name in self._places:
            self.touch(name)

    def take(
        self, queries: "Mapping[str, InstalledQuery]", sources: SourceChanges, now: int
    ) -> list[str]:
        """Return the queries with something to do in this step, oldest first.

        Each of them has to be handed to `stepped` afterwards, unless it is dropped.
        """
        found, self._touched = self._touched, set()
        found.update(self._wakeups.take_due(now))
        for scan in sources.deltas:
            found.update(self.readers.get(scan, ()))
        names = [name for name in found if queries[name].has_work(sources, now)]
        if len(names) > 1:
            names.sort(key=self._places.__getitem__)
        for name in names:
            self._changed(name)
        return names

    def stepped(self, name: str, query: "InstalledQuery") -> None:
        """Take in what a query has left, and when its time comes."""
        self._wakeups.set(name, query.next_wakeup())
        if query.is_busy:
            self._touched.add(name)

    @property
    def earliest(self) -> int | None:
        """When time alone gives a query something to do, or None."""
        return self._wakeups.earliest

    # --- who has changed ------------------------------------------------------------------------

    @property
    def change(self) -> int:
        """The number of the last change of any query; grows."""
        return self._change

    def changed_since(self, change: int) -> list[str]:
        """Return the queries here to which anything has happened after a change.

        Work: O(those).
        """
        found = []
        for name in reversed(self._changes):
            if self._changes[name] <= change:
                break
            found.append(name)
        return found

    def _changed(self, name: str) -> None:
        self._change += 1
        self._changes.pop(name, None)
        self._changes[name] = self._change
