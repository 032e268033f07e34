"""The numbers that the choice of a plan rests on, each with the range in which the choice stays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from math import prod, sqrt
from typing import Any, TypeVar, cast

from typing_extensions import override

from federated_optimizer.alternatives.recursion.recursions import MUCH
from federated_optimizer.statistics.planning_statistics import Statistics

T = TypeVar("T")

STAYS = sqrt(MUCH)
"""Factor by which a number may change, either way.

Prices are sums of products in which a number occurs once, so one that changes by a factor changes
the ratio of two prices by no more than that. A plan goes only for one that is `MUCH` cheaper: it
takes a change by that factor, or two numbers that move against each other by its root. More numbers
that move less may do it together: see `DRIFTS`.
"""
DRIFTS = sqrt(STAYS)
"""Factor from which on numbers that stay in their ranges count together.

They leave them when the product of their factors is `MUCH`. Each measurement moves every number a
little: smaller factors do not count, or plans would be made again all the time.
"""
NOTHING = 0.01
"""Smaller numbers, such as rates, are all the same."""

Key = tuple[str, str | tuple[str, ...], str]
"""A mapping of `Statistics`, a key in it, and an attribute of what is found there."""
Basis = Mapping[Key, float | None]
"""Values when the plan was chosen; None: nobody knew."""

_NOT_MEASURED = frozenset({"placed"})
"""The plan that a query runs is no number that somebody measures."""
_AGEING = frozenset({"age", "low", "high", "most", "unsure"})
"""Attributes that change with time alone."""
_WORDS = {
    ("sources", "rows"): "rows of {}",
    ("sources", "changes"): "changes a second of {}",
    ("passing", "share"): "share of {0} that passes {1}",
    ("row_bytes", ""): "bytes of a row ({1}) of {0}",
    ("text_bytes", ""): "bytes of a text {1} of {0}",
    ("columns", ""): "distinct values of {1} of {0}",
    ("columns", "distinct"): "distinct values of {1} of {0}",
    ("columns", "local"): "distinct values of {1} of {0} at a gateway",
    ("columns", "common"): "share of the most common {1} of {0}",
    ("columns", "nulls"): "share of NULL in {1} of {0}",
    ("columns", "same"): "share of readings of {0} that keep {1}",
    ("recursions", "base_rows"): "rows that recursion {} reads",
    ("recursions", "view_rows"): "rows of recursion {}",
    ("recursions", "changes"): "changes a second of what recursion {} reads",
    ("recursions", "view_changes"): "changes of recursion {} for a change of what it reads",
}


class _Noted(Mapping[Any, T]):
    """A mapping that notes what it was asked for."""

    def __init__(self, known: Mapping[Any, T]) -> None:
        self._known = known
        self.asked: dict[Any, None] = {}

    @override
    def __getitem__(self, key: Any) -> T:
        self.asked[key] = None
        return self._known[key]

    @override
    def __iter__(self) -> Iterator[Any]:
        self.asked.update(dict.fromkeys(self._known))
        return iter(self._known)

    @override
    def __len__(self) -> int:
        return len(self._known)


class NotedStatistics:
    """Statistics that note what a plan is chosen by.

    Attributes:
        statistics: To plan with.
    """

    def __init__(self, statistics: Statistics) -> None:
        known = {f.name: getattr(statistics, f.name) for f in fields(statistics)}
        self._noted = {
            name: _Noted[Any](value)
            for name, value in known.items()
            if isinstance(value, Mapping) and name not in _NOT_MEASURED
        }
        self.statistics = replace(statistics, **cast("Any", self._noted))

    def basis(self) -> Basis:
        """Return the numbers that were asked for, and those of which nobody knew."""
        found: dict[Key, float | None] = {}
        for name, noted in self._noted.items():
            for key in tuple(noted.asked):
                for attribute, value in _numbers(noted.get(key)).items():
                    found[name, key, attribute] = value
        return found


def _numbers(value: object) -> dict[str, float | None]:
    if value is None:
        return {"": None}
    if isinstance(value, int | float):
        return {"": float(value)}
    if not is_dataclass(value):
        return {}
    told = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in _AGEING}
    return {
        name: None if each is None else float(each)
        for name, each in told.items()
        if each is None or isinstance(each, int | float)
    }


@dataclass(frozen=True, slots=True)
class LeftRange:
    """A number that has left the range in which a choice stays.

    Attributes:
        was: When the plan was chosen; None: nobody knew.
        now: The same now.
        others: Numbers that moved with it, all within their ranges; 0: it has left its own.
    """

    key: Key
    was: float | None
    now: float | None
    others: int = 0

    @property
    def factor(self) -> float:
        """By how much it has changed; what has become known counts most."""
        if self.was is None or self.now is None:
            return float("inf")
        few, many = sorted((max(self.was, NOTHING), max(self.now, NOTHING)))
        return many / few

    def __str__(self) -> str:
        """Return what has changed, from what to what, and the range that it has left."""
        name, key, attribute = self.key
        words = _WORDS.get((name, attribute), f"{attribute or name} of {{}}")
        parts = (key,) if isinstance(key, str) else key
        said = words.format(*parts)
        if self.was is None:
            return f"{said}: not known before, now {_short(self.now)}"
        if self.others:
            moved = f"{_short(self.was)} before, now {_short(self.now)}"
            return f"{said}: {moved}; it moved together with {self.others} other numbers"
        low, high = range_of(self.was)
        stays = f"the plan was chosen for {_short(low)} to {_short(high)}"
        return f"{said}: {_short(self.was)} before, now {_short(self.now)}; {stays}"


def range_of(value: float) -> tuple[float, float]:
    """Return the range in which a number may move without another choice."""
    low = value / STAYS
    return (low if low > NOTHING else 0.0, max(value * STAYS, NOTHING))


def left_range(basis: Basis, statistics: Statistics) -> list[LeftRange]:
    """Return the numbers that have left their ranges, the one that changed most first."""
    found, drifting = [], []
    for key, was in basis.items():
        name, entry, attribute = key
        now = _numbers(getattr(statistics, name).get(entry))
        value = now.get(attribute)
        if was is None and not attribute and value is None:
            known = [number for number in now.values() if number is not None]
            value = known[0] if known else None
        if value is None:
            continue  # what is not measured any more counts as it was
        if was is None:
            found.append(LeftRange(key, None, value))
            continue
        low, high = range_of(was)
        moved = LeftRange(key, was, value)
        if not low <= value <= high:
            found.append(moved)
        elif moved.factor > DRIFTS:
            drifting.append(moved)
    if not found and prod(each.factor for each in drifting) > MUCH:
        found = [replace(each, others=len(drifting) - 1) for each in drifting]
    return sorted(found, key=lambda each: -each.factor)


def _short(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.3g}"
