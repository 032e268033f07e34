"""CREATE OR REPLACE SOURCE and ALTER SOURCE while queries, views and alarms read the source."""

from typing import Any

import pytest

from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError

SOURCE = "SOURCE climate (device TEXT, temp DOUBLE, n INTEGER, KEY (device))"
WITH = "WITH (connector = 'mqtt', topic = 'tele/{device}')"
WIDER = "SOURCE climate (n INTEGER, device TEXT, hum DOUBLE FROM 'h', temp DOUBLE, KEY (device))"


def source(coordinator: Any) -> SourceDefinition:
    found = next(d for d in coordinator.definitions() if d.name == "climate")
    assert isinstance(found, SourceDefinition)
    return found


async def declared(federation: Any) -> Any:
    await federation.site("base", "base")
    coordinator = await federation.coordinator()
    await coordinator.execute(f"CREATE {SOURCE} {WITH}")
    return coordinator


def test_versions_count_on_over_drops_and_restarts(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await declared(federation)
        assert source(coordinator).version == 1
        (result,) = await coordinator.execute(f"CREATE OR REPLACE {WIDER} {WITH}")
        assert result.message == "source climate replaced, version 2"
        await coordinator.close()
        again = await federation.coordinator()
        assert source(again).version == 2
        assert source(again).schema.names == ("n", "device", "hum", "temp")
        await again.execute("DROP SOURCE climate")
        await again.execute(f"CREATE {SOURCE} {WITH}")
        assert source(again).version == 3

    harness.run(scenario)


def test_or_replace_creates_what_is_not_there(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.coordinator()
        (result,) = await coordinator.execute(f"CREATE OR REPLACE {SOURCE} {WITH}")
        assert result.message == "source climate created"
        assert source(coordinator).version == 1

    harness.run(scenario)


@pytest.mark.parametrize(
    ("reader", "new", "told"),
    [
        (
            "SELECT temp FROM climate",
            "SOURCE climate (device TEXT, n INTEGER, KEY (device))",
            "query q1 reads temp, which would be gone",
        ),
        (
            "SELECT device FROM climate WHERE n = 3",
            "SOURCE climate (device TEXT, temp DOUBLE, n TEXT, KEY (device))",
            "query q1 reads n, which would be TEXT instead of INTEGER",
        ),
        (
            "SELECT device FROM climate WHERE n > 3",
            "SOURCE climate (device TEXT, temp DOUBLE, n DOUBLE, KEY (device))",
            "query q1 reads n, which would be DOUBLE instead of INTEGER",
        ),
        (
            "SELECT * FROM climate",
            "SOURCE climate (device TEXT, n INTEGER, KEY (device))",
            "query q1 reads temp, which would be gone",
        ),
        (
            "CREATE VIEW hot AS SELECT device FROM climate WHERE temp > 27",
            "SOURCE climate (device TEXT, n INTEGER, KEY (device))",
            "view hot reads temp, which would be gone",
        ),
        (
            "CREATE ALARM hot AS SELECT device FROM climate WHERE temp > 27 SEVERITY 'info'",
            "SOURCE climate (device TEXT, n INTEGER, KEY (device))",
            "alarm hot reads temp, which would be gone",
        ),
        (
            "SELECT hum FROM climate JOIN machines ON device = mid",
            WIDER,
            "query q1 would fail: column 'hum' is ambiguous",
        ),
    ],
)
def test_what_a_reader_needs_stays(harness: Any, reader: str, new: str, told: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await declared(federation)
        await coordinator.execute("CREATE SOURCE machines (mid TEXT, hum DOUBLE, KEY (mid))")
        await coordinator.execute(reader)
        before = source(coordinator)
        with pytest.raises(BindingError) as caught:
            await coordinator.execute(f"CREATE OR REPLACE {new} {WITH}")
        assert caught.value.message == f"source 'climate' cannot be replaced: {told}"
        assert caught.value.code == "in_use"
        assert "DROP " in caught.value.hint
        assert caught.value.span is not None
        assert caught.value.span.text == "climate"
        assert source(coordinator) == before

    harness.run(scenario)


def test_columns_that_nobody_reads_may_go(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await declared(federation)
        await coordinator.execute("CREATE VIEW hot AS SELECT device FROM climate WHERE temp > 27")
        await coordinator.execute("SELECT device FROM hot")
        await coordinator.execute("ALTER SOURCE climate DROP COLUMN n")
        assert source(coordinator).schema.names == ("device", "temp")

    harness.run(scenario)


@pytest.mark.parametrize(
    "reader",
    [
        "SELECT * FROM climate",
        "SUBSCRIBE TO climate",
        "SELECT DISTINCT * FROM climate",
        "ISTREAM(SELECT * FROM climate)",
        "SELECT * FROM climate ORDER BY temp LIMIT 3",
        "SELECT device FROM climate",
    ],
)
def test_a_running_query_keeps_its_columns_and_is_planned_over_the_new_definition(
    harness: Any, reader: str
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await declared(federation)
        query = await harness.start_query(coordinator, reader)
        before = coordinator.query(query)
        assert before.version == 1
        await coordinator.execute(f"CREATE OR REPLACE {WIDER} {WITH}")
        await harness.until(lambda: coordinator.query(query).version == 2, "it is planned again")
        after = coordinator.query(query)
        assert after.schema == before.schema
        assert not [w for w in after.warnings if "would now be" in w]

    harness.run(scenario)


def test_alter_source_is_the_whole_statement_with_one_column_more_or_less(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await declared(federation)
        (result,) = await coordinator.execute(
            "ALTER SOURCE climate ADD COLUMN hum DOUBLE UNIT '%RH' FROM 'DHT.Humidity'"
        )
        assert result.message == "source climate replaced, version 2"
        text = (
            "CREATE SOURCE climate (\n  device TEXT,\n  temp DOUBLE,\n  n INTEGER,\n"
            "  hum DOUBLE FROM 'DHT.Humidity' UNIT '%RH',\n  KEY (device)\n) "
            "WITH (connector = 'mqtt', topic = 'tele/{device}')"
        )
        assert source(coordinator).text == text
        await coordinator.execute("ALTER SOURCE climate DROP hum")
        assert source(coordinator).schema.names == ("device", "temp", "n")
        assert source(coordinator).version == 3

    harness.run(scenario)
