"""Rows of `sys_facts` and `sys_costs`, made every few seconds and rounded.

A query over the tables would never come to rest if rows changed with every report of a site.
"""

from collections.abc import Callable
from math import floor, log10
from sys import float_info

from federated_optimizer.statistics.calibrated_constants import WORDS
from federated_optimizer.statistics.default_facts import DEFAULTS
from federated_optimizer.statistics.fact import Fact, Quantity, SubjectKind
from federated_optimizer.statistics.fact_store import Facts
from streamsql.data.types import MICROSECONDS, Row

SHOWN_MICROSECONDS = 10 * MICROSECONDS
"""Between two looks at the facts."""
RENEWED_MICROSECONDS = 3_600 * MICROSECONDS
"""How much later a number must be measured for its row to change, if all else is as before."""
_MINUTE = 60 * MICROSECONDS
_DIGITS = 3
_TIME = -2
"""Position of the time of measurement in the rows of both tables."""
_LARGEST = float_info.max / 2
"""What is larger may be no number any more when it is rounded."""
_Shown = tuple[Row, ...]


class ShownFacts:
    """The rows of both tables as of the last look.

    Args:
        facts: All there are.
        clock: Wall-clock microseconds.
    """

    def __init__(self, facts: Facts, clock: Callable[[], int]) -> None:
        self._facts, self._clock = facts, clock
        self._looked_at: int | None = None
        self._rows: tuple[_Shown, _Shown] = ((), ())

    def facts(self) -> _Shown:
        """Return the rows of `sys_facts`."""
        self._look()
        return self._rows[0]

    def costs(self) -> _Shown:
        """Return the rows of `sys_costs`: measured constants, then the defaults of the others."""
        self._look()
        return self._rows[1]

    def _look(self) -> None:
        now = self._clock()
        if self._looked_at is not None and 0 <= now - self._looked_at < SHOWN_MICROSECONDS:
            return
        self._looked_at = now
        facts = tuple(sorted(self._facts, key=lambda fact: fact.key))
        engines = [fact for fact in facts if fact.subject.kind == SubjectKind.ENGINE]
        shown = _resting(self._rows[0], [_fact_row(fact, now) for fact in facts])
        measured = [_cost_row(fact) for fact in engines if _is_known(fact)]
        words = {row[0] for row in measured}
        others = (row for row in _DEFAULT_ROWS if row[0] not in words)
        costs = _resting(self._rows[1], [*measured, *others])
        self._rows = (shown, costs)


def _resting(before: _Shown, rows: list[Row]) -> _Shown:
    """Return the rows, with the times of before where nothing else is new for a while.

    They are the same object if nothing has changed: readers then need not compare.
    """
    known = {_but_time(row): row for row in before}
    shown = tuple([_rested(row, known.get(_but_time(row))) for row in rows])
    return before if shown == before else shown


def _rested(row: Row, before: Row | None) -> Row:
    if before is None:
        return row
    old, new = before[_TIME], row[_TIME]
    if not isinstance(old, int) or not isinstance(new, int):
        return row
    return before if 0 <= new - old < RENEWED_MICROSECONDS else row


def _but_time(row: Row) -> Row:
    return (*row[:_TIME], *row[_TIME + 1 :])


def _fact_row(fact: Fact, now: int) -> Row:
    kind, name, part = fact.subject
    numbers = map(rounded, (fact.value, fact.low, fact.high))
    sure = round(fact.confidence_at(now), 1)
    return (str(kind), name, part, str(fact.quantity), *numbers, sure, _at(fact), str(fact.origin))


def _cost_row(fact: Fact) -> Row:
    numbers = map(rounded, (fact.value, fact.low, fact.high))
    words = WORDS.get(fact.key) or f"{fact.quantity} of {fact.subject.name}"
    return (words, *numbers, _at(fact), str(fact.origin))


def _is_known(fact: Fact) -> bool:
    """Whether it is no constant of an earlier release."""
    return fact.quantity != Quantity.CONSTANT or fact.key in WORDS


def _at(fact: Fact) -> int:
    """Return when a fact was measured, to the minute."""
    return fact.at // _MINUTE * _MINUTE


def rounded(value: float) -> float:
    """Return a number with three digits that count.

    Examples:
        >>> rounded(0.123456), rounded(1234.5), rounded(0.0), rounded(7.0)
        (0.123, 1230.0, 0.0, 7.0)
    """
    if not value:
        return 0.0
    if abs(value) > _LARGEST:
        return value
    return round(value, _DIGITS - 1 - floor(log10(abs(value))))


_DEFAULT_ROWS: _Shown = tuple(
    (default.words, rounded(default.value), default.low, default.high, None, default.why)
    for default in DEFAULTS
)
