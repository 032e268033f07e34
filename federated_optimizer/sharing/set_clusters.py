"""Set operators read as one: a cluster of UNION, EXCEPT or INTERSECT over its operands.

Nested operators of one kind are one layer, wherever that keeps the rows:

| kind | operands | read through |
|---|---|---|
| UNION ALL | a bag of plans | UNION ALL |
| UNION | a set of plans | UNION ALL, UNION, DISTINCT |
| EXCEPT | the first, and a set of others | EXCEPT at the left; UNION and UNION ALL at the right |
| EXCEPT ALL | the first, and a bag of others | EXCEPT ALL at the left; UNION ALL at the right |
| INTERSECT | a set of plans | INTERSECT, DISTINCT |
| INTERSECT ALL | a set of plans: min(a, a) = a | INTERSECT ALL |
"""

import enum
from dataclasses import dataclass

from streamsql.algebra.operators import Distinct, Plan, SetKind, SetOperation, UnionAll


class ClusterKind(enum.StrEnum):
    """Kinds of clusters."""

    UNION_ALL = "UNION ALL"
    UNION = "UNION"
    EXCEPT = "EXCEPT"
    EXCEPT_ALL = "EXCEPT ALL"
    INTERSECT = "INTERSECT"
    INTERSECT_ALL = "INTERSECT ALL"


_COUNTED = {
    (SetKind.EXCEPT, False): ClusterKind.EXCEPT,
    (SetKind.EXCEPT, True): ClusterKind.EXCEPT_ALL,
    (SetKind.INTERSECT, False): ClusterKind.INTERSECT,
    (SetKind.INTERSECT, True): ClusterKind.INTERSECT_ALL,
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Set operators over operands.

    Attributes:
        kind: Which.
        first: Of EXCEPT, what others are taken from.
        others: All other operands, in the order of writing.
    """

    kind: ClusterKind
    first: Plan | None
    others: tuple[Plan, ...]


def cluster_of(plan: Plan) -> Cluster | None:
    """Return the set operators at the top of a plan; None: there is none."""
    match plan:
        case UnionAll():
            return Cluster(ClusterKind.UNION_ALL, None, _bag(plan))
        case Distinct(input=UnionAll()):
            return Cluster(ClusterKind.UNION, None, _set(plan))
        case SetOperation(kind=kind, all=counted):
            made = _COUNTED[kind, counted]
            if kind == SetKind.INTERSECT:
                return Cluster(made, None, _met(plan, counted=counted))
            return _difference(made, plan, counted=counted)
        case _:
            return None


def _bag(plan: Plan) -> tuple[Plan, ...]:
    if isinstance(plan, UnionAll):
        return tuple(each for branch in plan.branches for each in _bag(branch))
    return (plan,)


def _set(plan: Plan) -> tuple[Plan, ...]:
    match plan:
        case UnionAll(branches=branches):
            return tuple(each for branch in branches for each in _set(branch))
        case Distinct(input=child):
            return _set(child)
        case _:
            return (plan,)


def _met(plan: Plan, *, counted: bool) -> tuple[Plan, ...]:
    match plan:
        case SetOperation(kind=SetKind.INTERSECT) if plan.all == counted:
            return _met(plan.left, counted=counted) + _met(plan.right, counted=counted)
        case Distinct(input=child) if not counted:
            return _met(child, counted=counted)
        case _:
            return (plan,)


def _difference(made: ClusterKind, plan: SetOperation, *, counted: bool) -> Cluster:
    read = _bag if counted else _set
    others: tuple[Plan, ...] = ()
    first: Plan = plan
    while True:
        match first:
            case SetOperation(kind=SetKind.EXCEPT) if first.all == counted:
                others = read(first.right) + others
                first = first.left
            case Distinct(input=child) if not counted:
                first = child
            case _:
                return Cluster(made, first, others)


def plan_of_cluster(cluster: Cluster) -> Plan:
    """Return a plan of a cluster; one of a single operand is its operand, without copies if so."""
    first, others = cluster.first, cluster.others
    match cluster.kind:
        case ClusterKind.UNION_ALL:
            return united(others)
        case ClusterKind.UNION:
            return Distinct(united(others))
        case ClusterKind.EXCEPT | ClusterKind.EXCEPT_ALL:
            assert first is not None  # noqa: S101
            counted = cluster.kind == ClusterKind.EXCEPT_ALL
            if others:
                return SetOperation(first, united(others), SetKind.EXCEPT, counted)
            return first if counted else Distinct(first)
        case ClusterKind.INTERSECT | ClusterKind.INTERSECT_ALL:
            counted = cluster.kind == ClusterKind.INTERSECT_ALL
            if len(others) == 1:
                return others[0] if counted else Distinct(others[0])
            met = others[0]
            for each in others[1:]:
                met = SetOperation(met, each, SetKind.INTERSECT, counted)
            return met


def united(plans: tuple[Plan, ...]) -> Plan:
    """Return the bag of the rows of some plans."""
    return plans[0] if len(plans) == 1 else UnionAll(plans)
