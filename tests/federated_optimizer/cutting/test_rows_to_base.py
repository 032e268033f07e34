"""Groups, distinct and first rows of one source are at the base if gateways are to send rows."""

import pytest

from federated_optimizer.cutting.placing import place
from federated_optimizer.cutting.rows_to_base import has_parts, rows_to_base
from federated_optimizer.planning import normalize
from streamsql.algebra.operators import Aggregate, Distinct, Plan, TopN, walk_plan
from streamsql.wire.fragments import Engine
from tests.federated_optimizer.registering.test_rows_there import CATALOG, TOPOLOGY
from tests.streamsql.from_text import bound_query


def normal(text: str) -> Plan:
    return normalize(bound_query(text, CATALOG).plan, TOPOLOGY)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT who, MAX(n) AS v FROM steps WHERE n > 1 GROUP BY who",
        "SELECT DISTINCT who FROM steps [RANGE 10 MINUTES]",
        "SELECT who, n FROM steps ORDER BY n DESC, who LIMIT 3",
        "SELECT g.c, r.floor FROM (SELECT who, COUNT(n) AS c FROM steps GROUP BY who) g "
        "JOIN rooms r ON g.who = r.rid",
    ],
)
def test_gateways_select_rows_alone(text: str) -> None:
    plan = normal(text)
    assert has_parts(plan)
    bundle = place(plan, TOPOLOGY, query="q1", taken=rows_to_base(plan))
    for fragment in bundle.fragments:
        if fragment.engine == Engine.GATEWAY:
            nodes = walk_plan(fragment.plan)
            assert not any(isinstance(node, Aggregate | Distinct | TopN) for node in nodes)


def test_it_has_no_say_in_selections_and_in_groups_of_joins() -> None:
    joined = "steps s JOIN rooms r ON s.who = r.rid"
    for text in (
        "SELECT who FROM steps",
        f"SELECT r.floor, COUNT(*) AS c FROM {joined} GROUP BY r.floor",
    ):
        assert not has_parts(normal(text))
