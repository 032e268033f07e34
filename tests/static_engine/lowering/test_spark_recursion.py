"""Rounds of a recursion: the places at which a branch reads what is new."""

from static_engine.lowering.spark_recursion import variants
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Join,
    JoinKind,
    Plan,
    RecursiveReference,
    UnionAll,
    Values,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

COLUMNS = Schema.of(("src", DataType.TEXT), ("dst", DataType.TEXT))
KNOWN = RecursiveReference("r", COLUMNS)
NEWS = RecursiveReference("news", COLUMNS)
EDGES = Values((("a", "b"),), COLUMNS)


def joined(left: Plan, right: Plan, kind: JoinKind = JoinKind.SEMI) -> Join:
    return Join(left, right, kind, ((1, 0),))


def test_each_place_reads_the_news_once_while_the_others_read_what_is_known() -> None:
    assert variants(joined(KNOWN, EDGES), "r", "news") == (joined(NEWS, EDGES),)
    both = Distinct(joined(KNOWN, KNOWN))
    assert variants(both, "r", "news") == (
        Distinct(joined(NEWS, KNOWN)),
        Distinct(joined(KNOWN, NEWS)),
    )


def test_of_a_union_only_the_branch_with_the_news_is_new() -> None:
    union = UnionAll((EDGES, joined(KNOWN, EDGES)))
    assert variants(union, "r", "news") == (joined(NEWS, EDGES),)


def test_where_news_take_something_away_all_that_is_known_is_read() -> None:
    for branch in (joined(EDGES, KNOWN, JoinKind.ANTI), Distinct(Aggregate(KNOWN, (0, 1), ()))):
        assert variants(branch, "r", "news") == (branch,)
    left = joined(KNOWN, EDGES, JoinKind.ANTI)
    assert variants(left, "r", "news") == (joined(NEWS, EDGES, JoinKind.ANTI),)
