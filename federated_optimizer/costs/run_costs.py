"""Prices of the fragments of a run: what they send, and the work and memory of their sites.

Registration and moves compare plans by these. A base fragment takes a step whenever something comes
that it needs, looks at each row that it may need, and makes the rows of its joins: measured, to
hand on a row of a result costs as much as a join that gives it
(docs/decisions/0162-registration-compares-reading-with-computing.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from federated_optimizer.costs.cost import NOTHING, Cost
from federated_optimizer.costs.fragment_estimates import FragmentEstimate
from federated_optimizer.costs.handed_rows import (
    HandedRows,
    handed_rows,
    operators_above,
    reading_price,
)
from federated_optimizer.costs.relations.estimates import Estimating, estimate
from federated_optimizer.costs.work import Work, at_once
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import (
    AsOfJoin,
    Filter,
    Join,
    Plan,
    Project,
    RemoteSource,
    UnionAll,
    transform_up,
)
from streamsql.wire.bundles.reader_conditions import RowCondition
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

Paid = Callable[[Feed, RowCondition], float]


class RunCosts:
    """Prices of the fragments of one bundle, by present facts.

    Args:
        bundle: Of the run.
        statistics: All facts.
        sent: What its fragments send.
        paid: Returns the share of looking rows of another run up that this one pays.
    """

    def __init__(
        self,
        bundle: FragmentBundle,
        statistics: Statistics,
        sent: Mapping[str, FragmentEstimate],
        paid: Paid = lambda _feed, _condition: 1.0,
    ) -> None:
        self._bundle, self._statistics, self._sent = bundle, statistics, sent
        self._estimating, self._paid = Estimating(statistics), paid
        self._feeds = {feed.fragment: feed for feed in bundle.feeds}
        self._fragments = {fragment.id: fragment for fragment in bundle.fragments}
        self._plans: dict[str, Plan] = {}

    def of(self, name: str, *, with_result: bool = True) -> Cost:
        """Return the price of a fragment; a silent result is sent nowhere.

        `with_result` says whether sending a result counts, which is the same in any plan.
        """
        fragment = self._fragments[name]
        is_sent = bool(fragment.consumer) or (with_result and not self._bundle.silent)
        sent = self._sent[name].cost if is_sent else NOTHING
        match fragment.engine:
            case Engine.BASE:
                return sent + self._work(fragment)
            case Engine.GATEWAY:
                return sent + self._work_of_gateways(fragment)
            case _:
                return sent

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
        below = [self._whole(name) for name in fragment.inputs]
        read = sum(estimate(each, self._statistics).rows for each in below)
        above = list(operators_above(self._whole(name), below))
        joins = any(map(_is_join, above))
        groups = not all(_is_join(each) or _is_row_by_row(each) for each in above)
        return read * (micros.filter_row + joins * micros.join + groups * micros.group) / 1_000

    def _work_of_gateways(self, fragment: Fragment) -> Cost:
        gateway, kept = self._statistics.speeds.gateway, self._statistics.speeds.kept
        below = [self._whole(name) for name in fragment.inputs]
        return Work(self._estimating, gateway, kept, below).of(self._whole(fragment.id))

    def _work(self, fragment: Fragment) -> Cost:
        base, kept = self._statistics.speeds.base, self._statistics.speeds.kept
        below = [self._whole(name) for name in fragment.inputs]
        names = dict(zip(map(id, below), fragment.inputs, strict=True))
        plan = self._whole(fragment.id)
        handed = list(handed_rows(plan, below))
        above = [node for each in handed for node in each.above]
        work = Work(self._estimating, base, kept, [*below, *above]).of(plan)
        read = sum(self._reading(names[id(each.leaf)], each) for each in handed)
        joins = map(self._estimating.of, filter(_is_join, operators_above(plan, below)))
        made = sum(at_once(each, base.filter, base.filter_row) for each in joins)
        return replace(work, cpu=work.cpu + (read + made) / 1_000)

    def _reading(self, name: str, handed: HandedRows) -> float:
        """Return the microseconds a second of reading a fragment."""
        feed, condition = self._feeds.get(name), handed.condition
        paid = 1.0 if feed is None or condition is None else self._paid(feed, condition)
        return reading_price(handed, self._estimating, self._statistics.speeds.base, paid=paid)

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


def _is_row_by_row(plan: Plan) -> bool:
    return isinstance(plan, Filter | Project | UnionAll | RemoteSource)
