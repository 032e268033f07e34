"""A trimmed bundle delivers what it did, and nothing else."""

import pytest
from msgspec.structs import replace

from streamsql.algebra.operators import RemoteSource, Scan, SourceKind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.bundles.closure_prints import closure_print
from streamsql.wire.bundles.trimmed_bundles import goes_on_trimmed, is_trimmed, trimmed
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

ROOM = Scan("room", SourceKind.STREAM, Schema.of(("r", DataType.TEXT)), (0,))
SEAT = Scan("seat", SourceKind.STREAM, Schema.of(("s", DataType.INTEGER)), (0,))
ROOT = Fragment("f0", Engine.BASE, RemoteSource("f1", ROOM.columns), ("base",))
ROOMS = Fragment("f1", Engine.GATEWAY, ROOM, ("gw-1",), "f0", ("base",))
SEATS = Fragment("f2", Engine.GATEWAY, SEAT, ("gw-1", "gw-2"), "f0", ("base",))
BUNDLE = FragmentBundle("q1", 3, (ROOT, ROOMS, SEATS), ROOM.columns, text="SELECT 1")


@pytest.mark.parametrize("leaves", [["f1"], ["f2"], ["f1", "f2"]])
def test_what_it_delivers_stays_the_same(leaves: list[str]) -> None:
    bundle = trimmed(BUNDLE, leaves)
    assert bundle is not None
    assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
    assert (bundle.query, bundle.version) == ("q1", 3)
    assert [f.id for f in bundle.own] == ["f0", *leaves]
    assert bundle.result_sites == ()
    for leaf in leaves:
        assert closure_print(bundle, leaf) == closure_print(BUNDLE, leaf)
    assert is_trimmed(bundle)
    assert goes_on_trimmed(BUNDLE, bundle)
    assert trimmed(bundle, leaves) == bundle


def test_it_may_be_trimmed_once_more() -> None:
    both, one = trimmed(BUNDLE, ["f1", "f2"]), trimmed(BUNDLE, ["f2"])
    assert both is not None
    assert one is not None
    assert trimmed(both, ["f2"]) == one
    assert goes_on_trimmed(both, one)
    assert not goes_on_trimmed(one, both)


def test_other_bundles_are_none_of_it() -> None:
    bundle = trimmed(BUNDLE, ["f1"])
    assert bundle is not None
    assert not is_trimmed(BUNDLE)
    assert not is_trimmed(replace(BUNDLE, silent=True))
    assert not goes_on_trimmed(BUNDLE, BUNDLE)
    assert not goes_on_trimmed(replace(BUNDLE, version=2), bundle)
    moved = replace(BUNDLE, fragments=(ROOT, replace(ROOMS, sites=("gw-2",)), SEATS))
    assert not goes_on_trimmed(moved, bundle)


@pytest.mark.parametrize(
    ("bundle", "leaves"),
    [
        (BUNDLE, []),
        (BUNDLE, ["f0"]),
        (BUNDLE, ["f9"]),
        (replace(BUNDLE, feeds=(Feed("f1", "q0", 1, "f1"),)), ["f1"]),
        (
            replace(BUNDLE, fragments=(ROOT, replace(ROOMS, destinations=("b",)), SEATS)),
            ["f1", "f2"],
        ),
        (replace(BUNDLE, fragments=(ROOT, ROOMS, replace(SEATS, plan=ROOT.plan))), ["f2"]),
    ],
)
def test_what_is_no_leaf_of_its_own_cannot_be_kept(
    bundle: FragmentBundle, leaves: list[str]
) -> None:
    assert trimmed(bundle, leaves) is None
