"""The rows of a fragment that its reader is given, as sites look readers up, and their price."""

import pytest

from federated_optimizer.costs.handed_rows import (
    HandedRows,
    handed_rows,
    operators_above,
    reading_price,
)
from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics
from federated_optimizer.statistics.speeds import Micros
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
    f"{ALL} WHERE k + 0 = 1",
    f"{ALL} WHERE k - n > 1",
    f"{ALL} WHERE LOWER(t) LIKE 'a%'",
    f"{ALL} WHERE t LIKE '%a'",
    f"{ALL} WHERE k = 1 OR n = 3",
    "SELECT x FROM (SELECT n + 1 AS x FROM r) q WHERE x = 2",
    "SELECT x FROM (SELECT n AS x, t FROM r) q WHERE x >= 2 AND t <> 'a'",
    "SELECT t, COUNT(*) AS c FROM r WHERE n < 5 GROUP BY t",
    "SELECT q.n FROM (SELECT k, n FROM r WHERE n = 3) q JOIN s ON q.k = s.k",
)
LOOKED_AT = (
    f"{ALL} WHERE k = n",
    f"{ALL} WHERE t LIKE '%_'",
    f"{ALL} WHERE k <> 1",
    f"{ALL} WHERE k = 1 OR n <> 3",
)
GIVEN_ALL = (
    ALL,
    "SELECT n + 1 AS x FROM r",
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
    found = handed(text)
    assert found.drops
    assert found.condition is not None
    assert found.condition == needed_rows([over_fragment(text)], LEAF.fragment, COLUMNS).condition


@pytest.mark.parametrize("text", [*LOOKED_AT, *GIVEN_ALL])
def test_other_readers_are_not_looked_up(text: str) -> None:
    assert handed(text).condition is None
    assert handed(text).drops == (text in LOOKED_AT)


@pytest.mark.parametrize("text", GIVEN_ALL)
def test_who_drops_nothing_at_once_is_given_all(text: str) -> None:
    assert handed(text).given is LEAF


def test_rows_that_a_filter_keeps_are_given() -> None:
    found = handed("SELECT t, COUNT(*) AS c FROM r WHERE n < 5 GROUP BY t")
    assert found.given is found.above[0]
    assert isinstance(found.given, Filter)
    assert found.given.input is LEAF


STATISTICS = Statistics(sources={"r": SourceFacts(1_000.0, 4.0), "s": SourceFacts(10.0, 0.0)})
MICROS = Micros(step=1_000.0, filter=100.0, filter_row=10.0, lookup=1.0)


def price(text: str, *, bunched: float = 1.0, paid: float = 1.0) -> float:
    """Return the microseconds a second of reading a relation with 40 changes a second."""
    changing = Estimate(1_000.0, 40.0, 0.0, bunched=bunched)
    estimating = Estimating(STATISTICS, leaves={LEAF.fragment: changing})
    return reading_price(handed(text), estimating, MICROS, paid=paid)


def test_rows_that_are_all_given_take_a_step_and_a_filter() -> None:
    assert price(ALL) == 40 * (1_000 + 100)
    assert price(ALL, bunched=10.0) == 4 * (1_000 + 100) + 36 * 10


def test_rows_that_are_dropped_are_looked_at_and_take_no_step() -> None:
    tenth = f"{ALL} WHERE k = 1"  # as long as nobody has counted
    assert price(tenth) == pytest.approx(40 * 100 + 4 * (1_000 + 100))
    looked_at = 4 * 100 + 36 * 1
    assert price(tenth, bunched=10.0) == pytest.approx(looked_at + 4 * (1_000 + 100))


def test_looking_at_rows_is_shared_among_readers() -> None:
    found = f"{ALL} WHERE k = 1"
    assert price(found) - price(found, paid=0.25) == pytest.approx(0.75 * 40 * 100)


def test_operators_of_fragments_are_left_out() -> None:
    plan = over_fragment("SELECT r.n FROM r JOIN s ON r.k = s.k")
    whole = list(operators_above(plan, (LEAF,)))
    assert LEAF not in whole
    (join,) = (node for node in whole if isinstance(node, Join))
    assert join not in list(operators_above(plan, (join,)))
