"""Queries that read rows twice: former plans are those of today with fragments apart."""

import pytest

from benchmarks.read_twice import QUERIES, apart, measured, world_of
from streamsql.algebra.operators import Distinct, RemoteSource, Scan, SourceKind, UnionAll
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle


def test_readers_have_fragments_of_their_own() -> None:
    columns = Schema.of(("a", DataType.TEXT))
    scan, top = Scan("s", SourceKind.STREAM, columns), RemoteSource("f2", columns)
    base = ("base",)
    fragments = (
        Fragment("f0", Engine.BASE, UnionAll((RemoteSource("f1", columns), top)), base),
        Fragment("f1", Engine.BASE, Distinct(top), base, "f0", base),
        Fragment("f2", Engine.GATEWAY, scan, ("gw-1",), "f0", base),
    )
    made = apart(FragmentBundle("q", 1, fragments, columns))
    assert sorted((f.consumer, f.engine) for f in made.fragments) == [
        ("", "base"),
        ("f0", "base"),
        ("f0", "gateway"),
        ("f1", "gateway"),
    ]
    assert all(len(set(made.readers(f.id))) <= 1 for f in made.fragments)


@pytest.mark.parametrize("name", QUERIES)
def test_both_plans_are_right(name: str) -> None:
    figures = measured(world_of(5.0, 1), name)
    assert figures["right"]
    assert figures["after"] > 0
