"""A view of REFRESH AT as REST shows it."""

from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.refresh_times import RefreshSchedule
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from ui.api.objects import definition_object


def test_it_is_a_view_with_its_times() -> None:
    schedule = RefreshSchedule("SELECT room FROM desks", (840, 1440), (0.5, 1.0))
    schema = Schema.of(("room", DataType.TEXT))
    view = SourceDefinition("rooms", SourceKind.TABLE, schema, refresh=schedule, text="CREATE …")
    shown = definition_object(view)
    assert shown["kind"] == "view"
    assert shown["refresh"] == "14:00 (weight 0.5), 24:00 (weight 1)"
    assert [column["name"] for column in shown["columns"]] == ["room"]
    assert "stream" not in shown
