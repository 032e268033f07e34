"""Texts by which predicates over a source are known: equal for another order of their parts."""

import hashlib

from streamsql.algebra.expressions import Expression, conjuncts, expression_text

LONGEST = 300
"""Characters; of a longer text the end is replaced by a hash of it."""


def predicate_text(predicate: Expression) -> str:
    """Return the text of a predicate, its parts sorted.

    Columns stand in it by their names, which are unique in a source.
    """
    text = " AND ".join(sorted({expression_text(part) for part in conjuncts(predicate)}))
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {hashlib.sha256(text.encode()).hexdigest()[:16]}"
