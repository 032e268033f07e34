r"""Regular expressions that mean the same in PostgreSQL, DuckDB (RE2), Java and Python.

The common subset: characters, `.` (all but a line feed), classes `[a-z_]` and `[^…]`, `\d \w \s`
and their opposites (ASCII), `( )`, `(?: )`, `|`, `* + ?`, `{n}`, `{n,}`, `{n,m}`, and `^` and `$`
for the beginning and end of the text. Whatever differs elsewhere (back references, looking
around, lazy and possessive repetition, flags, word boundaries, POSIX classes) is refused by
`compile_pattern`.

A pattern becomes a nondeterministic automaton after Thompson, whose sets of states are made
deterministic as texts need them. Testing a text takes time in proportion to its length, whatever
the pattern: a query must not be slowed down by one reading. Only whether a text matches is
reported, so the ways to match need no order.
"""

from streamsql.algebra.regular_expressions.pattern_matching import (
    Pattern,
    compile_pattern,
    regexp_like,
)
from streamsql.algebra.regular_expressions.pattern_reading import (
    RegularExpressionError,
    similar_pattern,
)

__all__ = ["Pattern", "RegularExpressionError", "compile_pattern", "regexp_like", "similar_pattern"]
