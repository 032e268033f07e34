"""Joins device by device: which gateway is chosen, and what leaves its gateway for it."""

import pytest

from federated_optimizer.alternatives.gateway_pieces import scan_piece
from federated_optimizer.alternatives.joins.meeting import Meeting, Move
from federated_optimizer.alternatives.joins.paired_join import paired_join
from federated_optimizer.alternatives.method import Refused
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Devices, Statistics
from federated_optimizer.statistics.wires import DEFAULT_WIRES, Wires
from streamsql.algebra.operators import Join, JoinKind, Scan, SourceKind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

TEXT, INTEGER = DataType.TEXT, DataType.INTEGER


def scan(name: str, dtype: DataType = TEXT, key: tuple[int, ...] = (0,)) -> Scan:
    return Scan(name, SourceKind.STREAM, Schema.of(("id", dtype), ("v", INTEGER)), key=key)


SEAT, METER = scan("seat"), scan("meter")
SITES = Topology(
    {
        "g1": frozenset({"seat"}),
        "g2": frozenset({"seat", "meter"}),
        "g3": frozenset({"meter"}),
    }
)
OWNERS = {
    "seat": {"a": "g1", "b": "g1", "c": "g2", "d": "g1"},
    "meter": {"a": "g2", "b": "g3", "c": "g2", "e": "g3"},
}


def met(
    devices: Devices, left: Scan = SEAT, right: Scan = METER, wires: Wires = DEFAULT_WIRES
) -> Meeting | Refused:
    join = Join(left, right, JoinKind.INNER, ((0, 0),))
    pieces = scan_piece(left, SITES), scan_piece(right, SITES)
    return paired_join(join, *pieces, SITES, Statistics(devices=devices, wires=wires))


def test_the_side_of_a_pair_that_sends_more_stays() -> None:
    sent = {("seat", "g1"): 5.0, ("meter", "g2"): 1.0, ("meter", "g3"): 8.0, ("seat", "g2"): 1.0}
    found = met(Devices(OWNERS, sent))
    assert isinstance(found, Meeting)
    assert found.sites == ("g1", "g2", "g3")
    assert found.left is not None
    assert found.right is not None
    homes = {device: found.sites[index] for device, index in found.left.homes}
    assert homes == {"a": "g1", "b": "g3", "c": "g2", "d": "g1", "e": "g3"}
    assert found.right.homes == found.left.homes
    assert found.left.away == pytest.approx(5 / 16), "seat b leaves g1, of all that seats send"
    assert found.right.away == pytest.approx(1 / 18), "meter a leaves g2"


def test_a_pair_meets_nearer_to_the_base_where_hops_decide() -> None:
    sent = {("seat", "g1"): 5.0, ("meter", "g2"): 4.0}
    found = [
        met(Devices({"seat": {"a": "g1"}, "meter": {"a": "g2"}}, sent), wires=Wires(hops=hops))
        for hops in ({}, {("g1", "base"): 3.0})
    ]
    assert [f.left.homes for f in found if isinstance(f, Meeting) and f.left] == [
        (("a", 0),),
        (("a", 1),),
    ]


def test_homes_of_a_query_that_runs_stay() -> None:
    kept = (("a", 2),)
    found = met(Devices(OWNERS, homes={(("meter", "seat"), ("g1", "g2", "g3")): kept}))
    assert isinstance(found, Meeting)
    assert found.left == Move((0,), kept, 1.0)
    others = met(Devices(OWNERS, homes={(("", "seat"), ("g1", "g2", "g3")): kept}))
    assert isinstance(others, Meeting)
    assert others.left is not None
    assert others.left.homes != kept, "those of another join at the same gateways"


def test_without_announced_devices_the_hash_decides() -> None:
    found = met(Devices())
    assert isinstance(found, Meeting)
    assert (found.left, found.right) == (Move((0,)), Move((0,)))
    assert found.words.endswith("at the gateway of its hash, as none is announced")
    known = met(Devices(OWNERS))
    assert isinstance(known, Meeting)
    assert known.words == "rows about a device of seat and meter joined at a gateway chosen for it"


@pytest.mark.parametrize("sort", [{"dtype": INTEGER}, {"key": ()}, {"key": (0, 1)}])
def test_the_key_is_the_name_of_a_device(sort: dict[str, DataType | tuple[int, ...]]) -> None:
    left, right = (scan(name, **sort) for name in ("seat", "meter"))  # type: ignore[arg-type]
    refused = met(Devices(OWNERS), left, right)
    assert isinstance(refused, Refused)
    assert "the key of a source" in refused.reason
