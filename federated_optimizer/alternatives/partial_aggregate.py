"""Aggregates in two phases: a row a group from every gateway, put together at the base.

A gateway gives the statistics of its rows that `streamsql.algebra.aggregate_laws` names of each
function: of AVG(x) of INTEGER a count and the sums of both words. Parts of some gateways are merged
into one likewise: counts and sums are added, all else is aggregated as it is.

A part is a relation: when the last row of a group goes at a gateway, so does its part.
Where no aggregate counts copies of a row, distinct rows of every gateway are parts of all.
"""

from dataclasses import dataclass

import msgspec

from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.parted import Parted
from streamsql.algebra.aggregate_laws import (
    Law,
    NoLaw,
    is_of_set,
    law_of,
    merging_call,
    statistic_calls,
    whole_of,
)
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import Aggregate, AggregateCall, Distinct, Plan, Project


def parted_aggregate(plan: Aggregate, below: Plan) -> Parted | Refused:
    """Return an aggregate in two phases, or why it is not computed so."""
    phases = phases_of(plan)
    group = tuple(range(len(plan.group)))
    if isinstance(phases, Phases):
        part = Aggregate(below, plan.group, tuple(phases.parts))
        words = "a part of every gateway before the whole"
        return Parted(part, phases.merged, phases.whole, group, group, words)
    if plan.aggregates and all(is_of_set(call) for call in plan.aggregates):

        def whole(parts: Plan) -> Plan:
            return Aggregate(parts, plan.group, plan.aggregates)

        words = "distinct rows of every gateway before the whole"
        return Parted(Distinct(below), Distinct, whole, plan.group, group, words)
    return phases


def phases_of(plan: Aggregate) -> "Phases | Refused":
    """Return the two phases of an aggregate, or why it has none."""
    for call in plan.aggregates:
        law = law_of(call)
        if isinstance(law, NoLaw):
            return Refused(law.reason)
    return Phases(plan)


@dataclass(slots=True)
class Phases:
    """The two phases of an aggregate.

    Attributes:
        parts: Calls of the first phase.
    """

    plan: Aggregate
    parts: list[AggregateCall]
    _laws: list[tuple[Law, tuple[int, ...]]]
    _merging: dict[int, tuple[Law, int, tuple[int, ...]]]

    def __init__(self, plan: Aggregate) -> None:
        self.plan = plan
        self.parts, self._laws, self._merging = [], [], {}
        for call in plan.aggregates:
            law = law_of(call)
            if isinstance(law, Law):
                places = tuple(map(self._place, statistic_calls(law, call)))
                self._laws.append((law, places))
                for number, place in enumerate(places):
                    self._merging.setdefault(place, (law, number, places))

    def whole(self, parts: Plan) -> Plan:
        """Return the second phase over what all gateways have sent."""
        width = len(self.plan.group)
        calls: list[AggregateCall] = []
        results: list[Expression] = []
        for law, places in self._laws:
            merged: dict[int, Column] = {}
            for number in law.read:
                call = merging_call(law, number, self._columns(places), f"whole{len(calls) + 1}")
                merged[number] = Column(width + len(calls), call.name, call.dtype)
                calls.append(call)
            results.append(whole_of(law, merged))
        over = Aggregate(parts, tuple(range(width)), tuple(calls))
        kept = tuple(Column(p, f.name, f.dtype) for p, f in enumerate(over.schema.fields[:width]))
        names = self.plan.schema.names
        return Project(over, (*kept, *results), names)

    def merged(self, parts: Plan) -> Plan:
        """Return parts of some gateways as one part of all their rows."""
        calls = []
        for place, part in enumerate(self.parts):
            law, number, places = self._merging[place]
            calls.append(merging_call(law, number, self._columns(places), part.name))
        return Aggregate(parts, tuple(range(len(self.plan.group))), tuple(calls))

    def _place(self, wanted: AggregateCall) -> int:
        """Return the number of the part that a call of the first phase gives."""
        same = [msgspec.structs.replace(part, name=wanted.name) for part in self.parts]
        if wanted not in same:
            self.parts.append(msgspec.structs.replace(wanted, name=f"part{len(same) + 1}"))
            return len(same)
        return same.index(wanted)

    def _columns(self, places: tuple[int, ...]) -> tuple[Column, ...]:
        """Return columns of the parts by their numbers."""
        width = len(self.plan.group)
        calls = [(place, self.parts[place]) for place in places]
        return tuple(Column(width + place, call.name, call.dtype) for place, call in calls)
