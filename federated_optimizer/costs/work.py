"""Costs of computing: processor time and memory at gateways and base sites."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.recursion_prices import moved_per_change
from federated_optimizer.costs.recursion_workload import asked_share, assumed_rows
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.statistics.default_facts import DEGREE
from federated_optimizer.statistics.speeds import Kept, Micros
from streamsql.algebra.operators import (
    Aggregate,
    AggregateFunction,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    OverWindow,
    Plan,
    Project,
    Scan,
    SessionWindow,
    SetOperation,
    TopN,
    Window,
    WindowBounds,
    Younger,
    is_open,
)

_KEPT_AS_SUMS = frozenset(
    {
        AggregateFunction.COUNT_ALL,
        AggregateFunction.COUNT,
        AggregateFunction.SUM,
        AggregateFunction.AVG,
    }
)
"""Aggregates that keep a number of a group, and not its rows."""


class Work:
    """Prices of operators by the rows that go through them, each computed once.

    Args:
        estimating: Of the rows.
        micros: Speeds of the sites that compute.
        kept: Memory of what they keep.
        elsewhere: Sub-plans that other sites compute.
    """

    def __init__(
        self,
        estimating: Estimating,
        micros: Micros,
        kept: Kept,
        elsewhere: Iterable[Plan] = (),
    ) -> None:
        self._estimating, self._micros, self._kept = estimating, micros, kept
        # By id: the plan keeps it from reuse.
        self._known = {id(plan): (plan, NOTHING) for plan in elsewhere}

    def of(self, plan: Plan) -> Cost:
        """Return the price of a plan without recursive references, down to its leaves."""
        known = self._known.get(id(plan))
        if known is None:
            below = sum(map(self.of, _inputs(plan)), self.here(plan))
            known = self._known[id(plan)] = (plan, below)
        return known[1]

    def here(self, plan: Plan) -> Cost:
        """Return the price of an operator without what is below it."""
        micros, kept = self._micros, self._kept
        match plan:
            case Scan():
                read = self._estimating.of(plan)
                return Cost(cpu=read.events / read.bunched * micros.step / 1_000)
            case Filter() | Project():
                return self._passed(plan, (micros.filter, micros.filter_row))
            case WindowBounds(input=scan):
                return self._passed(plan, (micros.window,) * 2, self._estimating.of(scan).rows)
            case Window():
                rows = self._estimating.of(plan).rows
                return self._passed(plan, (micros.window,) * 2, rows * kept.window)
            case Join() | AsOfJoin() | Younger():
                rows = self._rows(plan)
                return self._passed(plan, (micros.join, micros.join_row), rows * kept.join)
            case Aggregate(aggregates=calls) if {c.function for c in calls} <= _KEPT_AS_SUMS:
                return self._summed(plan)
            case (
                Aggregate()
                | Distinct()
                | SetOperation()
                | TopN()
                | OverWindow()
                | HopWindow()
                | SessionWindow()
            ):
                rows = self._rows(plan)
                return self._passed(plan, (micros.group, micros.group_row), rows * kept.order)
            case Fixpoint():
                return self._recursion(plan)
            case _:
                return NOTHING

    def _summed(self, plan: Aggregate) -> Cost:
        """Return the price of sums: rows of one group that change at once are added up first."""
        micros, read = self._micros, self._estimating.of(plan.input)
        groups = self._estimating.of(plan).rows
        touched = replace(read, bunched=max(min(read.bunched, groups), 1.0))
        share = touched.bunched / read.bunched
        added = (1.0 - share) * read.events * micros.filter_row
        cpu = at_once(touched.scaled(share), micros.group, micros.group_row) + added
        return Cost(cpu=cpu / 1_000, state=groups * self._kept.group)

    def _recursion(self, plan: Fixpoint) -> Cost:
        """Return the price of a recursion: of rows that it reads, and that it derives of them.

        A link that comes or goes moves rows of what is asked for; so does a base row that comes or
        goes because something is asked for.
        """
        base = [leaf for branch in plan.base for leaf in _closed_in(branch)]
        steps = [leaf for branch in plan.step for leaf in _closed_in(branch)]
        share = asked_share(dict.fromkeys((*base, *steps)), self._estimating.of)
        links = max((self._estimating.of(leaf).rows for leaf in steps), default=0.0)
        view = assumed_rows(plan, links, share)
        began, moving = self._events(base), self._events(steps)
        moved = moving * moved_per_change(view, links, DEGREE.value)
        asked = max(began - share * moving, 0.0) * view / max(links * share, 1.0)
        cpu = (began + moving + moved + asked) * self._micros.recursion / 1_000
        kept = (self._rows(plan) + view) * self._kept.recursion
        return Cost(cpu=cpu, state=kept, derived=cpu)

    def merged(self, parts: Estimate) -> Cost:
        """Return the price of putting the parts of several sites together."""
        cpu = parts.events * self._micros.group / 1_000
        return Cost(cpu=cpu, state=parts.rows * self._kept.order)

    def copied(self, side: Plan, times: int) -> Cost:
        """Return the price of one side of a join that so many more sites join and keep."""
        rows = self._estimating.of(side)
        cpu = rows.events * self._micros.join / 1_000
        return Cost(cpu=cpu * times, state=rows.rows * self._kept.join * times)

    def _passed(self, plan: Plan, micros: tuple[float, float], kept: float = 0.0) -> Cost:
        """Return the price of an operator that keeps bytes.

        `micros` are those of the first row of some that change at once, and of each further one.
        """
        inputs = map(self._estimating.of, _inputs(plan))
        cpu = sum(at_once(each, *micros) for each in inputs)
        return Cost(cpu=cpu / 1_000, state=kept)

    def _events(self, plans: Iterable[Plan]) -> float:
        return sum(self._estimating.of(each).events for each in plans)

    def _rows(self, plan: Plan) -> float:
        return sum(self._estimating.of(child).rows for child in _inputs(plan))


def at_once(rows: Estimate, first: float, further: float) -> float:
    """Return the microseconds a second of rows in an operator.

    Args:
        rows: Some change at once.
        first: Microseconds of the first of these.
        further: Of each further one.

    Examples:
        >>> at_once(Estimate(100.0, 2.0, 0.0), 6.0, 1.0)
        12.0
        >>> at_once(Estimate(100.0, 20.0, 0.0, bunched=10.0), 6.0, 1.0)
        30.0
    """
    bunches = rows.events / rows.bunched
    return bunches * first + (rows.events - bunches) * further


def _inputs(plan: Plan) -> tuple[Plan, ...]:
    """Return the inputs of an operator; of a recursion the largest plans that do not read it."""
    if not isinstance(plan, Fixpoint):
        return plan.inputs
    return tuple(leaf for branch in plan.inputs for leaf in _closed_in(branch))


def _closed_in(plan: Plan) -> Iterator[Plan]:
    if is_open(plan):
        for child in plan.inputs:
            yield from _closed_in(child)
    else:
        yield plan
