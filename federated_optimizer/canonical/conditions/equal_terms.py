"""Terms over columns that are equal: one column stands for all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from federated_optimizer.canonical.canonical_expressions import canonical
from federated_optimizer.canonical.conditions.terms import Term, order_of, term_of, term_of_sum
from federated_optimizer.canonical.expression_order import order_key
from federated_optimizer.canonical.regions.regions import Cut, Domain, Region, everything
from streamsql.algebra.expressions import Column, Expression, Literal, map_columns


@dataclass(frozen=True, slots=True)
class Renamed:
    """A term over the columns that stand for others; its values are turned round if `mirrored`."""

    term: Term
    mirrored: bool

    def region(self, values: Region) -> Region:
        """Return a region of either of the two terms as one of the other."""
        return _mirrored(values) if self.mirrored else values


class EqualColumns:
    """Columns that are equal, and what is known of terms over them.

    Args:
        pairs: Of columns of one type, of which equal values are the same.
        regions: By term.
    """

    def __init__(
        self, pairs: Iterable[tuple[Column, Column]], regions: Mapping[Term, Region]
    ) -> None:
        self._first: dict[int, Column] = {}
        for first, second in pairs:
            self._unite(first, second)
        self._known: dict[Term, Region] = {}
        for term, values in regions.items() if self._first else ():
            renamed = self.renamed(term)
            if renamed is not None:
                old = self._known.get(renamed.term, everything(renamed.term.domain))
                self._known[renamed.term] = old.intersection(renamed.region(values))

    def __bool__(self) -> bool:
        return bool(self._first)

    def _unite(self, first: Column, second: Column) -> None:
        one = self._first.get(first.position, first)
        other = self._first.get(second.position, second)
        low, high = sorted((one, other), key=order_key)
        self._first[first.position] = self._first[second.position] = low
        self._first[low.position] = low
        for position, column in list(self._first.items()):
            if column.position == high.position:
                self._first[position] = low

    def renamed(self, term: Term) -> Renamed | None:
        """Return a term over the columns that stand for its own; None if it reads no such one."""
        if not any(column in self._first for column in term.columns):
            return None
        parts = [(self._put(part), factor) for part, factor in term.parts]
        if any(isinstance(part, Literal) for part, _ in parts):
            return None
        if term.domain == Domain.ORDER:
            return _order(parts[0][0], parts[1][0])
        if len(parts) == 1:
            made = term_of(parts[0][0])
            return Renamed(made, mirrored=False) if made.domain == term.domain else None
        return _sum(parts)

    def known(self, term: Term) -> Region:
        """Return what is known of a term that reads only columns that stand for others."""
        return self._known.get(term, everything(term.domain))

    def _put(self, part: Expression) -> Expression:
        return canonical(map_columns(part, lambda c: self._first.get(c.position, c)))


def _order(left: Expression, right: Expression) -> Renamed | None:
    if left == right:
        return None
    if order_key(right) < order_key(left):
        return Renamed(order_of(right, left), mirrored=True)
    return Renamed(order_of(left, right), mirrored=False)


def _sum(parts: list[tuple[Expression, int]]) -> Renamed | None:
    factors: dict[Expression, int] = {}
    for part, factor in parts:
        factors[part] = factors.get(part, 0) + factor
    factors = {part: factor for part, factor in factors.items() if factor}
    if not factors:
        return None
    term, scale = term_of_sum(factors)
    return Renamed(term, mirrored=scale < 0) if abs(scale) == 1 else None


def _mirrored(values: Region) -> Region:
    spans = tuple((_turned(high), _turned(low)) for low, high in reversed(values.spans))
    return Region(values.domain, spans, values.nan, values.null)


def _turned(cut: Cut) -> Cut:
    rank, value, side = cut
    return (-rank, value if isinstance(value, str) else -value, -side)
