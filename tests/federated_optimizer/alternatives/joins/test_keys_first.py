"""Semi-joins before a join: where they are legal, and which keys travel."""

import pytest

from federated_optimizer.alternatives.gateway_pieces import scan_piece, unary_piece
from federated_optimizer.alternatives.joins.keys_first import SemiJoin, semi_join
from federated_optimizer.alternatives.method import Method, Refused
from federated_optimizer.alternatives.pieces import GatewayPiece
from federated_optimizer.testing_bundles import HEAT, NOISE, TOPOLOGY
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter, Join, JoinKind
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType
from streamsql.reference import Database, evaluate

SIDES = scan_piece(HEAT, TOPOLOGY), scan_piece(NOISE, TOPOLOGY)


@pytest.mark.parametrize("method", [Method.KEYS_LEFT, Method.KEYS_RIGHT])
@pytest.mark.parametrize("kind", list(JoinKind))
def test_only_rows_that_need_a_partner_are_reduced(kind: JoinKind, method: Method) -> None:
    found = semi_join(Join(HEAT, NOISE, kind, ((1, 0),)), *SIDES, method)
    assert isinstance(found, SemiJoin) == (kind in (JoinKind.INNER, JoinKind.SEMI))
    if isinstance(found, Refused):
        assert "until their keys are back" in found.reason


def test_keys_are_distinct() -> None:
    found = semi_join(Join(HEAT, NOISE, JoinKind.INNER, ((1, 0),)), *SIDES, Method.KEYS_LEFT)
    assert isinstance(found, SemiJoin)
    assert (found.reduces_left, found.pairs) == (False, ((0, 0),))
    have = Database()
    rows = (("s1", "a", 1), ("s2", "a", 2), ("s3", None, 3), ("s4", "b", 3))
    have.append("heat", [SourceEvent(row, 0) for row in rows])
    assert evaluate(found.keys, have, 1) == {("a",): 1, ("b",): 1, (None,): 1}


def test_only_keys_of_rows_that_pass_the_conditions_of_the_query_travel() -> None:
    hot = Filter(
        HEAT,
        Call(
            ">",
            (Column(2, "celsius", DataType.INTEGER), Literal(1, DataType.INTEGER)),
            DataType.BOOLEAN,
        ),
    )
    side = unary_piece(hot, scan_piece(HEAT, TOPOLOGY))
    assert isinstance(side, GatewayPiece)
    found = semi_join(Join(hot, NOISE, JoinKind.INNER, ((1, 0),)), side, SIDES[1], Method.KEYS_LEFT)
    assert isinstance(found, SemiJoin)
    have = Database()
    have.append("heat", [SourceEvent(row, 0) for row in (("s1", "a", 1), ("s2", "b", 2))])
    assert evaluate(found.keys, have, 1) == {("b",): 1}
