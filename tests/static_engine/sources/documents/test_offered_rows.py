"""Offered columns: names match without regard to case, and values of lists are JSON."""

from static_engine.sources.documents.offered_rows import batches_of
from streamsql.data.types import Row
from tests.static_engine.sources.documents.document_tables import table


def test_a_declared_column_gets_its_value_whatever_its_case() -> None:
    definition = table("A TEXT, b TEXT", source="geojson", path="x")
    found: list[Row] = []
    for batch in batches_of(definition, [{"a": [1, {"c": None}]}, {"b": "x"}], ["A", "B"], "x"):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    assert found == [('[1,{"c":null}]', None), (None, "x")]
