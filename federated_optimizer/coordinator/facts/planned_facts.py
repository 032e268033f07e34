"""Facts as plans are made with them: of sources, tables and recursions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from typing_extensions import override

from federated_optimizer.statistics.default_facts import COMPARISON, DATABASE_ROWS, EQUALITY
from federated_optimizer.statistics.fact import (
    DECILES,
    HALF_LIVES,
    Fact,
    Quantity,
    Subject,
    SubjectKind,
)
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.merged_columns import SAMPLED
from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    Passing,
    Placed,
    RecursionFacts,
    SourceFacts,
)
from streamsql.algebra.operators import Fixpoint, RemoteSource, Scan, walk_plan
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import TableSource
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle, RecursionPlan

_FADED = 1 / 16
"""Of the confidence in a rate: after four hours."""


def source_facts(
    catalog: Catalog, facts: Facts, compared: Mapping[str, frozenset[str]]
) -> dict[str, SourceFacts]:
    """Return what is known of the sources of a catalog, by name in lower case.

    Args:
        catalog: The sources.
        facts: All there are.
        compared: Columns that databases compare as we do, by table in lower case.
    """
    found: dict[str, SourceFacts] = {}
    for source in catalog.sources:
        known = _stream_facts(source, facts)
        if known is not None:
            found[source.name.lower()] = known
    for table in catalog.tables:
        name = table.name.lower()
        fact = facts.find(Subject(SubjectKind.TABLE, name), Quantity.ROWS)
        rows = None if fact is None else fact.value
        if rows is None and (table.option("source") or "").lower() == TableSource.SQL:
            # Keys do no harm to a small one.
            rows = DATABASE_ROWS.value
        if rows is not None:
            found[name] = SourceFacts(rows=rows, compared=compared.get(name, frozenset()))
    return found


def _stream_facts(source: SourceDefinition, facts: Facts) -> SourceFacts | None:
    """Return what is known of a source of devices, over all gateways; None: nothing."""
    name = source.name.lower()

    def total(quantity: Quantity) -> float | None:
        parts = [f.value for f in _present(facts.about(SubjectKind.SOURCE, name, quantity))]
        return sum(parts) if parts else None

    changes, inserts = total(Quantity.CHANGES), total(Quantity.INSERTS)
    if source.key:
        keyed = total(Quantity.SENSORS) or total(Quantity.ROWS)
        return SourceFacts(keyed or None, changes) if keyed or changes is not None else None
    if not inserts:
        return None
    # What comes goes again: after the time to live, or, where there is none, out of a window.
    rows = None if source.ttl is None else inserts * source.ttl / MICROSECONDS
    return SourceFacts(rows, 2 * inserts)


def _present(parts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield the facts about parts of a source, without rates that faded while others were measured.

    Their gateways are away. Counts hold until they are discarded.
    """
    known = tuple(parts)
    newest = max((f.at for f in known), default=0)
    for fact in known:
        is_rate = fact.quantity in HALF_LIVES
        if not is_rate or fact.confidence_at(newest) >= _FADED * fact.confidence:
            yield fact


class PassingRows(Mapping[tuple[str, str], Passing]):
    """The shares that filters were seen to pass, by source and text of the predicate.

    Looked up one by one: there may be ten thousands, of which a plan needs a few.

    Args:
        facts: All there are.
        now: Wall-clock microseconds; with age, ranges widen.
    """

    def __init__(self, facts: Facts, now: int) -> None:
        self._facts, self._now = facts, now

    @override
    def __getitem__(self, key: tuple[str, str]) -> Passing:
        fact = self._facts.find(Subject(SubjectKind.PREDICATE, *key), Quantity.SELECTIVITY)
        if fact is None:
            raise KeyError(key)
        low, high = fact.range_at(self._now, COMPARISON.low, COMPARISON.high)
        return Passing(fact.value, low, high)

    @override
    def __iter__(self) -> Iterator[tuple[str, str]]:
        return (fact.subject[1:] for fact in self._facts.of_kind(SubjectKind.PREDICATE))

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)


class _OfColumns(Mapping[tuple[str, str], float]):
    """A number about columns, by source and column or columns, looked up one by one."""

    def __init__(self, facts: Facts, quantity: Quantity) -> None:
        self._facts, self._quantity = facts, quantity

    @override
    def __getitem__(self, key: tuple[str, str]) -> float:
        fact = self._facts.find(Subject(SubjectKind.COLUMN, *key), self._quantity)
        if fact is None:
            raise KeyError(key)
        return self._number(fact)

    def _number(self, fact: Fact) -> float:
        return fact.value

    @override
    def __iter__(self) -> Iterator[tuple[str, str]]:
        kind = self._facts.of_kind(SubjectKind.COLUMN)
        return (fact.subject[1:] for fact in kind if fact.quantity == self._quantity)

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)


class RowBytes(_OfColumns):
    """The bytes of rows as they were sent, without their share of the message."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts, Quantity.ROW_BYTES)

    @override
    def _number(self, fact: Fact) -> float:
        return fact.low


class TextBytes(_OfColumns):
    """The mean bytes of the texts of a column of a source or stored table."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts, Quantity.TEXT_BYTES)


class KnownColumns(Mapping[tuple[str, str], ColumnFacts]):
    """Facts about columns, by source and name in lower case, looked up one by one.

    Args:
        facts: All there are.
        now: Wall-clock microseconds; with age, shares are less sure.
    """

    def __init__(self, facts: Facts, now: int) -> None:
        self._facts, self._now = facts, now
        self._found: dict[tuple[str, str], ColumnFacts | None] = {}

    @override
    def __getitem__(self, key: tuple[str, str]) -> ColumnFacts:
        if key not in self._found:
            self._found[key] = self._about(key)
        found = self._found[key]
        if found is None:
            raise KeyError(key)
        return found

    def _about(self, key: tuple[str, str]) -> ColumnFacts | None:
        subject = Subject(SubjectKind.COLUMN, *key)
        distinct = self._facts.find(subject, Quantity.DISTINCT)
        if distinct is None:
            return None

        def value(quantity: Quantity) -> float | None:
            fact = self._facts.find(subject, quantity)
            return None if fact is None else fact.value

        common = self._facts.find(subject, Quantity.COMMON)
        local = value(Quantity.LOCAL_DISTINCT)
        deciles = tuple(v for quantity in DECILES if (v := value(quantity)) is not None)
        return ColumnFacts(
            distinct.value,
            distinct.value if local is None else local,
            0.0 if common is None else common.value,
            1.0 if common is None else common.range_at(self._now, EQUALITY.low, EQUALITY.high)[1],
            value(Quantity.NULLS) or 0.0,
            value(Quantity.SAME),
            deciles if len(deciles) == len(DECILES) else (),
            max(1.0 - distinct.confidence_at(self._now), SAMPLED),
        )

    @override
    def __iter__(self) -> Iterator[tuple[str, str]]:
        kind = self._facts.of_kind(SubjectKind.COLUMN)
        return (fact.subject[1:] for fact in kind if fact.quantity == Quantity.DISTINCT)

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)


_OF_RECURSIONS = {
    Quantity.ROWS: "base_rows",
    Quantity.VIEW_ROWS: "view_rows",
    Quantity.CHANGES: "changes",
    Quantity.VIEW_CHANGES: "view_changes",
}


def recursion_facts(facts: Facts, now: int) -> dict[str, RecursionFacts]:
    """Return what recursions have counted while they ran, by their key; `now` by the wall clock."""
    found: dict[str, RecursionFacts] = {}
    for fact in facts.of_kind(SubjectKind.RECURSION):
        before = found.get(fact.subject.name, RecursionFacts(0.0, 0.0, 0.0, 0.0))
        age = max(now - fact.at, 0) / MICROSECONDS
        named = {_OF_RECURSIONS[fact.quantity]: fact.value, "age": age}
        found[fact.subject.name] = replace(before, **named)
    return found


def placed_in(bundle: FragmentBundle) -> dict[str, Placed]:
    """Return where the recursions of a bundle are computed."""
    found = {}
    for recursion in bundle.recursions:
        homes = next((f.homes for f in bundle.fragments if _computes(f, recursion)), ())
        found[recursion.key] = Placed(recursion.way, recursion.sites, homes)
    return found


def looked_up(bundle: FragmentBundle) -> frozenset[str]:
    """Return the tables, in lower case, that a bundle's fragments look keys up in."""
    return frozenset(
        node.source.lower()
        for fragment in bundle.fragments
        if fragment.engine == Engine.STATIC
        and any(isinstance(node, RemoteSource) for node in walk_plan(fragment.plan))
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan)
    )


def _computes(fragment: Fragment, recursion: RecursionPlan) -> bool:
    return fragment.sites == recursion.sites and any(
        isinstance(node, Fixpoint) and node.name == recursion.name
        for node in walk_plan(fragment.plan)
    )
