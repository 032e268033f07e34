"""The plan that is taken: the one asked for, or the cheapest, and why.

A query that runs keeps its plan unless another one is much cheaper: a change of plan starts it
anew, and estimates are not that good.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.method import Method
from federated_optimizer.alternatives.recursion.recursions import MUCH
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.recursion_prices import times_text
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.memo.complete_plans import taken_plan
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo, Selection
from federated_optimizer.network.topology import Topology
from federated_optimizer.search.building import build
from federated_optimizer.search.cheapest_plans import cheapest
from federated_optimizer.search.cut_prices import CutPrices
from federated_optimizer.search.metric_words import words_of
from federated_optimizer.search.plan_words import plan_words
from federated_optimizer.search.recursion_alternatives import keeping_ways
from federated_optimizer.search.top_down import best
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.explain import describe
from streamsql.algebra.metrics import BY_BYTES, Metric
from streamsql.algebra.operators import Plan
from streamsql.errors import UnsupportedError

EXACT = 10.0
"""Smaller factors are told with two digits."""

AS_MUCH = 1.05
"""Smaller factors would be told as 1."""

PUSHED = 1
"""The number of the plan that pushes everything."""

MAX_LISTED = 20
"""Plans that are listed."""

COMPARED = 4
"""Of the cheapest plans, where several base sites make it dear to price one."""


Running = tuple[int, str]
"""The number of a plan that runs, in the memo that it was taken from, and its digest."""

NOTHING_RUNS: Running = (0, "")

LARGE = 60
"""Sub-plans; of a query with more of them only the first plans are priced again."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A complete plan.

    Attributes:
        number: Of it in the memo.
        taken: To be cut: the plan of the query with the orders of joins and the methods that were
            chosen.
        cost: By the estimates.
        digest: Of what was chosen; another memo may number it otherwise.
    """

    number: int
    taken: Taken = field(compare=False)
    cost: Cost
    digest: str

    @property
    def plan(self) -> Plan:
        """The plan of the query with the orders of joins that were chosen."""
        return self.taken.plan

    @property
    def methods(self) -> tuple[Method, ...]:
        """All that were chosen."""
        return self.taken.methods


@dataclass(frozen=True, slots=True)
class Listed:
    """A complete plan as EXPLAIN lists it.

    Attributes:
        number: Of it in the memo.
        cost: By the estimates.
        words: Where operators are that had a choice.
        whole_changes: Whether the changes of one reading arrive together, as far as the plan has a
            say in it: no gateway joins rows of other gateways or of tables.
    """

    number: int
    cost: Cost
    words: str
    whole_changes: bool = True


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The complete plans of a query.

    Attributes:
        listed: The cheapest ones, and those that push or ship everything.
        chosen: The number of the one that is taken.
        why: It is taken, in words.
        left_out: How many are not listed.
        assumed: What the prices rest on that nobody has counted, in words.
        refused: Methods that operators do not have, with the reason in words.
        metric: By which they are compared.
        not_considered: Methods that are left out, with the heuristic in words.
    """

    listed: tuple[Listed, ...]
    chosen: int
    why: str
    left_out: int
    assumed: tuple[str, ...]
    refused: tuple[str, ...] = ()
    metric: Metric = BY_BYTES
    not_considered: tuple[str, ...] = ()


class Search:
    """The complete plans of one query.

    Attributes:
        memo: Of the query.
        weighing: By what plans are compared.
        query: The plan that is ready to be cut.
        statistics: What prices rest on.

    Args:
        whole_changes: Whether changes of one reading must arrive together; see `build`.
        kept: Rules by which plans are not considered.
    """

    def __init__(  # noqa: PLR0913  (what a choice depends on)
        self,
        query: Plan,
        topology: Topology,
        statistics: Statistics,
        metric: Metric = BY_BYTES,
        *,
        whole_changes: bool = False,
        kept: Heuristics = ALL,
    ) -> None:
        self.query, self._topology, self.statistics = query, topology, statistics
        self._whole_changes, self._kept = whole_changes, kept
        self.weighing = Weighing(metric)
        self.memo = build(query, topology, statistics, whole_changes=whole_changes, kept=kept)

    def knowing(self, statistics: Statistics) -> "Search":
        """Return the complete plans of the same query by other statistics."""
        return Search(
            self.query,
            self._topology,
            statistics,
            self.weighing.metric,
            whole_changes=self._whole_changes,
            kept=self._kept,
        )

    def taken(
        self,
        asked: int = 0,
        running: Running = NOTHING_RUNS,
        *,
        replanned: bool = False,
        much: float = MUCH,
    ) -> Choice:
        """Return the plan that is taken.

        Args:
            asked: The number that the query asks for; 0: none.
            running: The plan that the query runs: number and digest, perhaps of another memo.
            replanned: The query runs, with other sites or definitions: it takes the cheapest plan
                if there is none of the number any more.
            much: How many times cheaper than the running plan another one has to be.

        Raises:
            UnsupportedError: There is no plan of the number asked for.
        """
        count = self.memo.count()
        if asked > count and replanned:
            return self._cheapest
        if asked > count:
            plans = "one plan" if count == 1 else f"{count:,} plans"
            raise UnsupportedError(
                f"this query has {plans}; there is no plan {asked}",
                hint="EXPLAIN ALTERNATIVES lists them",
                code="bad_option",
            )
        if asked:
            return self.plan(asked)
        cheap = self._cheapest
        current = self._found(running) or self._with_running_ways()
        if current is not None and self._value(current) / much <= self._value(cheap):
            return current
        return cheap

    def number_of(self, running: Running) -> int:
        """Return the number here of the plan that a query runs; 0: it is not among the compared."""
        number, digest = running
        if not digest:
            return 0
        numbers = [number] if 0 < number <= self.memo.count() else []
        for each in (*numbers, *self._compared()):
            if _digest(self.memo, self.memo.selection(each)) == digest:
                return each
        return 0

    def _found(self, running: Running) -> Choice | None:
        number = self.number_of(running)
        return self.plan(number) if number else None

    def _with_running_ways(self) -> Choice | None:
        """Return the cheapest plan whose recursions run as they do now, if some run."""
        kept = keeping_ways(self.memo, self.statistics.placed)
        return None if kept is None else self.plan(best(kept, self.weighing))

    def plan(self, number: int) -> Choice:
        """Return the plan of a number."""
        return self._chosen(number, self._cost(number))

    def _chosen(self, number: int, cost: Cost) -> Choice:
        selection = self.memo.selection(number)
        taken = taken_plan(self.memo, selection, self._kept)
        return Choice(number, taken, cost, _digest(self.memo, selection))

    def _cost(self, number: int) -> Cost:
        """Return the price of a plan; what the search counts twice is paid once here."""
        selection = self.memo.selection(number)
        if len(self._topology.bases) > 1:  # what moves between them is not in the memo
            taken = taken_plan(self.memo, selection, self._kept)
            return CutPrices.of(taken, self._topology, self.statistics, self._kept)
        return self.memo.cost(selection)

    def alternatives(self, asked: int = 0, running: Running = NOTHING_RUNS) -> Alternatives:
        """Return what EXPLAIN ALTERNATIVES shows; see `taken`.

        Raises:
            UnsupportedError: There is no plan of the number asked for.
        """
        taken = self.taken(asked, running)
        count = self.memo.count()
        numbers = [taken.number, *self._compared(), *self._further()]
        listed = sorted(
            (self._listed(number) for number in self._different(numbers)[:MAX_LISTED]),
            key=self._order,
        )
        if asked:
            why = "the query asks for it"
        elif self._value(taken) > self._value(listed[0]):
            does = words_of(self.weighing.metric).does
            why = (
                f"it runs, and plan {listed[0].number}, the cheapest, {does} more than half as much"
            )
        else:
            why = self._why(taken, listed)
        return Alternatives(
            *(tuple(listed), taken.number, why, count - len(listed)),
            self.memo.assumed,
            self.memo.refused,
            self.weighing.metric,
            self.memo.not_considered,
        )

    @cached_property
    def _cheapest(self) -> Choice:
        costs = {number: self._cost(number) for number in self._compared()}
        number = min(costs, key=lambda n: (*self.weighing.order(costs[n]), n))
        return self._chosen(number, costs[number])

    def _value(self, plan: Choice | Listed) -> float:
        return self.weighing.value(plan.cost)

    def _order(self, plan: Choice | Listed) -> tuple[float, ...]:
        return (*self.weighing.order(plan.cost), plan.number)

    def _compared(self) -> list[int]:
        """Return the plans that are priced as a whole: of several bases each has to be cut."""
        most = MAX_LISTED
        if len(self._topology.bases) > 1:
            most = COMPARED if len(self.memo.plans) <= LARGE else 0
        cheap = cheapest(self.memo, self.weighing, most)
        found = (best(self.memo, self.weighing), PUSHED, self.memo.shipping, *cheap)
        return list(dict.fromkeys(found))[:MAX_LISTED]

    def _further(self) -> list[int]:
        """Return more of the cheapest plans: many are others' in another order of joins."""
        reordered = any(a.is_rewritten for each in self.memo.alternatives.values() for a in each)
        if not reordered or len(self._topology.bases) > 1:
            return []
        return cheapest(self.memo, self.weighing, 3 * MAX_LISTED)

    def _different(self, numbers: Iterable[int]) -> list[int]:
        """Return numbers without those of the same plan: a group read twice is chosen once.

        Of orders of joins by which the same travels, at one price, the first is kept.
        """
        found: dict[tuple[frozenset[tuple[Wanted, Alternative]], float], int] = {}
        for number in numbers:
            selection = self.memo.selection(number)
            taken = frozenset(
                (wanted, each)
                for wanted, each in selection.items()
                if each.method not in (Method.BASE, Method.ORDER)
            )
            value = self.weighing.value(self.memo.cost(selection))
            found.setdefault((taken, round(value, 6)), number)
        return list(found.values())

    def _listed(self, number: int) -> Listed:
        selection = self.memo.selection(number)
        words = plan_words(self.memo, selection)
        if selection == self.memo.selection(PUSHED):
            words = f"push everything: {words}" if words else "push everything"
        elif selection == self.memo.selection(self.memo.shipping):
            words = f"ship everything: {words}"
        whole = not any(alternative.is_in_network for alternative in selection.values())
        return Listed(number, self._cost(number), words, whole)

    def _why(self, taken: Choice, listed: list[Listed]) -> str:
        others = [each for each in listed if each.number != taken.number]
        if not others:
            return "there is no other"
        second, words = others[0], words_of(self.weighing.metric)
        least, more = self._value(taken), self._value(others[0])
        if more <= least:
            same = f"plan {second.number} costs as much"
            if second.cost.bytes > taken.cost.bytes:
                return f"{same} by {self.weighing.metric}, and sends more"
            derives_more = second.cost.derived > AS_MUCH * taken.cost.derived
            return f"{same}, and its recursions derive more" if derives_more else same
        if not least:
            return f"{words.nothing}; plan {second.number}, the second, {words.does} some"
        factor = more / least
        times = "about" if factor < AS_MUCH else f"{factor:.2g} times"
        if factor >= EXACT:
            times = times_text(factor)
        return f"{words.least}; plan {second.number}, the second, {words.does} {times} as much"


def _digest(memo: Memo, selection: Selection) -> str:
    """Return a short name of the methods that were chosen, each with its operator.

    A plan has one name, whether or not gateways might join rows of other gateways instead.
    """
    chosen = (
        f"{_chosen(alternative)} {describe(memo.plan(wanted))}"
        for wanted, alternative in selection.items()
        if alternative.is_in_network
        or sum(not each.is_in_network for each in memo.alternatives[wanted]) > 1
    )
    return sha256("\n".join(chosen).encode()).hexdigest()[:16]


def _chosen(alternative: Alternative) -> str:
    return alternative.words if alternative.is_rewritten else alternative.method
