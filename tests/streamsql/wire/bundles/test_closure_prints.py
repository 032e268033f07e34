"""Closure prints are equal for the same computation, whatever its parts are called."""

import pytest
from msgspec.structs import replace

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Distinct,
    Join,
    JoinKind,
    Plan,
    Project,
    RemoteSource,
    Scan,
    SourceKind,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError
from streamsql.wire.bundles.closure_prints import closure_print, closure_prints, is_kept
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

COLUMNS = Schema.of(("r", DataType.TEXT), ("s", DataType.TEXT))
ROOM = Scan("room", SourceKind.STREAM, COLUMNS, (0,))
BASE = ("base",)


def node(over: str = "f1", name: str = "f0", consumer: str = "") -> Fragment:
    """Return the result of a node, or a reader's copy of it."""
    plan = Distinct(RemoteSource(over, COLUMNS))
    return Fragment(name, Engine.BASE, plan, BASE, consumer, BASE if consumer else ())


LEAF = Fragment("f1", Engine.GATEWAY, ROOM, ("g1", "g2"), "f0", BASE)


def prints(fragments: tuple[Fragment, ...], name: str = "f0", query: str = "q1") -> str:
    return closure_print(FragmentBundle(query, 1, fragments, COLUMNS), name)


OWNER = prints((node(), LEAF))


def test_a_copy_under_other_ids_has_the_print_of_the_result() -> None:
    reader = (
        Fragment("f0", Engine.BASE, RemoteSource("a", COLUMNS), BASE),
        node("b", "a", "f0"),
        replace(LEAF, id="b", consumer="a", reasons=("it is so",), notes=("note",)),
    )
    assert prints(reader, "a", "q7") == OWNER
    assert prints(reader) != OWNER


@pytest.mark.parametrize(
    "changed",
    [
        replace(LEAF, sites=("g1",)),
        replace(LEAF, destinations=("base", "other")),
        replace(LEAF, destinations=("base", "other"), partition=(0,)),
        replace(LEAF, homes=(("a", 0),)),
        replace(LEAF, plan=replace(ROOM, source="hall")),
        replace(LEAF, plan=Project(ROOM, (Column(1, "s", DataType.TEXT),) * 2, ("r", "s"))),
    ],
    ids=["sites", "destinations", "partition", "homes", "source", "plan"],
)
def test_another_computation_below_has_another_print(changed: Fragment) -> None:
    assert prints((node(), changed)) != OWNER


def test_two_leaves_are_told_apart_by_what_they_read() -> None:
    def joined(left: str, right: str) -> str:
        plan: Plan = Join(
            RemoteSource(left, COLUMNS), RemoteSource(right, COLUMNS), JoinKind.INNER, ((0, 0),)
        )
        hall = replace(LEAF, id="f2", plan=replace(ROOM, source="hall"))
        return prints((Fragment("f0", Engine.BASE, plan, BASE), LEAF, hall))

    assert len({joined("f1", "f2"), joined("f2", "f1"), joined("f1", "f1")}) == 3


def test_rows_that_go_to_several_sites_are_not_kept() -> None:
    two = replace(node(consumer="f9"), sites=("b1", "b2"), destinations=("b1", "b2"))
    assert is_kept(node())
    assert is_kept(node(consumer="f9"))
    assert not is_kept(two)
    assert not is_kept(LEAF)


def test_circles_and_gaps_are_refused() -> None:
    with pytest.raises(InternalError, match="f0 reads itself"):
        prints((node("f0"),))
    with pytest.raises(KeyError, match="f1"):
        prints((node(),))


def test_all_prints_of_a_bundle_are_those_of_its_fragments() -> None:
    bundle = FragmentBundle("q1", 1, (node(), LEAF), COLUMNS)
    each = {fragment.id: closure_print(bundle, fragment.id) for fragment in bundle.fragments}
    assert closure_prints(bundle) == each
    assert len(set(each.values())) == 2
