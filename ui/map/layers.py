"""The map's layers: standing queries, and keeping them installed."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from streamsql.errors import FederationError

log = logging.getLogger(__name__)

QUERIES = Path(__file__).parent / "queries"
PREFIX = "map-"
RETRY_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer and its query."""

    name: str
    text: str

    @property
    def query(self) -> str:
        """The name its query runs under."""
        return PREFIX + self.name


def layers_of(kind: str) -> tuple[Layer, ...]:
    """Return the layers of a "building" or a "trace"; ours, so read at the start."""
    files = sorted((QUERIES / kind).glob("*.sql"))
    return tuple(Layer(f.stem, f.read_text(encoding="utf-8").strip()) for f in files)


class LayerQueries:
    """Keeps the layers' queries running in a coordinator.

    A layer whose query is refused (its relation does not exist yet) is tried again every few
    seconds; until then `errors` says why.
    """

    def __init__(self, coordinator: CoordinatorApi, layers: Iterable[Layer]) -> None:
        self._coordinator = coordinator
        self.layers = tuple(layers)
        self.errors: dict[str, str] = {}

    async def keep(self) -> None:
        """Install what is missing until cancelled."""
        try:
            await self._drop_unknown()
            while True:
                for layer in self.layers:
                    await self._install(layer)
                await asyncio.sleep(RETRY_SECONDS)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("the map's layers are no longer updated")
            raise

    def query_id(self, layer: Layer) -> str | None:
        """Return the id of a layer's query, None while it does not run."""
        try:
            return self._coordinator.query(layer.query).id
        except KeyError:
            return None

    async def _install(self, layer: Layer) -> None:
        try:
            await self._stop_if_changed(layer)
            if self.query_id(layer) is None:
                await self._coordinator.execute(layer.text, name=layer.query, origin=Origin.MAP)
        except FederationError as error:
            if self.errors.get(layer.name) != error.message:
                log.warning("map layer %s: %s", layer.name, error.message)
            self.errors[layer.name] = error.message
        else:
            self.errors.pop(layer.name, None)

    async def _stop_if_changed(self, layer: Layer) -> None:
        try:
            found = self._coordinator.query(layer.query)
        except KeyError:
            return
        if found.text.strip() != layer.text:
            await self._stop(found.id)

    async def _drop_unknown(self) -> None:
        """Stop layers of an older release or of another kind of site."""
        wanted = {layer.query for layer in self.layers}
        for query in self._coordinator.queries(Origin.MAP):
            if query.name not in wanted:
                await self._stop(query.id)

    async def _stop(self, query_id: str) -> None:
        try:
            await self._coordinator.stop(query_id)
        except KeyError:
            # It ended between the look and the stop.
            return
        except FederationError as error:
            log.warning("cannot stop query %s: %s", query_id, error.message)
