"""Every fragment of a bundle is computed for the bundle itself, or for one that feeds it."""

from msgspec.structs import replace

from federated_optimizer.coordinator.explaining.run_fragments import run_fragments
from stream_engine.testing.fed_bundles import Leaves, bundle_over
from streamsql.algebra.operators import Distinct, Join, JoinKind, Scan, SourceKind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import FragmentBundle

COLUMNS = Schema.of(("k", DataType.TEXT), ("n", DataType.INTEGER))
LEFT, RIGHT = (Scan(name, SourceKind.STREAM, COLUMNS, (0,)) for name in ("left", "right"))


def result(bundle: FragmentBundle) -> Scan:
    return Scan(bundle.query, SourceKind.TABLE, bundle.schema, (0,))


def leaves(*owners: FragmentBundle) -> Leaves:
    return Leaves({owner.query: owner for owner in owners}, ("gw",))


FIRST = bundle_over("q1", Join(LEFT, LEFT, JoinKind.INNER, ((0, 0),)), leaves())
SECOND = bundle_over("q2", Join(result(FIRST), RIGHT, JoinKind.INNER, ((0, 0),)), leaves(FIRST))
THIRD = bundle_over(
    "q3", Join(result(SECOND), Distinct(RIGHT), JoinKind.LEFT, ((0, 0),)), leaves(SECOND)
)
RUNS = {bundle.query: bundle for bundle in (FIRST, SECOND, THIRD)}


def test_a_bundle_without_feeds_computes_all_itself() -> None:
    alone = replace(THIRD, feeds=())
    assert run_fragments(alone, RUNS.get) == {f.id: ("q3", f.id) for f in alone.fragments}


def test_fragments_are_found_over_any_number_of_feeds() -> None:
    assert run_fragments(THIRD, RUNS.get) == {
        "f0": ("q3", "f0"),
        "right": ("q3", "right"),
        "q2.f0": ("q2", "f0"),
        "q2.right": ("q2", "right"),
        "q2.q1.f0": ("q1", "f0"),
        "q2.q1.left": ("q1", "left"),
    }


def test_of_a_feeder_that_is_not_there_nothing_is_known() -> None:
    own = {"f0": ("q3", "f0"), "right": ("q3", "right")}
    assert run_fragments(THIRD, lambda _run: None) == own
    newer = {**RUNS, "q2": replace(SECOND, version=2)}
    assert run_fragments(THIRD, newer.get) == own
    without_first = {"q2": SECOND}
    found = run_fragments(THIRD, without_first.get)
    assert set(found) == {"f0", "right", "q2.f0", "q2.right"}
