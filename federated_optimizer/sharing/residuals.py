"""Predicates that remain to be checked of rows that satisfy weaker ones."""

from collections.abc import Sequence
from functools import lru_cache

from federated_optimizer.canonical.implications import Implications
from federated_optimizer.sharing.expression_text import text_of
from streamsql.algebra.expressions import Expression


@lru_cache(maxsize=4_096)
def _implied_by(predicates: tuple[Expression, ...]) -> Implications:
    return Implications(predicates)


def residual(
    wanted: tuple[Expression, ...], offered: tuple[Expression, ...], *, canonical: bool = True
) -> tuple[Expression, ...] | None:
    """Return what is still to be checked of rows for which the offered predicates are TRUE.

    None if the wanted predicates do not imply all offered ones, as far as can be proven.

    Args:
        wanted: What must be TRUE of a row.
        offered: What is TRUE of all rows that are there.
        canonical: Whether predicates that are written otherwise may follow from each other.
    """
    ours, theirs = texts(wanted), texts(offered)
    missing = [p for text, p in theirs.items() if text not in ours]
    if missing and not canonical:
        return None
    if missing:
        implied = _implied_by(wanted)
        if not all(p in implied for p in missing):
            return None
    rest = tuple(p for text, p in ours.items() if text not in theirs)
    if not rest or not canonical:
        return rest
    known = _implied_by(offered)
    return tuple(p for p in rest if p not in known)


def texts(predicates: Sequence[Expression]) -> dict[str, Expression]:
    """Return predicates by their text."""
    return {text_of(p, str): p for p in predicates}
