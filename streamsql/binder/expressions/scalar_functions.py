"""Which scalar functions exist, what they take and what they return."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from streamsql.data.types import DataType

_NUMBER = (DataType.INTEGER, DataType.DOUBLE)
_TEXT = (DataType.TEXT,)
_INTEGER = (DataType.INTEGER,)
_TIMESTAMP = (DataType.TIMESTAMP,)
_INTERVAL = (DataType.INTERVAL,)


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


def _numeric(*names: str) -> dict[str, tuple[Signature, ...]]:
    """Return the signatures of functions from a number to a DOUBLE."""
    double = _always(DataType.DOUBLE)
    return {name: (Signature((_NUMBER,), double, f"{name}(number)"),) for name in names}


SIGNATURES: dict[str, tuple[Signature, ...]] = {
    **_numeric(
        "LN",
        "EXP",
        "CBRT",
        "SIN",
        "COS",
        "TAN",
        "COT",
        "ASIN",
        "ACOS",
        "ATAN",
        "SINH",
        "COSH",
        "TANH",
        "ASINH",
        "ACOSH",
        "ATANH",
        "DEGREES",
        "RADIANS",
    ),
    "SIGN": (Signature((_NUMBER,), _first, "SIGN(number)"),),
    "TRUNC": (
        Signature((_NUMBER, _INTEGER), _always(DataType.DOUBLE), "TRUNC(number [, digits])", 1),
    ),
    "LOG": (
        Signature((_NUMBER,), _always(DataType.DOUBLE), "LOG(number)"),
        Signature((_NUMBER, _NUMBER), _always(DataType.DOUBLE), "LOG(base, number)"),
    ),
    "ATAN2": (Signature((_NUMBER, _NUMBER), _always(DataType.DOUBLE), "ATAN2(y, x)"),),
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
    "BTRIM": (
        Signature((_TEXT, _TEXT), _always(DataType.TEXT), "TRIM(BOTH characters FROM text)"),
    ),
    "LTRIM": (Signature((_TEXT, _TEXT), _always(DataType.TEXT), "LTRIM(text [, characters])", 1),),
    "RTRIM": (Signature((_TEXT, _TEXT), _always(DataType.TEXT), "RTRIM(text [, characters])", 1),),
    "LEFT": (Signature((_TEXT, _INTEGER), _always(DataType.TEXT), "LEFT(text, length)"),),
    "RIGHT": (Signature((_TEXT, _INTEGER), _always(DataType.TEXT), "RIGHT(text, length)"),),
    "SPLIT_PART": (
        Signature(
            (_TEXT, _TEXT, _INTEGER),
            _always(DataType.TEXT),
            "SPLIT_PART(text, delimiter, number)",
        ),
    ),
    "STARTS_WITH": (
        Signature((_TEXT, _TEXT), _always(DataType.BOOLEAN), "STARTS_WITH(text, beginning)"),
    ),
    "ENDS_WITH": (Signature((_TEXT, _TEXT), _always(DataType.BOOLEAN), "ENDS_WITH(text, end)"),),
    "LPAD": (
        Signature(
            (_TEXT, _INTEGER, _TEXT), _always(DataType.TEXT), "LPAD(text, length [, fill])", 1
        ),
    ),
    "RPAD": (
        Signature(
            (_TEXT, _INTEGER, _TEXT), _always(DataType.TEXT), "RPAD(text, length [, fill])", 1
        ),
    ),
    "REPEAT": (Signature((_TEXT, _INTEGER), _always(DataType.TEXT), "REPEAT(text, times)"),),
    "REVERSE": (Signature((_TEXT,), _always(DataType.TEXT), "REVERSE(text)"),),
    "INITCAP": (Signature((_TEXT,), _always(DataType.TEXT), "INITCAP(text)"),),
    "ASCII": (Signature((_TEXT,), _always(DataType.INTEGER), "ASCII(text)"),),
    "CHR": (Signature((_INTEGER,), _always(DataType.TEXT), "CHR(code)"),),
    "TRANSLATE": (
        Signature((_TEXT, _TEXT, _TEXT), _always(DataType.TEXT), "TRANSLATE(text, old, new)"),
    ),
    "OCTET_LENGTH": (Signature((_TEXT,), _always(DataType.INTEGER), "OCTET_LENGTH(text)"),),
    "DATE_BIN": (
        Signature(
            (_INTERVAL, _TIMESTAMP, _TIMESTAMP),
            _always(DataType.TIMESTAMP),
            "DATE_BIN(INTERVAL '5 min', timestamp [, origin])",
            1,
        ),
    ),
    "TO_TIMESTAMP": (
        Signature((_NUMBER,), _always(DataType.TIMESTAMP), "TO_TIMESTAMP(seconds since 1970)"),
    ),
    "MAKE_TIMESTAMP": (
        Signature(
            (*(_INTEGER,) * 5, _NUMBER),
            _always(DataType.TIMESTAMP),
            "MAKE_TIMESTAMP(year, month, day, hour, minute, seconds)",
        ),
    ),
    "DISTANCE": (
        Signature((_TEXT, _TEXT), _always(DataType.DOUBLE), "distance('x, y', 'x, y')"),
        Signature((_NUMBER,) * 4, _always(DataType.DOUBLE), "distance(x1, y1, x2, y2)"),
        Signature((_NUMBER,) * 6, _always(DataType.DOUBLE), "distance(x1, y1, z1, x2, y2, z2)"),
    ),
}
"""By the name engines know; see `streamsql.algebra.scalar.FUNCTIONS`."""

# sqlglot parses well-known functions into classes of their own; these are their arguments in order.
# Those written in more than one way are in `streamsql.binder.expressions.function_forms`.
PARSED: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    **{
        kind: (kind.__name__.upper(), ("this",))
        for kind in (
            exp.Abs, exp.Floor, exp.Ceil, exp.Sqrt, exp.Sign, exp.Ln, exp.Exp, exp.Cbrt, exp.Sin,
            exp.Cos, exp.Tan, exp.Cot, exp.Asin, exp.Acos, exp.Atan, exp.Sinh, exp.Cosh, exp.Tanh,
            exp.Asinh, exp.Acosh, exp.Atanh, exp.Degrees, exp.Radians, exp.Lower, exp.Upper,
            exp.Length, exp.Reverse, exp.Ascii,
        )
    },
    exp.Round: ("ROUND", ("this", "decimals")),
    exp.Trunc: ("TRUNC", ("this", "decimals")),
    exp.Pow: ("POWER", ("this", "expression")),
    exp.Log: ("LOG", ("this", "expression")),
    exp.Atan2: ("ATAN2", ("this", "expression")),
    exp.Substring: ("SUBSTRING", ("this", "start", "length")),
    exp.StrPosition: ("POSITION", ("substr", "this")),
    exp.Replace: ("REPLACE", ("this", "expression", "replacement")),
    exp.Left: ("LEFT", ("this", "expression")),
    exp.Right: ("RIGHT", ("this", "expression")),
    exp.SplitPart: ("SPLIT_PART", ("this", "delimiter", "part_index")),
    exp.StartsWith: ("STARTS_WITH", ("this", "expression")),
    exp.EndsWith: ("ENDS_WITH", ("this", "expression")),
    exp.Repeat: ("REPEAT", ("this", "times")),
    exp.Translate: ("TRANSLATE", ("this", "from_", "to")),
    exp.DateBin: ("DATE_BIN", ("this", "expression", "unit")),
}  # fmt: skip

SPELLINGS = {"TIME_BUCKET": "DATE_BIN", "CEILING": "CEIL", "POW": "POWER"}
"""Other names of functions that sqlglot does not know."""

SPOKEN: dict[type[exp.Expr], str] = {
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.VariancePop: "var_pop",
    exp.Pad: "pad",
    exp.StrPosition: "position",
    exp.Mod: "mod",
}
"""What a column is called after functions that sqlglot names otherwise than users do."""

KNOWN_NAMES = tuple(
    sorted(
        {
            *SIGNATURES, "COALESCE", "NULLIF", "LEAST", "GREATEST", "CAST", "CONCAT", "CONCAT_WS",
            "EXTRACT", "DATE_PART", "DATE_TRUNC", "EPOCH", "PI", "MOD", "COUNT", "SUM", "AVG",
            "MIN", "MAX", "ARG_MIN", "ARG_MAX", "STDDEV", "STDDEV_SAMP", "STDDEV_POP", "VARIANCE",
            "VAR_SAMP", "VAR_POP", "MEDIAN", "PERCENTILE_CONT", "QUANTILE_CONT",
            "PERCENTILE_DISC", "QUANTILE_DISC", "MODE", "ARRAY_AGG", "STRING_AGG",
            "ANY_VALUE", "GROUPING", "REGEXP_LIKE", "REGEXP_MATCHES",
            "BOOL_AND", "BOOL_OR", "EVERY", "COUNT_IF",
        }
    )
)  # fmt: skip
"""Every function a query may call, for hints."""
