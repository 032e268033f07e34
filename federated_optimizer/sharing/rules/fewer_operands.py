"""Set operators over nodes of fewer operands: the rest is added, taken away or met.

Operands are those of clusters (`set_clusters`), and every offered operand stands for a wanted one.

| wanted | node | operands of the node are |
|---|---|---|
| UNION ALL | UNION ALL | a part of the bag of wanted ones |
| UNION | UNION, UNION ALL | some of the wanted ones, however often |
| EXCEPT | EXCEPT | the same first, and some of the others |
| EXCEPT | UNION, UNION ALL | some of the others |
| EXCEPT ALL | EXCEPT ALL | the same first, and a part of the bag of others |
| EXCEPT ALL | UNION ALL | a part of the bag of others |
| INTERSECT | INTERSECT, INTERSECT ALL | some of the wanted ones |
| INTERSECT ALL | INTERSECT ALL | some of the wanted ones |

Never UNION ALL from UNION, whose copies are gone, nor EXCEPT from EXCEPT ALL, which keeps a row
that is there twice at the left and once at the right. Unions may show fewer columns and computed
ones; the other nodes compare whole rows, so all columns of theirs are wanted, in any order. A
filter of all operands is a filter of the node; EXCEPT and INTERSECT need it in one operand only
(at the first).
"""

from dataclasses import dataclass, replace

from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.operand_fits import Fit, Fitted, Matching, fits, fitted
from federated_optimizer.sharing.rule_bases import Basis
from federated_optimizer.sharing.set_clusters import (
    Cluster,
    ClusterKind,
    cluster_of,
    plan_of_cluster,
)
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Plan, Project, identity_columns

K = ClusterKind

_NODES = {
    K.UNION_ALL: (K.UNION_ALL,),
    K.UNION: (K.UNION, K.UNION_ALL),
    K.EXCEPT: (K.EXCEPT, K.UNION, K.UNION_ALL),
    K.EXCEPT_ALL: (K.EXCEPT_ALL, K.UNION_ALL),
    K.INTERSECT: (K.INTERSECT, K.INTERSECT_ALL),
    K.INTERSECT_ALL: (K.INTERSECT_ALL,),
}
_BAGS = frozenset({K.UNION_ALL, K.EXCEPT_ALL})
_UNIONS = frozenset({K.UNION, K.UNION_ALL})
_DIFFERENCES = frozenset({K.EXCEPT, K.EXCEPT_ALL})


@dataclass(frozen=True, slots=True)
class _Node:
    """An offered cluster.

    Attributes:
        kind: Which.
        operands: As blocks whose outputs are the columns of the leaf; the first comes first.
        shows_all: Whether the leaf has all columns of the operands.
    """

    kind: ClusterKind
    operands: tuple[Block, ...]
    shows_all: bool


def answer(wanted: Plan, offered: Plan, leaf: Plan) -> Plan | None:
    """Return a set operator over the rows of one; None: it cannot be proven right."""
    ours, theirs = cluster_of(wanted), _node(offered)
    if ours is None or theirs is None or theirs.kind not in _NODES[ours.kind]:
        return None
    made = _answered(ours, theirs, leaf, wanted.schema.names)
    if made is None:
        return None
    if made.schema.names == wanted.schema.names:
        return made
    columns = (
        Column(c.position, name, c.dtype)
        for c, name in zip(identity_columns(made.schema), made.schema.names, strict=True)
        if isinstance(c, Column)
    )
    return Project(made, tuple(columns), wanted.schema.names)


def offered(plan: Plan) -> Basis | None:
    """Return the first operand of a node; None: it is no set operator."""
    node = _node(plan)
    if node is None:
        return None
    # Of a bag or a set of operands each stands for a wanted one, so any of them will do.
    return Basis.of_block((node.kind, node.kind in _DIFFERENCES), node.operands[0])


def wanted(plan: Plan) -> tuple[Basis, ...]:
    """Return the operands of a plan, for each kind of node that may have them first."""
    cluster = cluster_of(plan)
    if cluster is None:
        return ()
    firsts = () if cluster.first is None else (cluster.first,)
    found = []
    for kind in _NODES[cluster.kind]:
        is_first = kind in _DIFFERENCES
        operands = firsts if is_first else cluster.others
        found += [Basis.of_block((kind, is_first), block_of(each)) for each in operands]
    return tuple(found)


def _node(offered: Plan) -> _Node | None:
    above = block_of(offered)
    cluster = cluster_of(above.inputs[0]) if len(above.inputs) == 1 else None
    places = tuple(e.position for e in above.outputs if isinstance(e, Column))
    if cluster is None or above.predicates or len(places) != len(above.outputs):
        return None
    plans = cluster.others if cluster.first is None else (cluster.first, *cluster.others)
    blocks = [block_of(plan) for plan in plans]
    names = above.names
    operands = tuple(
        replace(b, outputs=tuple(b.outputs[p] for p in places), names=names) for b in blocks
    )
    return _Node(cluster.kind, operands, set(places) == set(range(len(plans[0].schema))))


def _answered(ours: Cluster, theirs: _Node, leaf: Plan, names: tuple[str, ...]) -> Plan | None:
    if theirs.kind in _UNIONS:
        matching = Matching(once=ours.kind in _BAGS)
        found = fitted(_table(ours.others, theirs.operands, leaf), matching)
        if found is None:
            return None
        rest = _others(ours, found)
        if not rest and ours.kind == theirs.kind == K.UNION and _is_permuted(found, leaf):
            return found.over(leaf, names)
        return plan_of_cluster(replace(ours, others=(found.over(leaf, names), *rest)))
    if not theirs.shows_all:
        return None
    if theirs.kind in _DIFFERENCES:
        return _difference(ours, theirs, leaf, names)
    matching = Matching(once=False, one_for_one=True, filter_any=True)
    found = fitted(_table(ours.others, theirs.operands, leaf), matching)
    if found is None or not _is_permuted(found, leaf):
        return None
    rest = _others(ours, found)
    if not rest and ours.kind == theirs.kind:
        return found.over(leaf, names)
    return plan_of_cluster(replace(ours, others=(found.over(leaf, names), *rest)))


def _difference(ours: Cluster, theirs: _Node, leaf: Plan, names: tuple[str, ...]) -> Plan | None:
    """Return what is left of a difference once the other operands are taken away, too."""
    assert ours.first is not None  # noqa: S101
    firsts = [fits(ours.first, theirs.operands[0], leaf)]
    others = _table(ours.others, theirs.operands[1:], leaf)
    table = [[*firsts, *([] for _ in ours.others)], *([[], *row] for row in others)]
    matching = Matching(once=ours.kind in _BAGS, one_for_one=True, filter_any=True)
    for fit in firsts[0]:
        table[0][0] = [fit]
        found = fitted(table, matching)
        # What only other operands leave out is left out of them, not of the first one.
        if found is None or found.rest != fit.rest:
            continue
        if not _is_permuted(found, leaf):
            continue
        chosen = tuple(number - 1 for number in found.chosen[1:])
        rest = _others(ours, replace(found, chosen=chosen))
        rows = found.over(leaf, names)
        return plan_of_cluster(replace(ours, first=rows, others=rest)) if rest else rows
    return None


def _table(
    wanted: tuple[Plan, ...], offered: tuple[Block, ...], leaf: Plan
) -> list[list[list[Fit]]]:
    return [[fits(plan, block, leaf) for plan in wanted] for block in offered]


def _is_permuted(found: Fitted, leaf: Plan) -> bool:
    """Return whether different rows of a leaf stay different."""
    return {c.position for c in found.columns if isinstance(c, Column)} == set(
        range(len(leaf.schema))
    )


def _others(ours: Cluster, found: Fitted) -> tuple[Plan, ...]:
    """Return the operands that no offered one stands for."""
    return tuple(plan for n, plan in enumerate(ours.others) if n not in found.chosen)
