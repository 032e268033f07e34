"""Prices of the fragments of a run: what they send, and the work of base sites.

Registration and moves compare plans by these. A base fragment takes a step whenever something comes
that it reads, looks at each row that it may need, and makes the rows of its joins: measured, to
hand on a row of a result costs as much as a join that gives it
(docs/decisions/0162-registration-compares-reading-with-computing.md).
"""

from collections.abc import Mapping
from dataclasses import replace

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.fragment_estimates import FragmentEstimate
from federated_optimizer.costs.handed_rows import HandedRows, handed_rows, operators_above
from federated_optimizer.costs.relations.estimates import Estimating, estimate
from federated_optimizer.costs.work import Work
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import AsOfJoin, Join, Plan, RemoteSource, transform_up
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle


class RunCosts:
    """Prices of the fragments of one bundle, by present facts.

    Args:
        bundle: Of the run.
        statistics: All facts.
        sent: What its fragments send.
    """

    def __init__(
        self,
        bundle: FragmentBundle,
        statistics: Statistics,
        sent: Mapping[str, FragmentEstimate],
    ) -> None:
        self._bundle, self._statistics, self._sent = bundle, statistics, sent
        self._estimating = Estimating(statistics)
        self._fragments = {fragment.id: fragment for fragment in bundle.fragments}
        self._plans: dict[str, Plan] = {}

    def of(self, name: str, *, with_result: bool = True) -> Cost:
        """Return the price of a fragment; a silent result is sent nowhere.

        `with_result` says whether sending a result counts, which is the same in any plan.
        """
        fragment = self._fragments[name]
        is_sent = bool(fragment.consumer) or (with_result and not self._bundle.silent)
        sent = self._sent[name].cost if is_sent else NOTHING
        return sent if fragment.engine != Engine.BASE else sent + self._work(fragment)

    @property
    def milliseconds(self) -> float:
        """Milliseconds from a reading until its change of the answer is sent: the longest path."""
        results = (f.id for f in self._bundle.fragments if not f.consumer)
        return max((self._sent[name].cost.milliseconds for name in results), default=0.0)

    def filling(self, name: str) -> float:
        """Return the milliseconds of work until a base fragment has processed its first rows."""
        fragment = self._fragments[name]
        if fragment.engine != Engine.BASE:
            return 0.0
        micros = self._statistics.speeds.base
        read = sum(estimate(self._whole(i), self._statistics).rows for i in fragment.inputs)
        return read * (micros.join + micros.group) / 1_000

    def _work(self, fragment: Fragment) -> Cost:
        base, kept = self._statistics.speeds.base, self._statistics.speeds.kept
        below = [self._whole(name) for name in fragment.inputs]
        plan = self._whole(fragment.id)
        handed = list(handed_rows(plan, below))
        above = [node for each in handed for node in each.above]
        work = Work(self._estimating, base, kept, [*below, *above]).of(plan)
        read = (self._estimating.of(each) for each in below)
        steps = sum(each.events / each.bunched for each in read)
        rows = sum(map(self._looked_at, handed))
        rows += sum(map(self._events, filter(_is_join, operators_above(plan, below))))
        return replace(work, cpu=work.cpu + (steps * base.step + rows * base.filter) / 1_000)

    def _looked_at(self, handed: HandedRows) -> float:
        """Return the rows a second that filters and projections above a fragment look at."""
        kept = self._events(handed.above[-1]) if handed.above else 0.0
        return self._events(handed.asked) + kept

    def _events(self, plan: Plan) -> float:
        return self._estimating.of(plan).events

    def _whole(self, name: str) -> Plan:
        """Return a fragment's plan over sources; those below it are parts of it, as they are."""
        if name not in self._plans:
            fragment = self._fragments[name]
            self._plans[name] = fragment.plan
            self._plans[name] = transform_up(fragment.plan, self._opened)
        return self._plans[name]

    def _opened(self, node: Plan) -> Plan:
        if isinstance(node, RemoteSource) and node.fragment in self._fragments:
            return self._whole(node.fragment)
        return node


def _is_join(plan: Plan) -> bool:
    return isinstance(plan, Join | AsOfJoin)
