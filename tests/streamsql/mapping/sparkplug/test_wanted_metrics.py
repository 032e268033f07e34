"""Which metrics a source reads."""

from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from streamsql.mapping.sparkplug.wanted_metrics import wanted_metrics


def test_columns_of_facts_and_of_the_topic_read_no_metric() -> None:
    columns = {
        "node": ColumnMapping(),
        "machine": ColumnMapping(),
        "who": ColumnMapping("@device"),
        "speed": ColumnMapping("Motor/Speed"),
        "Temp": ColumnMapping(),
    }
    mapping = SourceMapping(
        "mqtt",
        format=PayloadFormat.SPARKPLUG,
        columns=tuple(columns.values()),
        options=(("topic", "spBv1.0/+/+/+/{machine}"),),
    )
    schema = Schema.of(*((name, DataType.TEXT) for name in columns))
    assert wanted_metrics(mapping, schema) == {"Motor/Speed", "Temp"}
