"""Text functions; positions and lengths count code points, comparison is by code point."""

from pyspark.sql import Column
from pyspark.sql import functions as fn

from static_engine.lowering.spark_types import constant
from streamsql.algebra.expressions import Expression, Literal
from streamsql.algebra.scalar_functions.scalar_text import MAX_LENGTH
from streamsql.data.types import DataType

# Python's white space; Spark's own TRIM knows the space character only.
WHITE_SPACE = "".join(map(chr, [*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680])) + "".join(
    map(chr, [*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000])
)
_ENDLESS = 2**31
_MOST_PARTS = 50
"""Most % of a pattern that Java tests: it goes one call deeper for each."""
_LONGEST_PATTERN = 200
"""Most characters of one: Java may compare all of a part at every place of a text."""
_FAR = 2**61  # keeps sums of two bounds inside 64 bits; no text is that long


def is_for_java(pattern: str) -> bool:
    """Whether Java tests a pattern of LIKE in time in proportion to the text."""
    return pattern.count("%") <= _MOST_PARTS and len(pattern) <= _LONGEST_PATTERN


def like(text: Column, pattern: str) -> Column:
    """Return `text LIKE pattern`; a backslash is an ordinary character.

    Java backtracks into every %, so what lies between two of them is an atomic group: once it has
    matched at its first place it stays there.
    """
    head, *others = pattern.split("%")
    if not others:
        return text.rlike(rf"(?s)\A{_java(head)}\z")
    middle = "".join(f"(?>.*?{_java(part)})" for part in others[:-1] if part)
    return text.rlike(rf"(?s)\A{_java(head)}{middle}.*{_java(others[-1])}\z")


def _java(part: str) -> str:
    """Return Java's regular expression for a part of a pattern between two %."""
    return "".join("." if c == "_" else rf"\x{{{ord(c):x}}}" for c in part)


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
    usual = _replaced(text, old_column, new)
    if isinstance(old, Literal) and old.value:
        return usual
    between = fn.concat(new, fn.call_function("array_join", fn.split(text, ""), new), new)
    spread = fn.when(text == "", new).otherwise(between)
    size = fn.length(text) + (fn.length(text) + 1).cast("bigint") * fn.length(new)
    return fn.when(old_column == "", unless_too_long(spread, size)).otherwise(usual)


def _replaced(text: Column, old: Column, new: Column) -> Column:
    without = fn.length(fn.replace(text, old, fn.lit("")))
    removed = fn.length(text).cast("bigint") - without
    size = without + removed / fn.length(old) * fn.length(new)
    # Nothing is removed where `old` is empty; NULL by division is no condition then.
    is_short = (fn.length(new) <= fn.length(old)) | (removed == 0) | (size <= MAX_LENGTH)
    return fn.when(is_short, fn.replace(text, old, new))


def unless_too_long(text: Column, size: Column) -> Column:
    """Return a text of the given length, or NULL where functions make none of that length."""
    return fn.when(size <= MAX_LENGTH, text)


def _bounded(column: Column) -> Column:
    low, high = constant(-_FAR, DataType.INTEGER), constant(_FAR, DataType.INTEGER)
    # LEAST and GREATEST ignore NULL in Spark; here it must stay.
    return fn.when(column.isNotNull(), fn.least(fn.greatest(column.cast("bigint"), low), high))


def _as_int(column: Column) -> Column:
    return fn.least(column, constant(2**31 - 1, DataType.INTEGER)).cast("int")
