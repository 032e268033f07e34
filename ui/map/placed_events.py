"""One layer of things that move: follows a view or query whose rows say where each thing is."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import Change
from streamsql.errors import FederationError
from ui.api.changes import LARGE_BATCH
from ui.api.objects import event_text
from ui.map.place_columns import PlaceColumns, Placed
from ui.map.placed_sources import PlacedSource, ReadablePlaces

POLL_SECONDS = 0.25
RETRY_SECONDS = 3.0


class BoundedPlaces:
    """The places that a reader has been told, at most so many.

    Attributes:
        others: Rows beyond that.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._told: dict[Placed, int] = {}
        self.others = 0

    @property
    def has_room(self) -> bool:
        """Whether some of the others could be told now: a new snapshot brings them."""
        return self.others > 0 and len(self._told) < self._most

    def take(
        self, changes: Iterable[Change], columns: PlaceColumns, *, snapshot: bool
    ) -> list[dict[str, Any]]:
        """Return what a reader is to be told of a batch; rows that go make room first."""
        if snapshot:
            self._told.clear()
            self.others = 0
        net: dict[Placed, int] = {}
        for change in changes:
            placed = columns.placed(change.row)
            if placed is not None:
                net[placed] = net.get(placed, 0) + change.diff
        told = []
        for placed, diff in sorted(net.items(), key=lambda item: item[1]):
            weight = self._told.get(placed, 0)
            if not weight and (diff <= 0 or len(self._told) >= self._most):
                self.others = max(0, self.others + diff)
                continue
            self._told[placed] = weight + diff
            if self._told[placed] <= 0:
                del self._told[placed]
                told.append({"diff": -1, "row": asdict(placed)})
            elif not weight:
                told.append({"diff": 1, "row": asdict(placed)})
        return told


@dataclass(frozen=True, slots=True)
class PlacedLayer:
    """A layer of things that move.

    Attributes:
        choose: Gives the source to follow, None while there is none.
        most: Rows that a reader is told.
    """

    name: str
    choose: Callable[[], PlacedSource | None]
    most: int


class PlacedFollower:
    """Sends one reader the rows of the source that is chosen now, as changes of a layer.

    Args:
        send: Takes events; may wait.
    """

    def __init__(
        self,
        coordinator: CoordinatorApi,
        sources: ReadablePlaces,
        layer: PlacedLayer,
        send: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._coordinator = coordinator
        self._sources = sources
        self._layer = layer
        self._send = send
        self._query = ""
        self._error = ""
        self.source: PlacedSource | None = None
        self.others = 0

    async def follow(self) -> None:
        """Follow until cancelled; a reader begins with a snapshot in any case."""
        await self._send_empty()
        while True:
            self.source = self._layer.choose()
            if self.source is not None:
                await self._while_chosen(self.source)
            await asyncio.sleep(POLL_SECONDS)

    def state(self) -> dict[str, Any] | None:
        """Return where the followed query stands, None while nothing is followed."""
        if self.source is None:
            return None
        try:
            query = self._coordinator.query(self._query)
        except (KeyError, FederationError):
            return {"status": "missing", "error": self._error, "waiting_for": []}
        return {
            "status": str(query.status),
            "error": query.error or self._error,
            "waiting_for": list(query.waiting_for),
        }

    async def _while_chosen(self, source: PlacedSource) -> None:
        reading = asyncio.create_task(self._read_again(source))
        try:
            while self._layer.choose() == source and not reading.done():
                await asyncio.wait({reading}, timeout=POLL_SECONDS)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        self._query = self._error = ""
        self.others = 0
        await self._send_empty()
        if not reading.cancelled():
            reading.result()  # a defect ends the stream

    async def _send_empty(self) -> None:
        nothing = {"layer": self._layer.name, "snapshot": True, "changes": []}
        await self._send(event_text("layer", nothing))

    async def _read_again(self, source: PlacedSource) -> None:
        """Read from a snapshot on, and again when the query ended or others can be told."""
        while True:
            try:
                self._query = await self._sources.start(source)
                self._error = ""
                await self._read(source, self._query)
            except KeyError:
                pass  # it ended between the look and the subscription
            except FederationError as error:
                self._error = error.message
                await asyncio.sleep(RETRY_SECONDS)
            await asyncio.sleep(POLL_SECONDS)

    async def _read(self, source: PlacedSource, query_id: str) -> None:
        places = BoundedPlaces(self._layer.most)
        subscription = self._coordinator.subscribe(query_id)
        try:
            async for batch in subscription:

                def told(batch: Any = batch) -> list[dict[str, Any]]:
                    return places.take(batch.changes, source.columns, snapshot=batch.snapshot)

                is_large = len(batch.changes) >= LARGE_BATCH
                changes = await asyncio.to_thread(told) if is_large else told()
                self.others = places.others
                if changes or batch.snapshot:
                    news = {
                        "layer": self._layer.name,
                        "snapshot": batch.snapshot,
                        "changes": changes,
                    }
                    await self._send(event_text("layer", news))
                if places.has_room:
                    return
        finally:
            await subscription.close()
