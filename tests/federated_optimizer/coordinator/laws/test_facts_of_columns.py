"""Facts about columns on a running federation: counted by engines, planned with, kept."""

from typing import Any

import pytest

from federated_optimizer.coordinator.facts import heard_facts, shown_facts
from stream_engine.site import column_counts
from streamsql.wire.codec import encode_packed
from streamsql.wire.site_messages import ColumnCount, SourceCount
from tests.federated_optimizer.coordinator.conftest import wall


def tell(federation: Any) -> None:
    """Let gateways publish what their engines have counted of columns."""
    for name in ("gw-1", "gw-2"):
        site = federation.sites[name]
        for count in site.engine.column_counts(wall()).values():
            site.client.publish(federation.topics.columns(name), encode_packed(count))


def test_columns_are_facts_that_plans_rest_on_and_a_restart_keeps(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_facts, "SHOWN_MICROSECONDS", 0)
    monkeypatch.setattr(heard_facts, "LOOK_MICROSECONDS", 0)
    monkeypatch.setattr(column_counts, "LOOK_MICROSECONDS", 0)
    text = "SELECT rid, celsius FROM temperature WHERE rid = 'r3' AND celsius > 25.0"

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()

        async def explained() -> str:
            (plan,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {text}")
            return str(plan.text)

        assert "holds for 0.1 of the rows" in await explained()
        facts = await harness.start_query(
            coordinator,
            "SELECT part, quantity, value FROM sys_facts WHERE kind = 'column' "
            "AND subject = 'temperature' AND quantity LIKE 'distinct%'",
        )
        # Rooms r0 to r7 at one gateway, r4 to r11 at the other.
        for name, first in (("gw-1", 0), ("gw-2", 4)):
            site = federation.sites[name]
            for n in range(40):
                site.put("temperature", (f"r{first + n % 8}", float(n)))
        await harness.until(
            lambda: all(
                federation.sites[name].engine.counted()["temperature"] == (40, 40)
                for name in ("gw-1", "gw-2")
            ),
            "all readings are in",
        )
        tell(federation)
        # Of a site that nobody knows, such as one that was removed, nothing is kept.
        stranger = SourceCount(10_000, 256, 0, {"rid": ColumnCount(bytes(4))}, "temperature")
        federation.sites["gw-1"].client.publish(
            federation.topics.columns("gw-9"), encode_packed(stranger)
        )
        wanted = [
            ("rid", "distinct values", 12.0),
            ("rid", "distinct values at a gateway", 8.0),
            ("celsius", "distinct values", 40.0),
            ("celsius", "distinct values at a gateway", 40.0),
        ]
        await harness.until_rows(coordinator, facts, wanted)
        assert "of the rows" not in await explained()
        await coordinator.close()
        federation.coordinators.clear()
        again = await federation.coordinator()
        await harness.until_rows(again, facts, wanted)

    harness.run(scenario)
