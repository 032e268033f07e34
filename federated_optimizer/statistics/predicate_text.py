"""Texts by which predicates over a source are known: equal for another order of their parts."""

import hashlib
from collections.abc import Sequence

from streamsql.algebra.expressions import (
    Column,
    Expression,
    conjuncts,
    expression_text,
    map_columns,
)

LONGEST = 300
"""Characters; of a longer text the end is replaced by a hash of it."""


def predicate_text(predicate: Expression, names: Sequence[str]) -> str:
    """Return the text of a predicate, its parts sorted.

    Args:
        predicate: Over the rows of a source.
        names: Of the source's columns: a query may call them otherwise.
    """

    def named(column: Column) -> Column:
        return Column(column.position, names[column.position], column.dtype)

    parts = {expression_text(map_columns(part, named)) for part in conjuncts(predicate)}
    text = " AND ".join(sorted(parts))
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {hashlib.sha256(text.encode()).hexdigest()[:16]}"
