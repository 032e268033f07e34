"""What will keep a recursion is told before it runs, and is what keeps it then."""

import msgspec
import pytest

from stream_engine.recursion.foreseen import foreseen
from stream_engine.recursion.strategies import recursive_operator
from streamsql.algebra.operators import Fixpoint, RecursionChoice, walk_plan
from streamsql.errors import UnsupportedError
from tests.streamsql.from_text import bound_query, catalog_of

SOURCES = """
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, bandwidth DOUBLE);
CREATE SOURCE parent (child TEXT, ancestor TEXT);
CREATE VIEW channel AS SELECT src, dst, bandwidth FROM link;
"""
NEAREST = """WITH RECURSIVE near (src, dst, cost) AS (
  SELECT src, dst, cost FROM link
  UNION SELECT l.src, n.dst, l.cost + n.cost FROM link l JOIN near n ON l.dst = n.src)
SELECT src, dst, MIN(cost) AS cost FROM near GROUP BY src, dst"""


def fixpoint(text: str, **choice: str) -> Fixpoint:
    catalog = catalog_of(SOURCES, library=True)
    plan = bound_query(text, catalog).plan
    (node,) = {n for n in walk_plan(plan) if isinstance(n, Fixpoint)}
    return msgspec.structs.replace(node, choice=msgspec.convert(choice, RecursionChoice))


@pytest.mark.parametrize(
    ("text", "choice", "told"),
    [
        ("SELECT * FROM reachable", {}, "kernel: reachable (python), nodes that a deletion"),
        (NEAREST, {}, "kernel: cheapest (python), shortest paths repaired"),
        (NEAREST, {"compiled": "yes"}, "kernel: cheapest (compiled), shortest paths repaired"),
        ("SELECT * FROM widest_path", {"compiled": "yes"}, "python: this kind is not compiled"),
        (NEAREST, {"strategy": "ranked"}, "ranked"),
        ("SELECT * FROM same_generation", {}, "ranked; no kernel applies, because only the rec"),
        ("SELECT * FROM reachable", {"strategy": "dred"}, "delete and rederive"),
    ],
)
def test_at_one_place(text: str, choice: dict[str, str], told: str) -> None:
    assert told in foreseen(fixpoint(text, **choice), ("base",))


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({}, "absorption (witness)"),
        ({"way": "flood"}, "kernel: reachable (python), base rows flooded to all sites"),
        ({"way": "annotations", "annotations": "bdd"}, "absorption (bdd, lazy)"),
        ({"strategy": "relative"}, "relative (lazy)"),
    ],
)
def test_at_several_sites(choice: dict[str, str], told: str) -> None:
    assert told in foreseen(fixpoint("SELECT * FROM reachable", **choice), ("a", "b"))


@pytest.mark.parametrize("view", ["reachable", "same_generation", "widest_path"])
@pytest.mark.parametrize("strategy", ["auto", "ranked", "recompute", "absorption", "set"])
def test_what_is_told_is_what_the_operator_says_when_it_starts(view: str, strategy: str) -> None:
    node = fixpoint(f"SELECT * FROM {view}", strategy=strategy)
    operator = recursive_operator(node, site="s", sites=("s",), epoch=1)
    assert foreseen(node, ("s",)).startswith(operator.description)


def test_a_kernel_that_does_not_fit_is_refused_with_the_reason_and_what_to_write() -> None:
    node = fixpoint("SELECT * FROM same_generation", strategy="kernel")
    with pytest.raises(UnsupportedError, match="same_generation is not a graph problem") as caught:
        foreseen(node, ("base",))
    assert "strategy = 'ranked'" in caught.value.hint


def test_sites_that_are_not_known_yet_do_not_matter() -> None:
    assert foreseen(fixpoint(NEAREST), ()).startswith("kernel: cheapest")
