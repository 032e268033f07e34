"""Ways to the base count in links where a setting says next to which gateway it is."""

from typing import Any

from streamsql.wire.messages import LinkMessage


def far(coordinator: Any) -> float:
    """Return the hops from the second gateway to the base."""
    links = coordinator._shared.links
    for gateway, source, target in (("gw-1", "a", "b"), ("gw-2", "b", "c")):
        links.put(gateway, ("link", source, target), LinkMessage(source, target, 1.0))
    return float(coordinator._planner.statistics().wires.between("gw-2", "base"))


def test_ways_to_the_base_count_in_links_if_its_place_is_known(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        assert far(coordinator) == 1, "nobody knows where the base is"
        await coordinator.close()
        again = await federation.coordinator(base_gateway="gw-1")
        assert far(again) == 2

    harness.run(scenario)
