"""Groups by plan, and complete plans by number.

A complete plan chooses an alternative of the root and of everything that it asks for. Complete
plans are numbered from 1 in the order of the alternatives: 1 takes the first everywhere, which
pushes everything. The plan that ships everything changes places with the last one, if it is not the
first. A number says the same as long as the query, the definitions and the sites are the same,
whatever the statistics say, but that a stored table may become too large for gateways.
A group that is read twice is computed once: by what its first reading takes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from federated_optimizer.alternatives.method import Method
from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.memo.groups import Alternative, Wanted
from streamsql.algebra.operators import Plan

Selection = Mapping[Wanted, Alternative]
"""A complete plan: what is asked of groups, and the alternative that gives it."""


class Memo:
    """The groups of a query.

    Attributes:
        plans: Of the groups, by number.
        alternatives: By what is asked of a group; never none.
        root: What the query asks for.
        assumed: What costs rest on that nobody has counted, in words.
        refused: Methods that an operator does not have, with the reason in words.
        not_considered: Methods that it might have, with the heuristic that leaves them out.
        first: Of groups that have too many alternatives, how many of the first ones may be in a
            complete plan with a number; only the plan that ships everything has a number anyway.
    """

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.alternatives: dict[Wanted, tuple[Alternative, ...]] = {}
        self.root: Wanted | None = None
        self.assumed: tuple[str, ...] = ()
        self.refused: tuple[str, ...] = ()
        self.not_considered: tuple[str, ...] = ()
        self.first: Mapping[Wanted, int] = {}
        self._groups: dict[Plan, int] = {}
        self._counts: dict[Wanted, int] = {}
        self._shipping: int | None = None

    def group(self, plan: Plan) -> int:
        """Return the number of a plan's group."""
        number = self._groups.setdefault(plan, len(self.plans))
        if number == len(self.plans):
            self.plans.append(plan)
        return number

    def plan(self, wanted: Wanted) -> Plan:
        """Return the plan of a group."""
        return self.plans[wanted.group]

    @property
    def whole(self) -> Wanted:
        """The group that the query asks for, with its properties."""
        assert self.root is not None  # noqa: S101  (set by who builds the memo)
        return self.root

    def count(self, wanted: Wanted | None = None) -> int:
        """Return the number of complete plans, or of those of a part."""
        if wanted is None:
            return self.count(self.whole) + bool(self.first)
        if wanted not in self._counts:
            self._counts[wanted] = sum(self.size(a) for a in self.open(wanted))
        return self._counts[wanted]

    def open(self, wanted: Wanted) -> tuple[Alternative, ...]:
        """Return the alternatives that complete plans take."""
        return self.alternatives[wanted][: self.first.get(wanted)]

    def narrow(self, first: Mapping[Wanted, int]) -> None:
        """Leave complete plans out; see `first`."""
        self.first = first
        self._counts.clear()

    def size(self, alternative: Alternative) -> int:
        """Return the number of complete plans that take an alternative first."""
        found = 1
        for child in alternative.children:
            found *= self.count(child)
        return found

    def selection(self, number: int) -> Selection:
        """Return the complete plan of a number from 1 to `count()`."""
        found: dict[Wanted, Alternative] = {}
        if self.first and number == self.count():
            self._ship(self.whole, found)
        else:
            self._take(self.whole, self.rank(number), found)
        return found

    def number(self, rank: int) -> int:
        """Return the number of the complete plan at a place in the order of the alternatives."""
        return self._exchanged(rank) + 1

    def rank(self, number: int) -> int:
        """Return the place of a complete plan, from 0; see `number`."""
        return self._exchanged(number - 1)

    @property
    def shipping(self) -> int:
        """The number of the plan that ships everything."""
        return self.count() if self.first else self.number(self._rank_of_shipping(self.whole))

    def _exchanged(self, place: int) -> int:
        """Return a place where the plan that ships everything and the last one are exchanged."""
        if self.first:
            return place
        if self._shipping is None:
            self._shipping = self._rank_of_shipping(self.whole)
        if not self._shipping:
            return place  # it pushes everything, too
        last = self.count() - 1
        return {last: self._shipping, self._shipping: last}.get(place, place)

    def _rank_of_shipping(self, wanted: Wanted) -> int:
        """Return the place, of a part's plans, of the last one in which gateways meet no rows."""
        alternatives, chosen, rank = self.alternatives[wanted], self._shipped(wanted), 0
        for child in alternatives[chosen].children:
            rank = rank * self.count(child) + self._rank_of_shipping(child)
        return rank + sum(map(self.size, alternatives[:chosen]))

    def _shipped(self, wanted: Wanted) -> int:
        return max(n for n, each in enumerate(self.alternatives[wanted]) if _ships(each))

    def _ship(self, wanted: Wanted, found: dict[Wanted, Alternative]) -> None:
        if wanted not in found:
            found[wanted] = self.alternatives[wanted][self._shipped(wanted)]
            for child in found[wanted].children:
                self._ship(child, found)

    def _take(self, wanted: Wanted, rank: int, found: dict[Wanted, Alternative]) -> None:
        if wanted in found:
            return
        for alternative in self.open(wanted):
            size = self.size(alternative)
            if rank < size:
                break
            rank -= size
        found[wanted] = alternative
        for child, part in self.ranks(alternative, rank):
            self._take(child, part, found)

    def ranks(self, alternative: Alternative, rank: int) -> Iterator[tuple[Wanted, int]]:
        """Yield the children of an alternative with the place of each in its own order."""
        size = self.size(alternative)
        for child in alternative.children:
            size //= self.count(child)
            place, rank = divmod(rank, size)
            yield child, place

    def cost(self, selection: Selection) -> Cost:
        """Return the price of a complete plan; what is read twice is paid once."""
        paid = sum((alternative.cost for alternative in selection.values()), NOTHING)
        return replace(paid, milliseconds=self._slowest(selection))

    def _slowest(self, selection: Selection) -> float:
        """Return the milliseconds of the slowest path of a complete plan."""
        known: dict[Wanted, float] = {}

        def of(wanted: Wanted) -> float:
            if wanted not in known:
                taken = selection[wanted]
                below = max(map(of, taken.children), default=0.0)
                known[wanted] = taken.cost.milliseconds + below
            return known[wanted]

        return of(self.whole)


def _ships(alternative: Alternative) -> bool:
    """Whether its rows go to the base as they are."""
    return not alternative.is_in_network and alternative.method not in (Method.EARLY, Method.TREE)
