"""The rows that queries should have: by the reference evaluator, and by DuckDB."""

from collections import Counter
from collections.abc import Iterable

from benchmarks._sequences.bound_templates import BoundTemplate
from benchmarks._sequences.rows_of_sites import PlainTables, SiteRows
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate


class ExpectedRows:
    """Events and rows of the gateways that are there, and what queries make of them.

    A query is evaluated again only when the time or one of its sources has changed.

    Args:
        gateways: Their names.
        tables: DuckDB; what it held before is taken out.
    """

    def __init__(self, gateways: Iterable[str], tables: PlainTables) -> None:
        self.rows = {gateway: SiteRows() for gateway in gateways}
        self._events: dict[str, list[tuple[str, SourceEvent]]] = {name: [] for name in self.rows}
        self._database = Database()
        self._tables = tables
        self._changes: Counter[str] = Counter()
        self._lost = 0
        self._known: dict[str, tuple[object, Delta]] = {}

    def happen(self, gateway: str, source: str, event: SourceEvent) -> None:
        """Note a row that comes or is withdrawn."""
        self._events[gateway].append((source, event))
        self._database.append(source, [event])
        self._changes[source] += 1
        if event.delete:
            self.rows[gateway].withdraw(source, event.row, event.ts)
        else:
            self.rows[gateway].put(source, event.row, event.ts)

    def lose(self, gateway: str) -> None:
        """Note that the rows of a gateway are gone."""
        self.rows[gateway] = SiteRows()
        self._events[gateway] = []
        self._lost += 1
        self._database = Database()
        for events in self._events.values():
            for source, event in events:
                self._database.append(source, [event])

    def from_scratch(self, query: BoundTemplate, now: int) -> Delta:
        """Return the rows by the reference evaluator."""
        changes = tuple(self._changes[source] for source in sorted(query.sources))
        asked = now, self._lost, changes
        known = self._known.get(query.template.text)
        if known is None or known[0] != asked:
            known = asked, evaluate(query.bound.plan, self._database, now)
            self._known[query.template.text] = known
        return known[1]

    def fill_tables(self, now: int) -> None:
        """Let DuckDB have the rows of now."""
        self._tables.fill(self.rows, now)

    def by_duckdb(self, query: BoundTemplate) -> Counter[Row]:
        """Return the rows by DuckDB, over its tables as they were filled last."""
        return self._tables.rows(query.template.plain)
