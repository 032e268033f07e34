"""Walks over trees visit what sqlglot's own visit, in their order."""

import pytest
from sqlglot import exp, parse_one

from streamsql.syntax.tree_nodes import children_of, holds, nodes_of

TEXTS = (
    "SELECT 1",
    "SELECT a.x, SUM(b.y) FROM a JOIN b ON a.k = b.k WHERE a.x IN (1, 2, 3) GROUP BY a.x",
    "WITH t AS (SELECT * FROM s UNION ALL SELECT * FROM r) SELECT CASE WHEN x THEN 2 END FROM t",
    "SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) FROM t WHERE EXISTS (SELECT 1)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_all_nodes_in_the_order_of_sqlglot(text: str) -> None:
    tree = parse_one(text)
    assert list(map(id, nodes_of(tree))) == list(map(id, tree.walk()))
    for node in tree.walk():
        assert list(map(id, children_of(node))) == list(map(id, node.iter_expressions()))


@pytest.mark.parametrize("text", TEXTS)
def test_kinds_that_a_tree_holds(text: str) -> None:
    tree = parse_one(text)
    for kind in (exp.Window, exp.In, exp.AggFunc, exp.Case, exp.Select):
        assert holds(tree, kind) == (tree.find(kind) is not None)
    assert holds(tree, exp.Insert, exp.Select)
