"""The setting of the system says whether heuristics hold for queries that do not say it."""

from typing import Any

TEXT = (
    "SELECT s.mid, t.rid AS room FROM SeatSensor s JOIN Temperature t ON s.weightLevel < t.celsius"
)
LEFT_OUT = "no product at gateways (heuristics = 'no' considers it)."


async def explained(coordinator: Any, option: str = "") -> str:
    """Return the plans of the query."""
    (shown,) = await coordinator.execute(f"EXPLAIN ALTERNATIVES {TEXT} {option}")
    return str(shown.text)


def test_a_setting_lifts_heuristics_and_a_query_has_its_own_way(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        assert LEFT_OUT in await explained(coordinator)
        lifted = await explained(coordinator, "WITH (heuristics = 'no')")
        assert LEFT_OUT not in lifted
        assert "sent to all gateways of seatsensor, joined there" in lifted
        await coordinator.close()
        again = await federation.coordinator(heuristics=False)
        await harness.until(lambda: sum(site.online for site in again.sites()) == 4)
        assert await explained(again) == lifted
        assert LEFT_OUT in await explained(again, "WITH (heuristics = 'yes')")
        number = next(line for line in lifted.splitlines() if "joined there" in line).split()[0]
        query = await harness.start_query(again, f"{TEXT} WITH (plan = {number.strip('*')})")
        assert query is not None

    harness.run(scenario)
