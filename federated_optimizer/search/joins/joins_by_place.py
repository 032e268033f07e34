"""Order of inner joins, so that most is joined where its data is.

The inner joins of a query are one set of inputs and equalities; any order gives the same rows.
Chosen here: as many in-network joins of two gateway inputs as possible, each in a fragment of its
own (at most one in-network join per fragment, never a product); stored tables that are connected
by equalities together at the static engine; the rest at the base, in the order written, connected
inputs before products.

This is the federated half of the search: it decides places with the heuristics, and leaves the
way each engine computes its part to that engine. Joins that read a recursion keep their shape.
"""

from collections.abc import Iterator
from itertools import combinations

from federated_optimizer.alternatives.gateway_pieces import join_piece
from federated_optimizer.alternatives.pieces import GatewayPiece, Piece, StaticPiece
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.network.topology import Topology
from federated_optimizer.search.joins.join_graph import JoinGraph, Member, flatten
from streamsql.algebra.operators import (
    Join,
    JoinKind,
    Plan,
    RecursiveReference,
    walk_plan,
    with_inputs,
)

MAX_MATCHED = 10  # inputs; matchings are enumerated, 9 496 of them for ten


def group_joins(plan: Plan, topology: Topology) -> Plan:
    """Return the plan with its inner joins in the order that suits the sites.

    The schema stays. Idempotent.
    """
    if _is_join_block(plan):
        graph = flatten(plan)
        graph.inputs = [group_joins(child, topology) for child in graph.inputs]
        if len(graph.inputs) > 2:
            return _arranged(graph, topology, plan)
        return with_inputs(plan, tuple(graph.inputs))
    inputs = tuple(group_joins(child, topology) for child in plan.inputs)
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)


def _is_join_block(plan: Plan) -> bool:
    return (
        isinstance(plan, Join)
        and plan.kind == JoinKind.INNER
        and not any(isinstance(node, RecursiveReference) for node in walk_plan(plan))
    )


def _arranged(graph: JoinGraph, topology: Topology, original: Plan) -> Plan:
    cutter = Cutter(topology)
    pieces = [cutter.piece(child) for child in graph.inputs]
    members = [graph.member(i) for i in range(len(graph.inputs))]
    groups = _network_pairs(graph, members, pieces)
    taken = {i for pair in groups for i in pair}
    groups += static_groups(graph, pieces, taken)
    taken = {i for group in groups for i in group}
    groups += [(i,) for i in range(len(members)) if i not in taken]
    joined = [chain(graph, [members[i] for i in group]) for group in sorted(groups)]
    return graph.restored(chain(graph, joined), original.schema)


def chain(graph: JoinGraph, members: list[Member]) -> Member:
    """Join members left-deep: always the first one written that is connected, else the first."""
    result, *waiting = members
    while waiting:
        chosen = next((m for m in waiting if graph.connected(result, m)), waiting[0])
        waiting.remove(chosen)
        result = graph.joined(result, chosen)
    return result


def _network_pairs(
    graph: JoinGraph, members: list[Member], pieces: list[Piece]
) -> list[tuple[int, ...]]:
    """Return the largest set of disjoint pairs that may join in the network, earliest first."""
    possible = [
        (i, j)
        for i, j in combinations(range(len(pieces)), 2)
        if _may_join(graph, members[i], members[j], pieces[i], pieces[j])
    ]
    if len({i for pair in possible for i in pair}) > MAX_MATCHED:
        return list(_greedy(possible))
    # Ties go to the matching that uses the inputs written first.
    best = max(matchings(possible), key=lambda m: (len(m), [-i for pair in m for i in pair]))
    return list(best)


def _may_join(graph: JoinGraph, a: Member, b: Member, left: Piece, right: Piece) -> bool:
    if not (isinstance(left, GatewayPiece) and isinstance(right, GatewayPiece)):
        return False
    # Both a plan and a projection over it may come back; the join is what counts.
    join = graph.joined(a, b).plan
    return isinstance(join, Join) and isinstance(join_piece(join, left, right), GatewayPiece)


def matchings(
    pairs: list[tuple[int, int]], used: frozenset[int] = frozenset()
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the sets of disjoint pairs."""
    yield ()
    for position, pair in enumerate(pairs):
        if used.isdisjoint(pair):
            for rest in matchings(pairs[position + 1 :], used | set(pair)):
                yield (pair, *rest)


def _greedy(pairs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    used: set[int] = set()
    for pair in pairs:
        if used.isdisjoint(pair):
            used.update(pair)
            yield pair


def static_groups(graph: JoinGraph, pieces: list[Piece], taken: set[int]) -> list[tuple[int, ...]]:
    """Return the connected components of tables of one site."""
    sites = {
        i: p.site for i, p in enumerate(pieces) if isinstance(p, StaticPiece) and i not in taken
    }
    left = list(sites)
    groups: list[tuple[int, ...]] = []
    while left:
        component = [left.pop(0)]
        for member in component:
            near = [
                i
                for i in left
                if sites[i] == sites[member]
                and graph.connected(graph.member(member), graph.member(i))
            ]
            component.extend(near)
            left = [i for i in left if i not in near]
        groups.append(tuple(sorted(component)))
    return groups
