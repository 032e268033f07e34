"""Facts that would turn the choice of a plan: the value of one at which another plan is cheaper.

One fact is varied at a time, everything else stays as it is known. The memo is priced again for
each value: plans keep their numbers, but that a table may become too large for gateways.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, sqrt
from typing import TypeVar

from typing_extensions import override

from federated_optimizer.alternatives.joins.stored_at_gateways import STORED
from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.search.choosing import Choice, Listed, Search
from federated_optimizer.statistics.passing_rows import passed
from federated_optimizer.statistics.planning_statistics import (
    ColumnFacts,
    Passing,
    SourceFacts,
    Statistics,
)
from federated_optimizer.statistics.predicate_text import predicate_text
from streamsql.algebra.expressions import expression_text
from streamsql.algebra.operators import Filter, Plan, Scan, SourceKind, walk_plan
from streamsql.wire.fragments import filtered_scan

TURNING_SECONDS = 0.2
"""Of computing time that looking for the facts of one query may take."""

T = TypeVar("T")

MOST_PLANS = 3
"""Rejected plans for which facts are looked for: the cheapest ones."""

FACTORS = (2.0, 8.0, 64.0, 1_000.0)
"""By which a fact is multiplied and divided, the smallest first."""

HALVINGS = 6
"""Of the logarithm of the last factor, after which the value is told."""

BEYOND = 1.02
"""Factor beyond the value at which the plan is looked for that is taken there."""

FEWEST = 2.0
"""Rows, or values, below which a fact is not varied: fewer than that are one, or none."""

LEAST = 1e-3
"""A fact of 0 is varied from here on."""


class Varied(StrEnum):
    """Quantities that are varied."""

    CHANGES = "changes a second"
    ROWS = "rows"
    SHARE = "share that passes"
    DISTINCT = "distinct values"


@dataclass(frozen=True, slots=True)
class Turn:
    """A fact that makes a rejected plan cheaper than the chosen one.

    Attributes:
        plan: The number of the rejected plan.
        subject: The source or table, or its column: "t.room".
        predicate: Of a share: the condition.
        now: The value that is known or assumed.
        value: From which on the plan is cheaper.
        assumed: Whether nobody has measured the present value.
        taken: Whether the plan would be taken then: no third one is cheaper, as far as there was
            time to look.
    """

    plan: int
    varied: Varied
    subject: str
    predicate: str
    now: float
    value: float
    assumed: bool
    taken: bool


@dataclass(frozen=True, slots=True)
class _Fact:
    """A number of the statistics that can be set.

    Attributes:
        most: The greatest value it may have.
        setting: Returns statistics in which it is another.
    """

    varied: Varied
    subject: str
    predicate: str
    now: float
    assumed: bool
    most: float
    setting: Callable[[float], Statistics]

    @property
    def least(self) -> float:
        """The least value that is tried."""
        counted = self.varied in (Varied.ROWS, Varied.DISTINCT)
        return min(FEWEST, self.now) if counted else 0.0


def turning_facts(
    search: Search, taken: Choice, listed: Sequence[Listed], more: Callable[[], bool]
) -> tuple[Turn, ...]:
    """Return for the cheapest rejected plans the fact that turns the choice soonest.

    Args:
        search: Of the plans to choose from.
        taken: The chosen plan.
        listed: The plans to choose from, the cheapest first.
        more: Whether there is time to price another memo.
    """
    order = search.weighing.order
    rejected = [each for each in listed if each.number != taken.number][:MOST_PLANS]
    dearer = [each.number for each in rejected if order(each.cost) > order(taken.cost)]
    turning = _Turning(search, taken.number, dearer, more)
    return turning.of(_facts(search.query, search.statistics))


class _Turning:
    def __init__(
        self, search: Search, taken: int, rejected: Sequence[int], more: Callable[[], bool]
    ) -> None:
        self._search, self._more = search, more
        self._taken, self._rejected = taken, rejected
        self._plans = {number: search.plan(number) for number in (taken, *rejected)}

    def of(self, facts: Sequence[_Fact]) -> tuple[Turn, ...]:
        """Return a turn for each rejected plan that has one, in their order."""
        found: dict[int, tuple[_Fact, float]] = {}
        last: dict[tuple[int, bool], float] = {}  # values that turn nothing, by fact and direction
        for factor in FACTORS:
            near: dict[int, list[tuple[float, _Fact, float]]] = {}
            for place, fact in enumerate(facts):
                for up in (True, False):
                    inside = last.get((place, up), fact.now)
                    far = fact.now * factor if up else fact.now / factor
                    outside = max(min(far, fact.most), fact.least)
                    open_ = [n for n in self._rejected if n not in found]
                    if outside == inside or not open_ or not self._more():
                        continue
                    for number in self._cheaper(fact, outside, open_):
                        value = self._border(fact, number, inside, outside)
                        off = max(value / fact.now, fact.now / value)
                        near.setdefault(number, []).append((off, fact, value))
                    last[place, up] = outside
            for number, turns in near.items():
                _, fact, value = min(turns, key=lambda turn: turn[0])
                found[number] = (fact, value)
        return tuple(self._turn(n, *found[n]) for n in self._rejected if n in found)

    def _cheaper(self, fact: _Fact, value: float, numbers: Sequence[int]) -> Iterator[int]:
        """Yield the plans that cost less than the chosen one if a fact has a value."""
        search = self._search.knowing(fact.setting(value))
        order, chosen = search.weighing.order, self._number_in(search, self._taken)
        if not chosen and set(STORED).isdisjoint(self._plans[self._taken].methods):
            return  # nobody knows its number there
        most = order(search.plan(chosen).cost) if chosen else (inf,)  # gateways keep no such table
        for number in numbers:
            there = self._number_in(search, number)
            if there and order(search.plan(there).cost) < most:
                yield number

    def _number_in(self, search: Search, number: int) -> int:
        """Return the number of a plan among those by other facts; 0: it is not found there.

        Tables that gateways can keep by these facts only have further plans.
        """
        if search.memo.count() == self._search.memo.count():
            return number
        return search.number_of((number, self._plans[number].digest))

    def _border(self, fact: _Fact, number: int, inside: float, outside: float) -> float:
        """Return the value between two from which on a plan is cheaper."""
        for _ in range(HALVINGS):
            if not self._more():
                break
            middle = sqrt(inside * outside)
            if number in self._cheaper(fact, middle, (number,)):
                outside = middle
            else:
                inside = middle
        return outside

    def _turn(self, number: int, fact: _Fact, value: float) -> Turn:
        beyond = min(value * BEYOND, fact.most) if value > fact.now else value / BEYOND
        taken = False
        if self._more():
            by_then = self._search.knowing(fact.setting(beyond)).taken()
            taken = by_then.digest == self._plans[number].digest
        return Turn(
            number,
            fact.varied,
            fact.subject,
            fact.predicate,
            fact.now,
            value,
            fact.assumed,
            taken,
        )


def _facts(plan: Plan, statistics: Statistics) -> list[_Fact]:
    """Return the facts that a plan reads."""
    found: dict[tuple[Varied, str, str], _Fact] = {}
    for node in walk_plan(plan):
        match node:
            case Scan():
                for fact in (*_of_source(node, statistics), *_of_columns(node, statistics)):
                    found[fact.varied, fact.subject, ""] = fact
            case Filter():
                share = _of_filter(node, statistics)
                if share is not None:
                    found[share.varied, share.subject, share.predicate] = share
            case _:
                pass
    return list(found.values())


def _of_source(scan: Scan, statistics: Statistics) -> Iterator[_Fact]:
    name = scan.source.lower()
    known = statistics.sources.get(name, SourceFacts())
    now = estimate(scan, statistics)

    def setting(facts: SourceFacts) -> Statistics:
        return replace(statistics, sources={**statistics.sources, name: facts})

    if scan.kind != SourceKind.TABLE:
        yield _Fact(
            *(Varied.CHANGES, scan.source, "", max(now.inserts + now.deletes, LEAST)),
            *(
                known.changes is None,
                float("inf"),
                lambda value: setting(replace(known, changes=value)),
            ),
        )
    if scan.kind == SourceKind.TABLE or scan.key:
        yield _Fact(
            *(Varied.ROWS, scan.source, "", max(now.rows, 1.0)),
            *(known.rows is None, float("inf"), lambda value: setting(replace(known, rows=value))),
        )


def _of_filter(node: Filter, statistics: Statistics) -> _Fact | None:
    scan = filtered_scan(node)
    if scan is None:
        return None
    key = (scan.source.lower(), predicate_text(node.predicate, scan.schema.names))
    now = passed(node, statistics)

    def setting(value: float) -> Statistics:
        share = Passing(value, value, value)
        return replace(statistics, passing=_With(statistics.passing, key, share))

    words = expression_text(node.predicate)
    return _Fact(
        *(Varied.SHARE, scan.source, words, max(now.share, LEAST), bool(now.assumed), 1.0, setting)
    )


def _of_columns(scan: Scan, statistics: Statistics) -> Iterator[_Fact]:
    """Yield the numbers of values that were counted in the columns that are read."""
    for column in scan.schema.names:
        key = (scan.source.lower(), column.lower())
        known = statistics.columns.get(key)
        if known is None or known.distinct < 1.0:
            continue

        def setting(
            value: float, key: tuple[str, str] = key, known: ColumnFacts = known
        ) -> Statistics:
            local = known.local * value / known.distinct
            counted = replace(known, distinct=value, local=local)
            return replace(statistics, columns=_With(statistics.columns, key, counted))

        subject = f"{scan.source}.{column}"
        yield _Fact(Varied.DISTINCT, subject, "", known.distinct, False, float("inf"), setting)


class _With(Mapping[tuple[str, str], T]):
    """Facts, one of them set."""

    def __init__(self, known: Mapping[tuple[str, str], T], key: tuple[str, str], value: T) -> None:
        self._known, self._key, self._value = known, key, value

    @override
    def __getitem__(self, key: tuple[str, str]) -> T:
        return self._value if key == self._key else self._known[key]

    @override
    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter({self._key: None, **dict.fromkeys(self._known)})

    @override
    def __len__(self) -> int:
        return len(tuple(iter(self)))
