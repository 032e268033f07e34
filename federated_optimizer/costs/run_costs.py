"""Prices of the fragments of a run: what they send, and the work of base sites.

A row of another run's result costs its reader a step and as much as grouping it: measured, more
than a plain join that gives it (docs/decisions/0159-queries-move-onto-the-node-of-their-part.md).
"""

from collections.abc import Mapping
from dataclasses import replace

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.estimates import Estimating, estimate
from federated_optimizer.costs.fragment_estimates import FragmentEstimate
from federated_optimizer.costs.work import Work
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Plan, RemoteSource, transform_up
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
        work = Work(self._estimating, base, kept, below).of(plan)
        handed = sum(
            self._estimating.of(self._whole(name)).events
            for name in fragment.inputs
            if self._fragments[name].engine == Engine.BASE
        )
        return replace(work, cpu=work.cpu + handed * (base.step + base.group) / 1_000)

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
