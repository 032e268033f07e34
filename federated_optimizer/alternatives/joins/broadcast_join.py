"""Joins by broadcast: one side goes to all gateways of the other, each of which joins its own rows.

| join | the side that stays |
|---|---|
| INNER | either |
| SEMI, ANTI, LEFT | left: a row of it must be judged once, by all of the right side |
| FULL | none: rows of both sides must be judged once |
"""

from federated_optimizer.alternatives.gateway_pieces import TwoSided
from federated_optimizer.alternatives.heuristics import ALL, Heuristics
from federated_optimizer.alternatives.joins.meeting import Meeting, Move, why_not_in_network
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.pieces import Colocation, GatewayPiece
from federated_optimizer.alternatives.words import names_text
from streamsql.algebra.operators import JoinKind

BROADCASTS = (Method.BROADCAST_RIGHT, Method.BROADCAST_LEFT)


def broadcast_join(
    plan: TwoSided,
    left: GatewayPiece,
    right: GatewayPiece,
    method: Method,
    kept: Heuristics = ALL,
) -> Meeting | Refused:
    """Return the join at the gateways of the side that stays, or why it is not there.

    The rows that stay tell where they come from, as before; those that travel tell nothing.
    """
    moves_left = method == Method.BROADCAST_LEFT
    stays, goes = (right, left) if moves_left else (left, right)
    refused = why_not_in_network(plan, (stays,), (goes,), kept)
    if refused is not None:
        return refused
    if reason := _refused(plan, moves_left=moves_left):
        return Refused(reason)
    words = (
        f"{names_text(goes.sources)} sent to all gateways of {names_text(stays.sources)}, "
        "joined there"
    )
    if moves_left:
        offset = len(left.plan.schema)
        lie = tuple(
            Colocation(c.group, tuple(p + offset for p in c.columns)) for c in right.colocations
        )
        return Meeting(stays.sites, Move(), None, lie, words)
    return Meeting(stays.sites, None, Move(), left.colocations, words)


def _refused(plan: TwoSided, *, moves_left: bool) -> str:
    if plan.kind == JoinKind.FULL:
        return "rows of both sides without partner are in its result, once"
    if moves_left and plan.kind != JoinKind.INNER:
        return "each row of the left side is judged once, so that side stays"
    return ""
