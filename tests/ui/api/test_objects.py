"""Objects of the REST interface."""

from federated_optimizer.coordinator.contract.coordinator_model import QueryInfo, QueryStatus
from tests.streamsql.from_text import catalog_of
from ui.api.objects import definition_object, query_object

CLIMATE = """
CREATE SOURCE climate (device TEXT, temp DOUBLE UNIT 'Cel', KEY (device))
  WITH (connector = 'mqtt', topic = 'a/{device}');
"""


def test_columns_have_units_where_they_are_known() -> None:
    (source,) = (s for s in catalog_of(CLIMATE).sources if s.name == "climate")
    columns = [
        {"name": "device", "type": "TEXT"},
        {"name": "temp", "type": "DOUBLE", "unit": "Cel"},
    ]
    assert definition_object(source)["columns"] == columns
    query = QueryInfo("q1", "", "", QueryStatus.RUNNING, source.schema, units=source.units)
    assert query_object(query)["columns"] == columns


def test_functions_show_their_body() -> None:
    create = "CREATE AGGREGATE spread(v DOUBLE) RETURNS DOUBLE AS (MAX(v) - MIN(v))"
    (spread,) = catalog_of(create).functions
    shown = definition_object(spread)
    assert (shown["kind"], shown["result"]) == ("aggregate", "DOUBLE")
    assert shown["implementation"] == "(MAX(v) - MIN(v))"
    assert shown["text"] == create
