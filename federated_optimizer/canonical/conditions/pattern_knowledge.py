"""Knowledge of texts by LIKE: their beginnings, and further patterns that they are of."""

from collections.abc import Iterator, Mapping

from federated_optimizer.canonical.conditions.terms import Term, term_of
from federated_optimizer.canonical.conditions.truth_conditions import pattern_of
from federated_optimizer.canonical.regions.pattern_inclusion import (
    Marks,
    beginning,
    common_beginning,
    includes,
    marks_of,
    prefix_marks,
)
from federated_optimizer.canonical.regions.regions import Domain, Region, beginning_with, compared
from streamsql.algebra.expressions import Call, Expression
from streamsql.algebra.scalar_functions.like_patterns import LikePattern

_TRUE = compared(Domain.TRUTH, "=", 1)


class Patterns:
    """Patterns that texts are of.

    Args:
        regions: What is known of terms.
    """

    def __init__(self, regions: Mapping[Term, Region]) -> None:
        self._matched: dict[Expression, list[LikePattern]] = {}
        for term, values in regions.items():
            read = None if term.only is None else liked(term.only)
            if read is not None and values.points(1) == [1] and not values.null:
                self._matched.setdefault(read[0], []).append(read[1])

    def beginnings(self) -> Iterator[tuple[Expression, Region]]:
        """Yield texts and the region in which their patterns have them."""
        for text, patterns in self._matched.items():
            for pattern in patterns:
                yield text, beginning_with(beginning(pattern))

    def matched(self, predicate: Expression, regions: Mapping[Term, Region]) -> Region | None:
        """Return that LIKE is TRUE where another pattern or a range says so; None otherwise."""
        read = liked(predicate)
        if read is None:
            return None
        text, pattern = read
        wanted = marks_of(pattern)
        return (
            _TRUE if any(includes(wanted, inner) for inner in self._inner(text, regions)) else None
        )

    def _inner(self, text: Expression, regions: Mapping[Term, Region]) -> Iterator[Marks]:
        for pattern in self._matched.get(text, ()):
            yield marks_of(pattern)
        values = regions.get(term_of(text))
        if values is not None and values.hull is not None and not values.null:
            prefix = common_beginning(values.hull)
            if prefix is not None:
                yield prefix_marks(prefix)


def liked(predicate: Expression) -> tuple[Expression, LikePattern] | None:
    """Return the text and the constant pattern of a LIKE."""
    match predicate:
        case Call(function="LIKE" | "LIKE ESCAPE", arguments=(text, *rest)):
            pattern = pattern_of(rest)
            return None if pattern is None else (text, pattern)
        case _:
            return None
