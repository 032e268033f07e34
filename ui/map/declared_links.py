"""Links of sources that a statement declared, as a layer of the map next to those of its motes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from host.clocks import monotonic_clock
from ui.api.objects import event_text

LAYER = "declared"
OF_MOTES = "link"  # the layer `links` follows this source
LOOK_SECONDS = 1.0
MAX_LINKS = 5_000

Ends = tuple[str, str]
Link = tuple[str, str, float | None, str, str]


@dataclass(frozen=True, slots=True)
class DrawnLinks:
    """What a map draws.

    Attributes:
        costs: The greatest cost between any two ends, None where no source gives one.
        more: Number of further pairs, for which there is no room.
    """

    costs: dict[Ends, float | None] = field(default_factory=dict)
    more: int = 0


def drawn(links: Iterable[Link]) -> DrawnLinks:
    """Return what is drawn of links: the first pairs.

    Examples:
        >>> drawn([("a", "b", 1.5, "x", "gw-1"), ("a", "b", None, "y", "gw-1")])
        DrawnLinks(costs={('a', 'b'): 1.5}, more=0)
    """
    found: dict[Ends, float | None] = {}
    more: set[Ends] = set()
    for src, dst, cost, source, _ in links:
        ends = (src, dst)
        if source == OF_MOTES:
            continue
        if ends not in found and len(found) >= MAX_LINKS:
            more.add(ends)
            continue
        known = found.get(ends)
        found[ends] = cost if known is None else max(known, cost or known)
    return DrawnLinks(found, len(more))


def changes(
    before: dict[Ends, float | None], after: dict[Ends, float | None]
) -> list[dict[str, Any]]:
    """Return what turns one set of links into another, as changes of a layer."""

    def change(diff: int, ends: Ends, cost: float | None) -> dict[str, Any]:
        return {"diff": diff, "row": {"src": ends[0], "dst": ends[1], "cost": cost}}

    gone = [change(-1, *item) for item in before.items() if item not in after.items()]
    return gone + [change(1, *item) for item in after.items() if item not in before.items()]


class DeclaredLinks:
    """The links of all maps that are open: looked at once a second, whoever asks.

    As long as no link changes, a look costs a comparison; otherwise a thread makes what is drawn.
    """

    def __init__(self, coordinator: CoordinatorApi) -> None:
        self._coordinator = coordinator
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._links: tuple[Link, ...] | None = None
        self._drawn = DrawnLinks()

    async def current(self) -> DrawnLinks:
        """Return what is drawn now: the same object until it changes."""
        async with self._looking:
            now = monotonic_clock() / 1_000_000
            if now - self._looked >= LOOK_SECONDS / 2:
                self._looked = now
                links = self._coordinator.links()
                if links is not self._links:
                    found = await asyncio.to_thread(drawn, links)
                    self._links = links
                    self._drawn = self._drawn if found == self._drawn else found
            return self._drawn

    async def follow(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send a reader the links, then their changes, until cancelled."""
        before: DrawnLinks | None = None
        while True:
            after = await self.current()
            if before is not after:
                known = before.costs if before is not None else {}
                layer = {
                    "layer": LAYER,
                    "snapshot": before is None,
                    "changes": changes(known, after.costs),
                    "more": after.more,
                }
                await send(event_text("layer", layer))
                before = after
            await asyncio.sleep(LOOK_SECONDS)
