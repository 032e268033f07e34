"""Conditions that all hold, and the strongest region that follows from them for any term.

What is known follows by:

- conditions over one term: the intersection of their regions,
- integers and times: all differences, closed; sums of multiples by the ends of their parts,
- other values: orders, closed, and limits along them; monotone arithmetic of DOUBLE at its limits,
- equal columns (not of DOUBLE, where 0.0 equals -0.0): one stands for all of them in any term,
- NULL: an expression that has a value has arguments that have one,
- columns with few values: a term over them is computed for each, and values go that no other
  condition lets pass,
- LIKE: a pattern that matches all that another one matches.

Everything found is true of each row for which the conditions hold. Not everything true is found.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain

from federated_optimizer.canonical.conditions import difference_bounds
from federated_optimizer.canonical.conditions.equal_terms import EqualColumns
from federated_optimizer.canonical.conditions.monotone_limits import computed_limits
from federated_optimizer.canonical.conditions.pattern_knowledge import Patterns
from federated_optimizer.canonical.conditions.pinned_values import (
    computed,
    matching_points,
    pinned_columns,
)
from federated_optimizer.canonical.conditions.presence import is_surely_present, needed_by
from federated_optimizer.canonical.conditions.scaled_differences import (
    NumberedAtoms,
    difference_of_parts,
)
from federated_optimizer.canonical.conditions.scaled_values import ScaledValues
from federated_optimizer.canonical.conditions.terms import (
    Condition,
    Term,
    difference_of,
    order_of,
    term_of,
)
from federated_optimizer.canonical.conditions.value_comparisons import (
    constant_region,
    is_small,
    order_of_values,
)
from federated_optimizer.canonical.exact_sums import limits_of
from federated_optimizer.canonical.expression_order import order_key
from federated_optimizer.canonical.regions import value_orders
from federated_optimizer.canonical.regions.regions import (
    BOTTOM,
    TOP,
    Cut,
    Domain,
    Region,
    before,
    behind,
    everything,
    region,
)
from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.data.types import DataType

_ROUNDS = 3
"""Most times that differences and orders are closed: each may sharpen the other."""


class Theory:
    """Conditions that all hold, and their consequences.

    Attributes:
        present: Expressions that are not NULL.
        equalities: Columns of which equal values are the same, in pairs.
        is_contradictory: Whether there is no row for which all conditions hold.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self.conditions = tuple(conditions)
        self.is_contradictory = False
        self._changes = 0
        self._regions: dict[Term, Region] = {}
        self._cache: dict[Term, Region] = {}
        for each in self.conditions:
            self._narrow(each.term, each.region)
        self.present: set[Expression] = set()
        self._find_present()
        self._patterns = Patterns(self._regions)
        for text, values in self._patterns.beginnings():
            self._narrow(term_of(text), values)
        for term, values in matching_points(self._regions):
            self._narrow(term, values)
        self._differences: difference_bounds.Bounds = {}
        self._numbers: dict[Expression, int] = {}
        self._orders: value_orders.Orders = {}
        self._mixed: value_orders.Orders = {}
        self._parts = self._values = ScaledValues((), self._regions)
        for _ in range(_ROUNDS):
            self._close_differences()
            before_orders = self._changes
            self._close_orders()
            if self.is_contradictory or self._changes == before_orders:
                break
        self.equalities = tuple(self._equalities())
        self._equal = EqualColumns(self.equalities, self._regions)
        for term in list(self._regions):
            if not self.is_contradictory:
                self._narrow(term, self.region(term))

    def region(self, term: Term) -> Region:
        """Return the strongest region that is known to have all values of a term."""
        found = self._cache.get(term)
        if found is None:
            found = self._cache[term] = self._derived(term)
        return found

    def implies(self, condition: Condition) -> bool:
        """Return whether a condition holds where all of these do; False: it may not."""
        return self.is_contradictory or condition.region.includes(self.region(condition.term))

    def implies_any(self, conditions: Iterable[Condition]) -> bool:
        """Return whether one of several conditions holds wherever all of these do."""
        if self.is_contradictory:
            return True
        for each in conditions:  # no generator: an index asks this for thousands of clauses
            known = self._cache.get(each.term) or self.region(each.term)
            if each.region.includes(known):
                return True
        return False

    def with_one_more(self, condition: Condition) -> "Theory":
        """Return what follows with a further condition."""
        return Theory((*self.conditions, condition))

    @cached_property
    def facts(self) -> dict[Term, Region]:
        """Regions of all terms that conditions are about, and of those between them."""
        terms = dict.fromkeys(self._regions)
        for atom in self._numbers:
            terms[term_of(atom)] = None
        for first, second in self._named_pairs():
            terms[difference_of(first, second)] = None
        for first, second in self._orders:
            if not (isinstance(first, Literal) or isinstance(second, Literal)):
                low, high = sorted((first, second), key=order_key)
                terms[order_of(low, high)] = None
        for each in self.present:
            if isinstance(each, Column):
                terms[term_of(each)] = None
        found = {term: self.region(term) for term in terms}
        return {term: known for term, known in found.items() if not known.is_everything}

    def _narrow(self, term: Term, known: Region) -> None:
        old = self._regions.get(term)
        new = known if old is None else old.intersection(known)
        if new != old:
            new = self._regions[term] = term.within(new)
            self._cache.clear()
            self._changes += new != old
        if new.is_empty:
            self.is_contradictory = True

    def _find_present(self) -> None:
        waiting = [t for t, known in self._regions.items() if not known.null]
        self.present = needed_by(part for term in waiting for part, _ in term.parts)
        for term, known in list(self._regions.items()):
            if known.null and all(part in self.present for part, _ in term.parts):
                self._narrow(term, known.without_null())

    # Integers and times ---------------------------------------------------------------------

    def _close_differences(self) -> None:
        """Close the differences of atoms, and narrow the regions of both by them."""
        pairs = [term for term in self._regions if _is_difference(term)]
        atoms = list(dict.fromkeys(atom for term in pairs for atom, _ in term.parts))
        if not atoms or len(atoms) >= difference_bounds.MAX_NODES:
            return
        self._numbers = {atom: number for number, atom in enumerate(atoms, 1)}
        self._parts = ScaledValues(atoms, self._regions)
        bounds = difference_bounds.closed(self._bounds(pairs), range(len(atoms) + 1))
        if bounds is None:
            self.is_contradictory = True
            return
        self._differences = bounds
        for atom in atoms:
            self._narrow(term_of(atom), self._difference_region(atom, None))
        for term in pairs:
            (first, _), (second, _) = term.parts
            self._narrow(term, self._difference_region(first, second))

    def _bounds(self, pairs: list[Term]) -> Iterator[tuple[int, int, int]]:
        for atom, number in self._numbers.items():
            least, most = limits_of(atom)
            known = self._regions.get(term_of(atom))
            if known is not None and known.hull is not None and not known.null:
                low, high = known.hull
                least = max(least, _number(low, least))
                most = min(most, _number(high, most))
            yield number, 0, most
            yield 0, number, -least
        for less, more in self._parts.ordered():
            yield self._numbers[less], self._numbers[more], 0
        for term in pairs:
            known = self._regions[term]
            (first, _), (second, _) = term.parts
            if known.null or known.hull is None:
                continue
            one, other = self._numbers[first], self._numbers[second]
            (low_rank, start, _), (high_rank, end, _) = known.hull
            if not high_rank and isinstance(end, int):
                yield one, other, end
            if not low_rank and isinstance(start, int):
                yield other, one, -start

    def _difference_region(self, first: Expression, second: Expression | None) -> Region:
        """Return where a difference of atoms lies, or an atom."""
        one = self._numbers[first]
        other = 0 if second is None else self._numbers[second]
        most, least = self._differences.get((one, other)), self._differences.get((other, one))
        low: Cut = BOTTOM if least is None else before(-least)
        high: Cut = TOP if most is None else behind(most)
        present = first in self.present and (second is None or second in self.present)
        spans = ((low, high),) if low < high else ()
        return Region(Domain.WHOLE, spans, null=not present)

    def _named_pairs(self) -> Iterator[tuple[Expression, Expression]]:
        """Yield pairs of atoms of which the difference is bounded on either side."""
        names = {number: atom for atom, number in self._numbers.items()}
        bounded = {(min(pair), max(pair)) for pair in self._differences if 0 not in pair}
        for one, other in sorted(bounded):
            yield names[one], names[other]

    # Other values ---------------------------------------------------------------------------

    def _close_orders(self) -> None:
        stated: value_orders.Orders = {}
        for term, known in self._regions.items():
            if term.domain == Domain.ORDER:
                (left, _), (right, _) = term.parts
                for pair, strict in value_orders.orders_of(left, right, known).items():
                    stated[pair] = strict or stated.get(pair, False)
        for _ in range(len(stated) + 1):
            before_round = self._changes
            self._compute_limits(stated)
            for (low, high), strict in stated.items():
                self._pass_limits(low, high, strict=strict)
            if self._changes == before_round:
                break
        self._values = ScaledValues(dict.fromkeys(chain(*stated)), self._regions)
        same = {pair: strict for pair, strict in stated.items() if _is_one_type(*pair)}
        for pair in self._values.ordered():
            same.setdefault(pair, False)
        orders = value_orders.closed(same)
        if orders is None:
            self.is_contradictory = True
            return
        self._orders, self._mixed = orders, stated
        for low, high in orders:
            if orders.get((high, low)) is None:
                continue
            first, second = sorted((low, high), key=order_key)
            self._narrow(order_of(first, second), value_orders.order_region(orders, first, second))

    def _compute_limits(self, stated: value_orders.Orders) -> None:
        """Bound monotone functions of one column that are compared: they are not NULL."""
        for value in dict.fromkeys(value for pair in stated for value in pair):
            if isinstance(value, Column | Literal) or value.dtype != DataType.DOUBLE:
                continue
            known = computed_limits(value, self._regions)
            if known is not None:
                self._narrow(term_of(value), known)

    def _pass_limits(self, low: Expression, high: Expression, *, strict: bool) -> None:
        """Give the upper limit of a greater value to a less one, and the lower one back."""
        for source, target, upper in ((high, low, True), (low, high, False)):
            known = constant_region(source) or self._regions.get(term_of(source))
            if known is None or known.hull is None or known.nan or known.null:
                continue
            cut = known.hull[1 if upper else 0]
            mixed = source.dtype != target.dtype
            rank, limit, _ = cut
            if rank or isinstance(target, Literal):
                continue
            if mixed and not is_small(limit):
                continue
            if mixed and target.dtype == DataType.INTEGER and not isinstance(target, Column):
                continue  # a sum is no term: its limits are those of its atoms
            passed = value_orders.passed_limit(cut, strict=strict, upper=upper)
            span = (BOTTOM, passed) if upper else (passed, TOP)
            term = term_of(target)
            limited = region if term.domain.is_discrete else Region
            self._narrow(term, limited(term.domain, (span,)))

    # Any term -------------------------------------------------------------------------------

    def _equalities(self) -> Iterator[tuple[Column, Column]]:
        """Yield columns that are equal; not of DOUBLE, where 0.0 equals -0.0."""
        pairs = [
            (term.parts[0][0], term.parts[1][0])
            for term, known in self._regions.items()
            if len(term.parts) == 2
            and (term.parts[0][1], term.parts[1][1]) == (1, -1)
            and known.points(1) == [0]
            and not known.null
        ]
        pairs += [
            (first, second)
            for first, second in self._named_pairs()
            if self._difference_region(first, second).points(1) == [0]
        ]
        for left, right in pairs:
            same = left.dtype == right.dtype != DataType.DOUBLE
            if same and isinstance(left, Column) and isinstance(right, Column):
                yield left, right

    def _derived(self, term: Term) -> Region:
        known = self._stated(term)
        renamed = self._equal.renamed(term) if self._equal else None
        if renamed is not None:
            other = self._stated(renamed.term).intersection(self._equal.known(renamed.term))
            known = known.intersection(renamed.region(other))
        return term.within(known)

    def _stated(self, term: Term) -> Region:
        known = self._regions.get(term, everything(term.domain))
        if known.null and all(is_surely_present(part, self.present) for part, _ in term.parts):
            known = known.without_null()
        if term.domain == Domain.WHOLE and len(term.parts) > 1:
            known = known.intersection(self._sum_region(term))
        elif term.domain == Domain.ORDER:
            known = known.intersection(
                order_of_values(term, self._orders, self._mixed, self._values, self._regions)
            )
        if isinstance(term.only, Column) or not term.columns:
            return known
        if term.only is not None:
            matched = self._patterns.matched(term.only, self._regions)
            known = known if matched is None else known.intersection(matched)
        values = pinned_columns(term, self._regions)
        pinned = None if values is None else computed(term, values)
        return known if pinned is None else known.intersection(pinned)

    def _sum_region(self, term: Term) -> Region:
        if _is_difference(term) and all(atom in self._numbers for atom, _ in term.parts):
            (first, _), (second, _) = term.parts
            return self._difference_region(first, second)
        ends = self._sum_of_ends(term)
        if not _is_difference(term):
            return ends
        atoms = NumberedAtoms(self._parts, self._numbers, self._differences)
        return difference_of_parts(term, ends, atoms, self.present)

    def _sum_of_ends(self, term: Term) -> Region:
        least = most = 0
        for atom, factor in term.parts:
            low, high = limits_of(atom)
            known = self._regions.get(term_of(atom))
            if known is not None and known.hull is not None:
                low, high = _number(known.hull[0], low), _number(known.hull[1], high)
            ends = (factor * low, factor * high)
            least, most = least + min(ends), most + max(ends)
        return region(Domain.WHOLE, [(before(least), behind(most))], null=True)


def _is_difference(term: Term) -> bool:
    return (
        term.domain == Domain.WHOLE
        and len(term.parts) == 2
        and term.parts[0][1] == -term.parts[1][1] == 1
    )


def _is_one_type(first: Expression, second: Expression) -> bool:
    return first.dtype == second.dtype


def _number(cut: Cut, otherwise: int) -> int:
    """Return the whole number at a closed end of a span."""
    return otherwise if cut[0] or not isinstance(cut[1], int) else cut[1]
