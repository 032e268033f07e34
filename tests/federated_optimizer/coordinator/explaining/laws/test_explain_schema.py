"""The data of EXPLAIN is as its published schema says, for queries of all kinds."""

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from deploy.session.engines import LocalPlanner
from federated_optimizer.coordinator.explaining.explaining import explained
from streamsql.syntax import Explain, ExplainFormat, parse_statement
from tests.streamsql.from_text import catalog_of

SCHEMA = json.loads(Path("docs/schemas/explain.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CATALOG = catalog_of(
    """CREATE SOURCE temp (rid TEXT, celsius DOUBLE, level INTEGER);
    CREATE SOURCE room (rid TEXT, open BOOLEAN, n INTEGER, PRIMARY KEY (rid));
    CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, PRIMARY KEY (src, dst));
    CREATE TABLE lab (rid TEXT PRIMARY KEY, name TEXT) WITH (source = 'csv', path = 'lab.csv');"""
)
REACH = """WITH RECURSIVE reach (src, dst) AS (SELECT src, dst FROM link UNION
    SELECT r.src, l.dst FROM reach r JOIN link l ON l.src = r.dst)
    SELECT src, dst FROM reach"""
QUERIES = [
    "SELECT MAX(celsius) AS m FROM temp [RANGE 1 MINUTE]",
    "SELECT rid, AVG(celsius) AS a FROM temp [RANGE 1 MINUTE] WHERE level > 3 GROUP BY rid",
    "SELECT * FROM temp [RANGE 1 MINUTE] ORDER BY celsius LIMIT 3",
    "SELECT r.rid, l.name FROM room r JOIN lab l ON l.rid = r.rid WHERE r.n > 3",
    "SELECT rid FROM room WHERE NOT EXISTS (SELECT 1 FROM temp t WHERE t.rid = room.rid)",
    "SELECT open, COUNT(*) AS n FROM room GROUP BY open UNION ALL"
    " SELECT TRUE AS open, COUNT(*) AS n FROM lab",
    "ISTREAM(SELECT rid FROM room)",
    "SELECT 1 AS one",
    REACH,
    f"{REACH} WITH (way = 'witness')",
    "CREATE VIEW hot AS SELECT rid FROM temp [RANGE 1 MINUTE] WHERE celsius > 30.0",
]


def check(data: Any) -> None:
    """Hold data against the schema as a reader gets it."""
    VALIDATOR.validate(json.loads(json.dumps(data)))


def told(text: str) -> Any:
    statement = parse_statement(text)
    assert isinstance(statement, Explain)
    return explained(statement, CATALOG, LocalPlanner(CATALOG, 3), ()).data


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("kind", ["FEDERATED", "ALTERNATIVES"])
@pytest.mark.parametrize("text", QUERIES)
def test_the_data_of_a_query_that_would_run(kind: str, text: str) -> None:
    check(told(f"EXPLAIN (TYPE {kind}, FORMAT JSON) {text}"))


def test_other_data_is_refused() -> None:
    data = told(f"EXPLAIN (TYPE FEDERATED, FORMAT JSON) {QUERIES[0]}")
    for changed in (
        {**data, "version": 2},
        {**data, "more": 1},
        {key: value for key, value in data.items() if key != "fragments"},
        {**data, "fragments": [{**data["fragments"][0], "estimated": None}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            check(changed)


def test_the_data_of_running_queries(harness: Any) -> None:
    join = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        texts = (join, join, join.replace("JOIN", "LEFT JOIN"), "SELECT mid, rid FROM Machines")
        started = [await harness.start_query(coordinator, text) for text in texts]
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        federation.sites["gw-2"].put("link", ("a", "r1", 1.0))
        await harness.until(lambda: all(coordinator.query(q).settled for q in started))
        for query in started:
            check(coordinator.explain(query).data)
            found = await coordinator.explained(query)
            check(found.data)
            assert found.data["alternatives"]["plans"]
            assert found.text == "\n".join(found.data["text"])
            assert f"\nPlan {found.data['alternatives']['chosen']} of " in found.text
            drawn = await coordinator.explained(query, ExplainFormat.DOT)
            assert drawn.text.startswith("digraph")
            assert all(f["id"] in drawn.text for f in found.data["fragments"])
        for text in texts:
            (found,) = await coordinator.execute(f"EXPLAIN ANALYZE (FORMAT JSON) {text}")
            check(found.data)
            assert found.data["alternatives"]["plans"]
            (graph,) = await coordinator.execute(f"EXPLAIN ANALYZE (FORMAT DOT) {text}")
            assert graph.text.startswith("digraph plan {")
            assert "estimated" in graph.text

    harness.run(scenario)
