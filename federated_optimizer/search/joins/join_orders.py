"""Orders of the inner joins of a block, as alternatives of the memo.

What joins at the base costs nothing to bring there in whatever order. So orders differ in what is
joined elsewhere: which two inputs of gateways may join in the network, which stored tables join at
the static engine, and what a stored table is asked for by. A pair that the memo leaves to the base
is shipped as two, so only the largest sets of pairs are orders of their own. No order has a product
that another one does not have. The numbers of plans do not depend on statistics, nor do orders.
"""

from collections.abc import Iterator
from itertools import chain as chain_of
from itertools import combinations

from federated_optimizer.alternatives.heuristics import ALL, Heuristic, Heuristics
from federated_optimizer.alternatives.pieces import GatewayPiece, Piece, StaticPiece
from federated_optimizer.cutting.cutter import Cutter
from federated_optimizer.rules import WIDTH_RULES, run_rules
from federated_optimizer.search.joins.join_graph import JoinGraph, Member, flatten
from federated_optimizer.search.joins.joins_by_place import chain, matchings, static_groups
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    walk_plan,
)

MAX_RELATIONS = 7
"""Of a block whose orders are alternatives; a larger one keeps the order by place."""

MAX_ORDERS = 32
"""Orders of a block: of seven streams that all join each other there would be 105."""


def block_tops(plan: Plan) -> frozenset[Plan]:
    """Return the tops of the blocks of inner joins in a plan, outside recursions."""
    found: set[Plan] = set()

    def visit(node: Plan, *, inside: bool) -> None:
        if isinstance(node, Fixpoint):
            return
        is_block = _is_of_block(node)
        if is_block and not inside:
            found.add(node)
        for child in node.inputs:
            visit(child, inside=is_block)

    visit(plan, inside=False)
    return frozenset(found)


def _is_of_block(node: Plan) -> bool:
    if isinstance(node, Project) and all(isinstance(e, Column) for e in node.expressions):
        node = node.input
    return isinstance(node, Join) and node.kind == JoinKind.INNER


def join_orders(plan: Plan, cutter: Cutter, kept: Heuristics = ALL) -> Iterator[tuple[Plan, str]]:
    """Yield other orders of a block with its schema, each in words.

    Args:
        plan: The top of the block.
        cutter: Has placed what is in it.
        kept: Rules by which orders are not considered.
    """
    graph = flatten(plan)
    if not 2 < len(graph.inputs) <= MAX_RELATIONS:
        return
    pieces = [cutter.placed.get(child) or cutter.piece(child) for child in graph.inputs]
    seen = {plan}
    own = _joined_apart(plan, pieces)
    for groups in chain_of(_groupings(graph, pieces), _further(graph, pieces, kept)):
        asked = sum(isinstance(pieces[group[0]], StaticPiece) for group in groups)
        alike = {group for group in groups if len(group) > 1} == own
        if alike and Heuristic.ONE_JOIN in kept and (not asked or asked == len(groups) - 1):
            continue  # what stored tables are asked by is the same, too
        joined = [chain(graph, [graph.member(i) for i in group]) for group in groups]
        made = run_rules(graph.restored(chain(graph, joined), plan.schema), WIDTH_RULES)
        if made in seen:
            continue
        seen.add(made)
        yield made, _words(graph, groups)
        if len(seen) > MAX_ORDERS:
            return


def _joined_apart(plan: Plan, pieces: list[Piece]) -> set[tuple[int, ...]]:
    """Return the pairs of gateway inputs, and the stored tables, that join by themselves."""
    found: set[tuple[int, ...]] = set()
    count = 0

    def visit(node: Plan) -> tuple[int, ...]:
        nonlocal count
        if not _is_of_block(node):
            count += 1
            return (count - 1,)
        join = node.input if isinstance(node, Project) else node
        sides = [visit(child) for child in join.inputs]
        both = tuple(sorted(sides[0] + sides[1]))
        kinds = {type(pieces[i]) for i in both}
        if kinds == {StaticPiece}:
            found.difference_update(sides)
            found.add(both)
        elif kinds == {GatewayPiece} and len(both) == 2:
            found.add(both)
        return both

    visit(plan)
    return found


def _groupings(graph: JoinGraph, pieces: list[Piece]) -> Iterator[list[tuple[int, ...]]]:
    """Yield what is joined by itself, in the order of the joins above: stored tables last."""
    count = len(pieces)
    members = [graph.member(i) for i in range(count)]
    at_gateways = [i for i in range(count) if isinstance(pieces[i], GatewayPiece)]
    pairs = [
        (i, j) for i, j in combinations(at_gateways, 2) if graph.connected(members[i], members[j])
    ]
    stored = static_groups(graph, pieces, set())
    alone = [(i,) for group in stored for i in group]
    for matching in _largest(pairs):
        taken = {i for pair in matching for i in pair}
        others = [(i,) for i in range(count) if not isinstance(pieces[i], StaticPiece)]
        first = sorted([*matching, *(group for group in others if taken.isdisjoint(group))])
        for tables in (stored, alone) if stored != alone else (stored,):
            yield [*first, *tables]


def _further(
    graph: JoinGraph, pieces: list[Piece], kept: Heuristics
) -> Iterator[list[tuple[int, ...]]]:
    """Yield orders that only chains of joins, or products, at gateways make worth having."""
    count = len(pieces)
    members = [graph.member(i) for i in range(count)]
    at_gateways = [i for i in range(count) if isinstance(pieces[i], GatewayPiece)]
    stored = static_groups(graph, pieces, set())
    others = [(i,) for i in range(count) if not isinstance(pieces[i], StaticPiece)]
    pairs = list(combinations(at_gateways, 2))
    connected = [pair for pair in pairs if graph.connected(*(members[i] for i in pair))]
    first = connected if Heuristic.ONE_JOIN not in kept else []
    if Heuristic.NO_PRODUCT not in kept:
        first = [*first, *(pair for pair in pairs if pair not in connected)]
    for pair in first:
        # The rest one by one, each joined at gateways with what was joined before.
        yield [pair, *(group for group in others if group[0] not in pair), *stored]


def _largest(pairs: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield sets of disjoint pairs to which no pair can be added."""
    for matching in matchings(pairs):
        taken = {i for pair in matching for i in pair}
        if all(taken.intersection(pair) for pair in pairs):
            yield matching


def _words(graph: JoinGraph, groups: list[tuple[int, ...]]) -> str:
    """Return what is joined by itself, for the list of plans."""
    names = [" with ".join(_name(graph.member(i)) for i in group) for group in groups]
    return "joins in the order " + ", then ".join(names)


def _name(member: Member) -> str:
    sources = [node.source for node in walk_plan(member.plan) if isinstance(node, Scan)]
    return " and ".join(dict.fromkeys(sources)) or "the rest"
