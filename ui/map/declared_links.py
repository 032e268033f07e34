"""Links of sources that a statement declared, as a layer of the map next to those of its motes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from ui.api.objects import event_text

LAYER = "declared"
OF_MOTES = "link"  # the layer `links` follows this source
LOOK_SECONDS = 1.0
MAX_LINKS = 5_000

Ends = tuple[str, str]
Link = tuple[str, str, float | None, str, str]


def dearest(links: Iterable[Link]) -> dict[Ends, float | None]:
    """Return the greatest cost between any two ends, None where no source gives one.

    Examples:
        >>> dearest([("a", "b", 1.5, "x", "gw-1"), ("a", "b", None, "y", "gw-1")])
        {('a', 'b'): 1.5}
    """
    found: dict[Ends, float | None] = {}
    for src, dst, cost, source, _ in links:
        if source == OF_MOTES or ((src, dst) not in found and len(found) >= MAX_LINKS):
            continue
        known = found.get((src, dst))
        found[src, dst] = cost if known is None else max(known, cost or known)
    return found


def changes(
    before: dict[Ends, float | None], after: dict[Ends, float | None]
) -> list[dict[str, Any]]:
    """Return what turns one set of links into another, as changes of a layer."""

    def change(diff: int, ends: Ends, cost: float | None) -> dict[str, Any]:
        return {"diff": diff, "row": {"src": ends[0], "dst": ends[1], "cost": cost}}

    gone = [change(-1, *item) for item in before.items() if item not in after.items()]
    return gone + [change(1, *item) for item in after.items() if item not in before.items()]


async def follow_links(
    coordinator: CoordinatorApi, send: Callable[[bytes], Awaitable[None]]
) -> None:
    """Send a reader the links, then their changes, until cancelled."""
    before: dict[Ends, float | None] | None = None
    while True:
        after = dearest(coordinator.links())
        news = changes(before or {}, after)
        if news or before is None:
            layer = {"layer": LAYER, "snapshot": before is None, "changes": news}
            await send(event_text("layer", layer))
        before = after
        await asyncio.sleep(LOOK_SECONDS)
