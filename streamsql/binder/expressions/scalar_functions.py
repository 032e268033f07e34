"""Scalar functions: signatures, and the classes that sqlglot parses them into."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.data.types import DataType

_Types = tuple[DataType, ...]
_NUMBER = (DataType.INTEGER, DataType.DOUBLE)
_TEXT = (DataType.TEXT,)
_INTEGER = (DataType.INTEGER,)
_TIMESTAMP = (DataType.TIMESTAMP,)
_INTERVAL = (DataType.INTERVAL,)


@dataclass(frozen=True, slots=True)
class Signature:
    """One form of a function.

    Attributes:
        usage: How it is written, for hints; arguments in brackets may be left out.
        arguments: Accepted types per argument; NULL is always accepted.
        dtype: Type of the result; None for that of the first argument.
    """

    usage: str
    arguments: tuple[_Types, ...]
    dtype: DataType | None

    @property
    def least(self) -> int:
        """The least number of arguments."""
        return len(self.arguments) - self.usage.count("[")

    def result(self, types: _Types) -> DataType:
        """Return the type of the result for arguments of these types."""
        return types[0] if self.dtype is None else self.dtype


_BOOLEANS = (
    ("STARTS_WITH(text, beginning)", (_TEXT, _TEXT)),
    ("ENDS_WITH(text, end)", (_TEXT, _TEXT)),
)
_INTEGERS = (
    ("LENGTH(text)", (_TEXT,)),
    ("POSITION(part IN text)", (_TEXT, _TEXT)),
    ("ASCII(text)", (_TEXT,)),
    ("OCTET_LENGTH(text)", (_TEXT,)),
)
_OF_NUMBER = (
    "LN", "EXP", "CBRT", "SIN", "COS", "TAN", "COT", "ASIN", "ACOS", "ATAN", "SINH", "COSH",
    "TANH", "ASINH", "ACOSH", "ATANH", "DEGREES", "RADIANS", "FLOOR", "CEIL", "SQRT",
)  # fmt: skip
_DOUBLES = (
    *((f"{name}(number)", (_NUMBER,)) for name in _OF_NUMBER),
    ("TRUNC(number [, digits])", (_NUMBER, _INTEGER)),
    ("LOG(number)", (_NUMBER,)),
    ("LOG(base, number)", (_NUMBER, _NUMBER)),
    ("ATAN2(y, x)", (_NUMBER, _NUMBER)),
    ("ROUND(number [, digits])", (_NUMBER, _INTEGER)),
    ("POWER(base, exponent)", (_NUMBER, _NUMBER)),
    ("distance('x, y', 'x, y')", (_TEXT, _TEXT)),
    ("distance(x1, y1, x2, y2)", (_NUMBER,) * 4),
    ("distance(x1, y1, z1, x2, y2, z2)", (_NUMBER,) * 6),
)
_TEXTS = (
    ("LOWER(text)", (_TEXT,)),
    ("UPPER(text)", (_TEXT,)),
    ("TRIM(text)", (_TEXT,)),
    ("SUBSTRING(text, start [, length])", (_TEXT, _INTEGER, _INTEGER)),
    ("REPLACE(text, old, new)", (_TEXT, _TEXT, _TEXT)),
    ("LTRIM(text [, characters])", (_TEXT, _TEXT)),
    ("RTRIM(text [, characters])", (_TEXT, _TEXT)),
    ("LEFT(text, length)", (_TEXT, _INTEGER)),
    ("RIGHT(text, length)", (_TEXT, _INTEGER)),
    ("SPLIT_PART(text, delimiter, number)", (_TEXT, _TEXT, _INTEGER)),
    ("LPAD(text, length [, fill])", (_TEXT, _INTEGER, _TEXT)),
    ("RPAD(text, length [, fill])", (_TEXT, _INTEGER, _TEXT)),
    ("REPEAT(text, times)", (_TEXT, _INTEGER)),
    ("REVERSE(text)", (_TEXT,)),
    ("INITCAP(text)", (_TEXT,)),
    ("CHR(code)", (_INTEGER,)),
    ("TRANSLATE(text, old, new)", (_TEXT, _TEXT, _TEXT)),
)
_TIMES = (
    ("DATE_BIN(INTERVAL '5 min', timestamp [, origin])", (_INTERVAL, _TIMESTAMP, _TIMESTAMP)),
    ("TO_TIMESTAMP(seconds since 1970)", (_NUMBER,)),
    ("MAKE_TIMESTAMP(year, month, day, hour, minute, seconds)", (*(_INTEGER,) * 5, _NUMBER)),
)


def _by_name() -> dict[str, tuple[Signature, ...]]:
    trim = Signature("TRIM(BOTH characters FROM text)", (_TEXT, _TEXT), DataType.TEXT)
    found: dict[str, tuple[Signature, ...]] = {"BTRIM": (trim,)}
    for dtype, forms in (
        (DataType.DOUBLE, _DOUBLES),
        (None, (("ABS(number)", (_NUMBER,)), ("SIGN(number)", (_NUMBER,)))),
        (DataType.TEXT, _TEXTS),
        (DataType.INTEGER, _INTEGERS),
        (DataType.BOOLEAN, _BOOLEANS),
        (DataType.TIMESTAMP, _TIMES),
    ):
        for usage, arguments in forms:
            name = usage.partition("(")[0].upper()
            found[name] = (*found.get(name, ()), Signature(usage, arguments, dtype))
    return found


SIGNATURES = _by_name()
"""By the name engines know; see `streamsql.algebra.scalar_functions.scalar.FUNCTIONS`."""

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
    exp.ArgMin: "arg_min",
    exp.ArgMax: "arg_max",
    exp.GroupConcat: "string_agg",
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
