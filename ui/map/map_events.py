"""Everything the map shows, as one stream of server-sent events.

Events: `layer` (changes of one layer's query), `layers` (where the layers' queries stand), `sites`
(which sites are fresh) and `positions` (what can be followed, and what is). One connection instead
of a dozen, as browsers open few per host.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from streamsql.errors import FederationError
from ui.api.changes import HEARTBEAT, HEARTBEAT_SECONDS, changes_text
from ui.api.objects import event_text
from ui.map.declared_links import DeclaredLinks
from ui.map.layers import Layer, LayerQueries
from ui.map.placed_events import PlacedFollower, PlacedLayer
from ui.map.placed_sources import ReadablePlaces

POLL_SECONDS = 0.25
MAX_WAITING = 256
MAX_BADGES = 500
MAX_DEVICES = 2_000


class MapEvents:
    """One reader's stream.

    A slow reader is waited for by the tasks that read for it; the queries' subscriptions then
    replace what it misses by snapshots, so nothing here grows.
    """

    def __init__(
        self,
        coordinator: CoordinatorApi,
        queries: LayerQueries,
        placed: ReadablePlaces | None = None,
        wanted: str = "",
        links: DeclaredLinks | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._queries = queries
        self._placed = placed
        self._links = links
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING)
        self._followers: dict[str, PlacedFollower] = {}
        if placed is not None:
            for layer in (
                PlacedLayer("positions", partial(placed.chosen, wanted), MAX_BADGES),
                PlacedLayer("places", placed.device_places, MAX_DEVICES),
            ):
                self._followers[layer.name] = PlacedFollower(
                    coordinator, placed, layer, self._waiting.put
                )

    async def events(self, closing: asyncio.Event) -> AsyncIterator[bytes]:
        """Yield events until the reader goes or the console closes."""
        tasks = [asyncio.create_task(self._follow(layer)) for layer in self._queries.layers]
        tasks.extend(asyncio.create_task(each.follow()) for each in self._followers.values())
        if self._links is not None:
            tasks.append(asyncio.create_task(self._links.follow(self._waiting.put)))
        tasks.append(asyncio.create_task(self._watch()))
        closed = asyncio.create_task(closing.wait())
        item = asyncio.create_task(self._waiting.get())
        try:
            while not closing.is_set():
                await asyncio.wait(
                    {item, closed, *tasks},
                    timeout=HEARTBEAT_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if item.done():
                    event = item.result()
                    item = asyncio.create_task(self._waiting.get())
                    yield event
                    continue
                _raise_failed(tasks)
                if not closing.is_set():
                    yield HEARTBEAT
        finally:
            for task in (*tasks, closed, item):
                task.cancel()
            await asyncio.gather(*tasks, closed, item, return_exceptions=True)

    async def _follow(self, layer: Layer) -> None:
        """Forward a layer's changes; wait for its query while it does not run."""
        while True:
            query_id = self._queries.query_id(layer)
            if query_id is not None:
                with contextlib.suppress(KeyError, FederationError):  # `_layers` says why
                    await self._forward(layer, query_id)
            await asyncio.sleep(POLL_SECONDS)

    async def _forward(self, layer: Layer, query_id: str) -> None:
        schema = self._coordinator.query(query_id).schema
        subscription = self._coordinator.subscribe(query_id)
        try:
            async for batch in subscription:
                if batch.changes or batch.snapshot:
                    head = {"layer": layer.name, "snapshot": batch.snapshot}
                    await self._waiting.put(await changes_text("layer", head, schema, batch))
        except FederationError:
            pass  # who asks may not read it any more; `_layers` says why
        finally:
            await subscription.close()
        # Stopped, or not for this reader: what it said is shown no longer.
        gone = {"layer": layer.name, "snapshot": True, "changes": []}
        await self._waiting.put(event_text("layer", gone))

    async def _watch(self) -> None:
        """Send where sites, layers and positions stand whenever that has changed."""
        names = ("sites", "layers", "positions")
        last: tuple[Any, Any, Any] = (None, None, None)
        while True:
            now = (self._sites(), self._layers(), self._positions())
            for event, before, after in zip(names, last, now, strict=True):
                if before != after:
                    await self._waiting.put(event_text(event, after))
            last = now
            await asyncio.sleep(POLL_SECONDS)

    def _sites(self) -> list[dict[str, Any]]:
        return [
            {
                "site": site.site,
                "role": site.role,
                "online": site.online,
                "freshness": str(site.freshness),
                "ready": site.state.ready if site.state is not None else site.online,
                "detail": site.detail,
            }
            for site in self._coordinator.sites()
        ]

    def _layers(self) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for layer in self._queries.layers:
            error = self._queries.errors.get(layer.name, "")
            try:
                query = self._coordinator.query(layer.query)
            except KeyError:
                shown[layer.name] = {"status": "missing", "error": error, "waiting_for": []}
                continue
            except FederationError as refused:
                said = refused.message
                shown[layer.name] = {"status": "missing", "error": said, "waiting_for": []}
                continue
            shown[layer.name] = {
                "status": str(query.status),
                "error": query.error or error,
                "waiting_for": list(query.waiting_for),
            }
        for name, follower in self._followers.items():
            state = follower.state()
            if state is not None:
                shown[name] = state
        return shown

    def _positions(self) -> dict[str, Any] | None:
        if self._placed is None:
            return None
        follower = self._followers["positions"]
        followed = follower.source
        return {
            "offered": [
                {"key": source.key, "title": source.title} for source in self._placed.badges
            ],
            "followed": followed.key if followed is not None else "",
            "others": follower.others,
        }


def _raise_failed(tasks: list[asyncio.Task[None]]) -> None:
    """Let a defect end the stream, so that it is seen and the browser connects again."""
    for task in tasks:
        if task.done():
            task.result()
