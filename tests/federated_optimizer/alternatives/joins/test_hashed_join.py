"""Joins by repartition: legal for all kinds, at gateways that are not away for good."""

from dataclasses import replace

import pytest

from federated_optimizer.alternatives.gateway_pieces import scan_piece
from federated_optimizer.alternatives.joins.hashed_join import hashed_join
from federated_optimizer.alternatives.joins.meeting import Meeting, Move
from federated_optimizer.testing_bundles import HEAT, NOISE, TOPOLOGY
from streamsql.algebra.operators import Join, JoinKind


@pytest.mark.parametrize("kind", list(JoinKind))
def test_rows_with_equal_keys_are_together(kind: JoinKind) -> None:
    join = Join(HEAT, NOISE, kind, ((1, 0),))
    topology = replace(TOPOLOGY, absent=frozenset({"gw-3"}))
    found = hashed_join(join, scan_piece(HEAT, topology), scan_piece(NOISE, topology), topology)
    assert isinstance(found, Meeting)
    assert (found.left, found.right) == (Move((1,)), Move((0,)))
    assert found.sites == ("gw-1", "gw-2"), "gw-3 has been away for too long"
    together = [each.columns for each in found.colocations]
    assert together == ([] if kind == JoinKind.FULL else [(1,)])
