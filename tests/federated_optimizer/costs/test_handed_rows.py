"""The rows of a fragment for which its reader is asked: as sites look readers up."""

import pytest

from federated_optimizer.costs.handed_rows import HandedRows, handed_rows, operators_above
from streamsql.algebra.operators import Filter, Join, Plan, RemoteSource, Scan, transform_up
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.bundles.needed_rows import needed_rows
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE SOURCE r (k INTEGER, n INTEGER, t TEXT); CREATE SOURCE s (k INTEGER);")
COLUMNS = Schema.of(("k", DataType.INTEGER), ("n", DataType.INTEGER), ("t", DataType.TEXT))
LEAF = RemoteSource("f1", COLUMNS)

ALL = "SELECT k, n FROM r"
LOOKED_UP = (
    f"{ALL} WHERE k = 1",
    f"{ALL} WHERE 3 > n AND t LIKE 'a%'",
    f"{ALL} WHERE k IN (1, 2)",
    f"{ALL} WHERE k = 1 OR k = 3",
    "SELECT x FROM (SELECT n AS x, t FROM r) q WHERE x >= 2 AND t <> 'a'",
    "SELECT t, COUNT(*) AS c FROM r WHERE n < 5 GROUP BY t",
    "SELECT q.n FROM (SELECT k, n FROM r WHERE n = 3) q JOIN s ON q.k = s.k",
)
ASKED_FOR_ALL = (
    ALL,
    f"{ALL} WHERE k = n",
    f"{ALL} WHERE k + 0 = 1",
    f"{ALL} WHERE t LIKE 'a%'",
    f"{ALL} WHERE k <> 1",
    f"{ALL} WHERE k = 1 OR n = 3",
    "SELECT x FROM (SELECT n + 1 AS x FROM r) q WHERE x = 2",
    "SELECT k FROM r WHERE k = 1 UNION ALL SELECT n FROM r WHERE k = 2",
)


def over_fragment(text: str) -> Plan:
    """Return the plan of a query over a fragment in the place of r."""

    def put(node: Plan) -> Plan:
        return LEAF if isinstance(node, Scan) and node.source == "r" else node

    return transform_up(bound_query(text, CATALOG).plan, put)


def handed(text: str) -> HandedRows:
    (found,) = handed_rows(over_fragment(text), (LEAF,))
    return found


@pytest.mark.parametrize("text", LOOKED_UP)
def test_a_comparison_with_a_constant_is_looked_up(text: str) -> None:
    assert isinstance(handed(text).asked, Filter)
    assert handed(text).asked.inputs == (LEAF,)


@pytest.mark.parametrize("text", ASKED_FOR_ALL)
def test_other_readers_are_asked_for_each_row(text: str) -> None:
    assert handed(text).asked is LEAF


@pytest.mark.parametrize(
    ("text", "by"),
    [
        (f"{ALL} WHERE k = 1 AND n < 5", "k = 1"),
        (f"{ALL} WHERE n < 5 AND n > 1 AND k > 2", "n < 5 AND n > 1"),
        (f"{ALL} WHERE k IN (1, 2) AND k = 2", "k = 2"),
    ],
)
def test_of_several_conditions_rows_are_found_by_one(text: str, by: str) -> None:
    asked = handed(text).asked
    assert isinstance(asked, Filter)
    assert asked == handed(f"{ALL} WHERE {by}").asked
    needed = needed_rows([over_fragment(text)], LEAF.fragment, COLUMNS)
    assert needed.condition == needed_rows([asked], LEAF.fragment, COLUMNS).condition


def test_what_is_right_above_is_told_from_below() -> None:
    found = handed("SELECT t, COUNT(*) AS c FROM r WHERE n < 5 GROUP BY t")
    assert found.above[0].inputs == (LEAF,)
    assert isinstance(found.above[0], Filter)


def test_operators_of_fragments_are_left_out() -> None:
    plan = over_fragment("SELECT r.n FROM r JOIN s ON r.k = s.k")
    whole = list(operators_above(plan, (LEAF,)))
    assert LEAF not in whole
    (join,) = (node for node in whole if isinstance(node, Join))
    assert join not in list(operators_above(plan, (join,)))
