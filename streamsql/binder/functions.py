"""Which scalar functions exist, what they take and what they return."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from streamsql.data.types import DataType

_NUMBER = (DataType.INTEGER, DataType.DOUBLE)
_TEXT = (DataType.TEXT,)
_INTEGER = (DataType.INTEGER,)


@dataclass(frozen=True, slots=True)
class Signature:
    """A function: accepted types per argument, how many may be left out, and the result.

    Attributes:
        arguments: Accepted types, one entry per argument; NULL is always accepted.
        optional: How many of the last arguments may be missing.
        result: Result type from argument types.
        usage: How it is written, for hints.
    """

    arguments: tuple[tuple[DataType, ...], ...]
    result: Callable[[tuple[DataType, ...]], DataType]
    usage: str
    optional: int = 0


def _always(dtype: DataType) -> Callable[[tuple[DataType, ...]], DataType]:
    return lambda _types: dtype


def _first(types: tuple[DataType, ...]) -> DataType:
    return types[0]


SIGNATURES: dict[str, tuple[Signature, ...]] = {
    "ABS": (Signature((_NUMBER,), _first, "ABS(number)"),),
    "ROUND": (
        Signature((_NUMBER, _INTEGER), _always(DataType.DOUBLE), "ROUND(number [, digits])", 1),
    ),
    "FLOOR": (Signature((_NUMBER,), _always(DataType.DOUBLE), "FLOOR(number)"),),
    "CEIL": (Signature((_NUMBER,), _always(DataType.DOUBLE), "CEIL(number)"),),
    "SQRT": (Signature((_NUMBER,), _always(DataType.DOUBLE), "SQRT(number)"),),
    "POWER": (Signature((_NUMBER, _NUMBER), _always(DataType.DOUBLE), "POWER(base, exponent)"),),
    "LOWER": (Signature((_TEXT,), _always(DataType.TEXT), "LOWER(text)"),),
    "UPPER": (Signature((_TEXT,), _always(DataType.TEXT), "UPPER(text)"),),
    "LENGTH": (Signature((_TEXT,), _always(DataType.INTEGER), "LENGTH(text)"),),
    "TRIM": (Signature((_TEXT,), _always(DataType.TEXT), "TRIM(text)"),),
    "SUBSTRING": (
        Signature(
            (_TEXT, _INTEGER, _INTEGER),
            _always(DataType.TEXT),
            "SUBSTRING(text, start [, length])",
            1,
        ),
    ),
    "POSITION": (Signature((_TEXT, _TEXT), _always(DataType.INTEGER), "POSITION(part IN text)"),),
    "REPLACE": (
        Signature((_TEXT, _TEXT, _TEXT), _always(DataType.TEXT), "REPLACE(text, old, new)"),
    ),
    "DISTANCE": (
        Signature((_NUMBER,) * 4, _always(DataType.DOUBLE), "distance(x1, y1, x2, y2)"),
        Signature((_NUMBER,) * 6, _always(DataType.DOUBLE), "distance(x1, y1, z1, x2, y2, z2)"),
    ),
}
"""By the name engines know; see `streamsql.algebra.scalar.FUNCTIONS`."""

# sqlglot parses well-known functions into classes of their own; these are their arguments in order.
PARSED: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Abs: ("ABS", ("this",)),
    exp.Round: ("ROUND", ("this", "decimals")),
    exp.Floor: ("FLOOR", ("this",)),
    exp.Ceil: ("CEIL", ("this",)),
    exp.Sqrt: ("SQRT", ("this",)),
    exp.Pow: ("POWER", ("this", "expression")),
    exp.Lower: ("LOWER", ("this",)),
    exp.Upper: ("UPPER", ("this",)),
    exp.Length: ("LENGTH", ("this",)),
    exp.Trim: ("TRIM", ("this",)),
    exp.Substring: ("SUBSTRING", ("this", "start", "length")),
    exp.StrPosition: ("POSITION", ("substr", "this")),
    exp.Replace: ("REPLACE", ("this", "expression", "replacement")),
}

KNOWN_NAMES = tuple(
    sorted(
        {
            *SIGNATURES, "COALESCE", "NULLIF", "LEAST", "GREATEST", "CAST", "COUNT", "SUM", "AVG",
            "MIN", "MAX", "ARG_MIN", "ARG_MAX",
        }
    )
)  # fmt: skip
"""Every function a query may call, for hints."""
