"""Text functions; positions and lengths count code points, comparison is by code point."""

from pyspark.sql import Column
from pyspark.sql import functions as fn

from static_engine.lowering.types import constant
from streamsql.algebra.expressions import Expression, Literal
from streamsql.data.types import DataType

# Python's white space; Spark's own TRIM knows the space character only.
WHITE_SPACE = "".join(map(chr, [*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680])) + "".join(
    map(chr, [*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000])
)
_ENDLESS = 2**31
_FAR = 2**61  # keeps sums of two bounds inside 64 bits; no text is that long


def like(text: Column, pattern: Expression, pattern_column: Column) -> Column:
    """Return `text LIKE pattern`: % and _ only; a backslash is an ordinary character."""
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        return text.like(pattern.value.replace("\\", "\\\\"))
    return fn.like(text, fn.replace(pattern_column, fn.lit("\\"), fn.lit("\\\\")))


def trim(text: Column) -> Column:
    """Return a text without white space at both ends."""
    return fn.btrim(text, fn.lit(WHITE_SPACE))


def substring(text: Column, start: Column, length: Column | None = None) -> Column:
    """Return the part from position `start`; positions before 1 count but hold nothing."""
    given = fn.lit(_ENDLESS) if length is None else length
    first, count = _bounded(start), _bounded(given)
    begin = fn.greatest(first, constant(1, DataType.INTEGER))
    size = fn.greatest(first + count - begin, constant(0, DataType.INTEGER))
    part = fn.substring(text, _as_int(begin), _as_int(size))
    return fn.when(first.isNotNull() & count.isNotNull(), part)


def position(needle: Column, text: Column) -> Column:
    """Return where a text first occurs, from 1; 0 if nowhere."""
    return fn.position(needle, text).cast("bigint")


def replace(text: Column, old: Expression, old_column: Column, new: Column) -> Column:
    """Return a text with every occurrence replaced; an empty `old` occurs around each character."""
    usual = fn.replace(text, old_column, new)
    if isinstance(old, Literal) and old.value:
        return usual
    between = fn.concat(new, fn.call_function("array_join", fn.split(text, ""), new), new)
    spread = fn.when(text == "", new).otherwise(between)
    return fn.when(old_column == "", spread).otherwise(usual)


def _bounded(column: Column) -> Column:
    low, high = constant(-_FAR, DataType.INTEGER), constant(_FAR, DataType.INTEGER)
    # LEAST and GREATEST ignore NULL in Spark; here it must stay.
    return fn.when(column.isNotNull(), fn.least(fn.greatest(column.cast("bigint"), low), high))


def _as_int(column: Column) -> Column:
    return fn.least(column, constant(2**31 - 1, DataType.INTEGER)).cast("int")
