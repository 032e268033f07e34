"""Coarser keys computed from finer ones: every value of the finer one has one of the coarser.

| coarser key | of a finer key | if |
|---|---|---|
| DATE_TRUNC(p, t) | DATE_TRUNC(q, t) | every p begins with a q, as an hour with a minute |
| DATE_TRUNC(p, t), DATE_BIN(s, t, o) | both | borders of the bins are borders of finer bins |
| EXTRACT(p FROM t) | both | of days or finer, and dates have p: DAY, DOW, WEEK, MONTH, YEAR |
| SUBSTRING(x, 1, m), LEFT(x, m) | both, with n for m | 0 <= m <= n |
| x / a of INTEGER | x / b | b > 0 divides a, and a > 0: both go towards 0 |

EXTRACT of hours and finer is none of them: within an hour of the least TIMESTAMP the beginning of
the hour is no TIMESTAMP, and the hour is there.
"""

from collections.abc import Callable

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar_functions.scalar_time import FIXED
from streamsql.data.types import DataType

Same = Callable[[Expression, Expression], bool]

_DAY = FIXED["DAY"]
_WEEK = 7 * _DAY
_MONDAY = 4 * _DAY  # 1970-01-05, as for DATE_TRUNC
_WITHIN = {
    "MONTH": ("DAY",),
    "QUARTER": ("MONTH", "DAY"),
    "YEAR": ("QUARTER", "MONTH", "DAY"),
    "DECADE": ("YEAR", "QUARTER", "MONTH", "DAY"),
    "CENTURY": ("YEAR", "QUARTER", "MONTH", "DAY"),
    "MILLENNIUM": ("CENTURY", "YEAR", "QUARTER", "MONTH", "DAY"),
}
"""Parts of dates that begin with the others; a day begins with everything that is shorter."""
_OF_DATES = frozenset({"DOW", "ISODOW", "DOY", "DAY", "WEEK", "ISOYEAR", *_WITHIN})
_LARGER = {
    "MONTH": ("MONTH", "QUARTER", "YEAR", "DECADE", "CENTURY", "MILLENNIUM"),
    "QUARTER": ("QUARTER", "YEAR", "DECADE", "CENTURY", "MILLENNIUM"),
    "YEAR": ("YEAR", "DECADE", "CENTURY", "MILLENNIUM"),
}
"""Parts of a time that are those of the beginning of its month, quarter or year."""


def nested(wanted: Expression, finer: Expression, column: Column, same: Same) -> Expression | None:
    """Return a key as computed from the values of a finer one; None: it is not coarser.

    Args:
        wanted: The coarser key.
        finer: The finer key, over the same columns.
        column: Holds the values of the finer one.
        same: Whether two expressions have one value.
    """
    if not isinstance(wanted, Call) or not isinstance(finer, Call):
        return None
    match wanted:
        case Call("EXTRACT", (Literal(value=str(part)), time)):
            begins = _begins(finer, time, same)
            if begins is not None and _keeps(part, finer, begins):
                return Call("EXTRACT", (wanted.arguments[0], column), wanted.dtype)
        case Call("DATE_TRUNC", (Literal(value=str(part)), time)):
            begins = _begins(finer, time, same)
            if begins is not None and _is_coarser(part, finer, begins):
                return Call("DATE_TRUNC", (wanted.arguments[0], column), wanted.dtype)
        case Call("DATE_BIN", (stride, time, *origin)):
            ours, theirs = _bins(wanted), _begins(finer, time, same)
            if ours is not None and theirs not in (None, ()) and _nest(ours, theirs):
                return Call("DATE_BIN", (stride, column, *origin), wanted.dtype)
        case Call("/", (value, Literal(value=int(divisor)))) if wanted.dtype == DataType.INTEGER:
            return _quotient(wanted, finer, column, same, value, divisor)
        case _:
            return _prefix(wanted, finer, column, same)
    return None


_Bins = tuple[int, int] | tuple[()]
"""Length and origin of bins; nothing for parts of dates of several lengths."""


def _begins(finer: Call, time: Expression, same: Same) -> _Bins | None:
    """Return the bins that a key gives the beginnings of; None: it is none of this time."""
    match finer:
        case Call("DATE_TRUNC", (Literal(), read)) | Call("DATE_BIN", (_, read, *_)):
            return _bins(finer) if same(read, time) else None
        case _:
            return None


def _bins(call: Call) -> _Bins | None:
    match call:
        case Call("DATE_TRUNC", (Literal(value=str(part)), _)):
            if part in FIXED:
                return FIXED[part], 0
            return (_WEEK, _MONDAY) if part == "WEEK" else ()
        case Call("DATE_BIN", (Literal(value=int(stride)), _)):
            return (stride, 0) if stride > 0 else None
        case Call("DATE_BIN", (Literal(value=int(stride)), _, Literal(value=int(origin)))):
            return (stride, origin) if stride > 0 else None
        case _:
            return None


def _nest(coarser: _Bins, finer: _Bins) -> bool:
    """Return whether every bin of the finer ones lies in one of the coarser."""
    match coarser, finer:
        case (long, first), (short, second):
            return long % short == 0 and (first - second) % short == 0
        case _:
            return False


def _is_coarser(part: str, finer: Call, begins: _Bins) -> bool:
    if part in FIXED:
        return _nest((FIXED[part], 0), begins)
    if part == "WEEK":
        return _nest((_WEEK, _MONDAY), begins)
    if begins:
        return _nest((_DAY, 0), begins)  # all larger parts begin with a day
    return _part(finer) == part or _part(finer) in _WITHIN.get(part, ())


def _keeps(part: str, finer: Call, begins: _Bins) -> bool:
    """Return whether a part of a time is that of the beginning of its bin."""
    if begins:
        return part in _OF_DATES and _nest((_DAY, 0), begins)
    return part in _LARGER.get(_part(finer), ())


def _part(call: Call) -> str:
    match call:
        case Call("DATE_TRUNC", (Literal(value=str(part)), _)):
            return part
        case _:
            return ""


def _quotient(  # noqa: PLR0913, PLR0917 - both keys and what is known of them
    wanted: Call, finer: Call, column: Column, same: Same, value: Expression, divisor: int
) -> Expression | None:
    match finer:
        case Call("/", (read, Literal(value=int(less)))) if (
            finer.dtype == DataType.INTEGER
            and read.dtype == value.dtype == DataType.INTEGER
            and same(read, value)
            and less > 0 < divisor
            and divisor % less == 0
        ):
            by = Literal(divisor // less, DataType.INTEGER)
            return Call("/", (column, by), wanted.dtype)
        case _:
            return None


def _prefix(wanted: Call, finer: Call, column: Column, same: Same) -> Expression | None:
    ours, theirs = _prefix_of(wanted), _prefix_of(finer)
    if ours is None or theirs is None or not same(ours[0], theirs[0]) or ours[1] > theirs[1]:
        return None
    return Call("LEFT", (column, Literal(ours[1], DataType.INTEGER)), wanted.dtype)


def _prefix_of(call: Call) -> tuple[Expression, int] | None:
    """Return of which text a call gives the first characters, and how many."""
    match call:
        case Call("SUBSTRING", (text, Literal(value=1), Literal(value=int(count)))) | Call(
            "LEFT", (text, Literal(value=int(count)))
        ) if count >= 0:
            return text, count
        case _:
            return None
