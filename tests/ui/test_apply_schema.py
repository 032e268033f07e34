"""Applying a site's script to the catalog."""

import asyncio
import logging
from typing import Any

import pytest

from streamsql.errors import BindingError, QuerySyntaxError
from ui.apply_schema import apply_schema

SEAT = "CREATE SOURCE Chair (mid TEXT, weight DOUBLE, KEY (mid));"
VIEW = "CREATE VIEW TakenChair AS SELECT mid FROM Chair WHERE weight > 5.0;"


def apply(coordinator: Any, script: str) -> int:
    return asyncio.run(apply_schema(coordinator, script))


def text_of(coordinator: Any, name: str) -> str:
    return str(next(d.text for d in coordinator.definitions() if d.name.lower() == name.lower()))


def test_what_is_unknown_is_defined_once(coordinator: Any) -> None:
    assert apply(coordinator, SEAT + VIEW) == 2
    assert apply(coordinator, SEAT + VIEW) == 0
    assert "weight > 5.0" in text_of(coordinator, "TakenChair")


def test_what_has_changed_is_replaced(coordinator: Any) -> None:
    apply(coordinator, SEAT + VIEW)
    assert apply(coordinator, SEAT + VIEW.replace("5.0", "7.0")) == 1
    assert "weight > 7.0" in text_of(coordinator, "TakenChair")


def test_a_source_gives_way_although_a_view_reads_it(coordinator: Any) -> None:
    apply(coordinator, SEAT + VIEW)
    wider = SEAT.replace("weight DOUBLE", "weight DOUBLE, room TEXT").replace("CREATE", "create")
    assert apply(coordinator, wider + VIEW) == 1
    assert "room TEXT" in text_of(coordinator, "Chair")
    assert apply(coordinator, wider + VIEW) == 0


def test_a_source_that_people_have_altered_stays_so(coordinator: Any) -> None:
    meter = (
        "CREATE SOURCE Meter (device TEXT, watts DOUBLE, KEY (device)) "
        "WITH (connector = 'mqtt', endpoint = 'home', topic = 'm/{device}');"
    )
    altered = meter.replace("watts DOUBLE,", "watts DOUBLE, volts DOUBLE FROM 'u',")
    assert apply(coordinator, altered) == 1
    assert apply(coordinator, meter) == 0
    assert "volts" in text_of(coordinator, "meter")


def test_a_source_of_another_sites_script_is_replaced(coordinator: Any) -> None:
    """Motes and recordings call different things by one name."""
    columns = "CREATE LINK SOURCE Wire (src TEXT, dst TEXT, KEY (src, dst))"
    motes = f"{columns} WITH (connector = 'motes', endpoint = 'building', topic = 'link');"
    trace = f"{columns} WITH (connector = 'replay', endpoint = 'recording');"
    former = f"{columns} WITH (connector = 'motes', topic = 'link');"  # a catalog of 0.1
    radio = f"{columns} WITH (connector = 'mqtt', endpoint = 'home', topic = 'w/{{src}}/{{dst}}');"
    assert apply(coordinator, former) == 1
    for script, connector in ((motes, "building"), (trace, "recording"), (motes, "building")):
        assert apply(coordinator, script) == 1
        assert connector in text_of(coordinator, "Wire")
        assert apply(coordinator, script) == 0
    assert apply(coordinator, radio) == 1
    assert apply(coordinator, motes) == 0, "real devices stay"
    assert "mqtt" in text_of(coordinator, "Wire")


def test_a_recording_has_the_columns_of_its_file(coordinator: Any) -> None:
    first = "CREATE SOURCE tide (a INTEGER) WITH (connector = 'replay', endpoint = 'recording');"
    assert apply(coordinator, first) == 1
    assert apply(coordinator, first.replace("a INTEGER", "a INTEGER, b TEXT")) == 1
    assert "b TEXT" in text_of(coordinator, "tide")


def test_what_is_in_use_is_kept_with_a_warning(
    coordinator: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(coordinator, SEAT + VIEW)
    execute = coordinator.execute

    async def refusing(text: str, **options: Any) -> Any:
        if text.startswith("DROP"):
            raise BindingError("query q1 uses it")
        return await execute(text, **options)

    monkeypatch.setattr(coordinator, "execute", refusing)
    with caplog.at_level(logging.WARNING):
        assert apply(coordinator, SEAT + VIEW.replace("5.0", "7.0")) == 0
    assert "query q1 uses it" in caplog.text
    assert "weight > 5.0" in text_of(coordinator, "TakenChair")


def test_other_statements_are_not_run(coordinator: Any) -> None:
    assert apply(coordinator, "SELECT mid FROM SeatSensor; DROP VIEW FreeMachines") == 0
    assert text_of(coordinator, "FreeMachines")


def test_a_broken_script_is_refused_as_a_whole(coordinator: Any) -> None:
    with pytest.raises(QuerySyntaxError):
        apply(coordinator, SEAT + "CREATE CHAIR")
    assert not any(d.name == "chair" for d in coordinator.definitions())
