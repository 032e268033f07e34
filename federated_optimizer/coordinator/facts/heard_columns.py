"""Facts about columns, from what gateways count, and of stored tables the static engine."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from federated_optimizer.statistics.fact import HOUR, Origin, Quantity, Subject, SubjectKind
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.merged_columns import Part, column_facts
from streamsql.catalog.definitions import SourceDefinition
from streamsql.wire.site_messages import MOST_COLUMNS, SourceCount

MAX_BYTES = 32 * 2**20
"""About how many bytes all counts that are kept take."""
_COLUMN_BYTES = 500
"""Of a column without its hashes and deciles, as an object with its name."""
_NUMBER_BYTES = 32

MAX_AT_ONCE = 20
"""Sources of which a look makes facts: those of a thousand gateways take a tenth of a second."""

AWAITED_MICROSECONDS = HOUR // 4
"""After a start: each gateway tells its counts within ten minutes."""


class HeardColumns:
    """Fills the facts with counts of columns.

    State: the last counts of each source and site, as numbers over all gateways need all of them;
    the sites that had a source before we started and have not told their counts of it since.

    Args:
        facts: Surer ones stay, such as those of all gateways when only one has been heard.
        definition: Of a source, as the catalog has it now.
    """

    def __init__(self, facts: Facts, definition: Callable[[str], SourceDefinition | None]) -> None:
        self._facts, self._definition = facts, definition
        self._counts: dict[str, dict[str, SourceCount]] = {}
        self._bytes = 0
        self._news: dict[str, None] = {}
        self._awaited = defaultdict[str, set[str]](set)
        for fact in facts.of_kind(SubjectKind.SOURCE):
            if fact.quantity == Quantity.SENSORS and fact.value:
                self._awaited[fact.subject.name].add(fact.subject.part)
        self._began: int | None = None

    def hear(self, site: str, told: Mapping[str, SourceCount]) -> None:
        """Take the counts of a site; what the catalog does not have is not taken."""
        for source, count in told.items():
            if not count.rows or self._definition(source) is None:
                continue
            counts = self._counts.setdefault(source.lower(), {})
            more = _bytes_of(count) - _bytes_of(counts.get(site))
            if self._bytes + more <= MAX_BYTES:
                counts[site] = count
                self._bytes += more
                self._news[source.lower()] = None
                self._awaited[source.lower()].discard(site)

    def look(self, now: int) -> None:
        """Make facts of some of the counts that are new: of the sources that wait longest.

        After a start the facts of before hold until all sites of a source have told theirs: those
        of one site alone would change plans, and those of the next one would change them back.
        """
        self._began = now if self._began is None else self._began
        if now - self._began >= AWAITED_MICROSECONDS:
            self._awaited.clear()
        ready = [source for source in self._news if not self._awaited.get(source)]
        for source in ready[:MAX_AT_ONCE]:
            del self._news[source]
            definition, counts = self._definition(source), self._counts.get(source)
            if definition is not None and counts:
                self._put(definition, counts, now)

    def forget(self, site: str) -> None:
        """Discard a site that was removed permanently."""
        for counts in self._counts.values():
            self._bytes -= _bytes_of(counts.pop(site, None))
        for sites in self._awaited.values():
            sites.discard(site)

    def forget_source(self, source: str) -> None:
        """Discard a source, in lower case, that is gone or was defined anew."""
        self._bytes -= sum(map(_bytes_of, self._counts.pop(source, {}).values()))
        self._awaited.pop(source, None)

    def _put(
        self, definition: SourceDefinition, counts: Mapping[str, SourceCount], now: int
    ) -> None:
        for name in definition.schema.names[:MOST_COLUMNS]:
            parts: list[Part] = [
                (count, count.columns[name]) for count in counts.values() if name in count.columns
            ]
            if parts:
                subject = Subject(SubjectKind.COLUMN, definition.name.lower(), name.lower())
                if definition.is_table:
                    # The last one is that of all rows, also if there are fewer of them now.
                    for fact in column_facts(subject, parts, now, Origin.TABLES):
                        self._facts.put(fact)
                    continue
                for fact in column_facts(subject, parts, now):
                    self._facts.learn(fact)


def _bytes_of(count: SourceCount | None) -> int:
    """Return about how many bytes counts take."""
    columns = () if count is None else count.columns.values()
    return sum(
        _COLUMN_BYTES + len(column.hashes) + _NUMBER_BYTES * len(column.deciles)
        for column in columns
    )
