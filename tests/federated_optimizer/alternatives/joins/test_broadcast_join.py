"""Joins by broadcast: where they are legal, and what stands above them at gateways."""

import pytest

from federated_optimizer.alternatives.gateway_pieces import scan_piece
from federated_optimizer.alternatives.heuristics import NONE, Heuristic
from federated_optimizer.alternatives.joins.broadcast_join import broadcast_join
from federated_optimizer.alternatives.joins.meeting import Meeting
from federated_optimizer.alternatives.method import Method, Refused, not_considered
from federated_optimizer.alternatives.pieces import GatewayPiece
from federated_optimizer.network.topology import Topology
from federated_optimizer.testing_bundles import HEAT, NOISE, SEAT, TOPOLOGY
from streamsql.algebra.operators import Join, JoinKind, Scan

LEFT, RIGHT = Method.BROADCAST_LEFT, Method.BROADCAST_RIGHT


def tried(
    kind: JoinKind, method: Method, left: Scan = SEAT, right: Scan = NOISE, keyed: bool = True
) -> Meeting | Refused:
    join = Join(left, right, kind, ((1, 0),) if keyed else ())
    return broadcast_join(join, scan_piece(left, TOPOLOGY), scan_piece(right, TOPOLOGY), method)


@pytest.mark.parametrize("kind", list(JoinKind))
def test_a_side_whose_rows_are_judged_once_stays(kind: JoinKind) -> None:
    assert isinstance(tried(kind, RIGHT), Meeting) == (kind != JoinKind.FULL)
    assert isinstance(tried(kind, LEFT), Meeting) == (kind == JoinKind.INNER)


def test_rows_that_stay_tell_where_they_come_from() -> None:
    stays = tried(JoinKind.INNER, RIGHT)
    assert isinstance(stays, Meeting)
    assert (stays.left, stays.right is not None) == (None, True)
    assert stays.colocations == scan_piece(SEAT, TOPOLOGY).colocations
    goes = tried(JoinKind.INNER, LEFT, NOISE, SEAT)
    assert isinstance(goes, Meeting)
    moved = {(c.group, tuple(p - 2 for p in c.columns)) for c in goes.colocations}
    assert moved == {(c.group, c.columns) for c in scan_piece(SEAT, TOPOLOGY).colocations}
    assert goes.sites == ("gw-1", "gw-2")


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (tried(JoinKind.INNER, RIGHT, keyed=False), "no product at gateways"),
        (tried(JoinKind.FULL, RIGHT), "rows of both sides without partner"),
        (tried(JoinKind.LEFT, LEFT), "each row of the left side is judged once"),
    ],
)
def test_reasons_are_told(refused: Meeting | Refused, why: str) -> None:
    assert isinstance(refused, Refused)
    assert why in refused.reason


def test_a_fragment_has_one_join_and_a_network_two_gateways() -> None:
    join = Join(SEAT, HEAT, JoinKind.INNER, ((1, 1),))
    seat, heat = scan_piece(SEAT, TOPOLOGY), scan_piece(HEAT, TOPOLOGY)
    joined = GatewayPiece(SEAT, seat.sites, seat.sources, joins=1)
    again = broadcast_join(join, joined, heat, RIGHT)
    assert again == not_considered(Heuristic.ONE_JOIN)
    moved = broadcast_join(join, heat, joined, RIGHT)
    assert moved == not_considered(Heuristic.TO_BASE)
    assert isinstance(broadcast_join(join, joined, heat, RIGHT, NONE), Meeting)
    alone = Topology({"gw-1": frozenset({"seat", "heat"})})
    at_one = broadcast_join(join, scan_piece(SEAT, alone), scan_piece(HEAT, alone), RIGHT)
    assert at_one == Refused("both sides are at one gateway")
    nowhere = Topology({"gw-1": frozenset({"heat"})})
    of_none = broadcast_join(join, scan_piece(SEAT, nowhere), scan_piece(HEAT, nowhere), RIGHT)
    assert of_none == Refused("no gateway has one of its sides")
