"""The map's state in the console: site, layers, positions, drawing, directions."""

import asyncio
from pathlib import Path

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from streamsql.errors import DeploymentError
from ui.console_settings import ConsoleSettings
from ui.map.declared_links import DeclaredLinks
from ui.map.drawing import PlanDrawing
from ui.map.layers import LayerQueries, layers_of
from ui.map.placed_sources import PlacedSources
from ui.map.session_queries import SessionQueries
from ui.map.site_map import SiteMap, read_site, site_map


class MapService:
    """What the map's routes share; `start` and `close` belong to the application's life.

    Raises:
        DeploymentError: The site file is wrong.
    """

    def __init__(self, coordinator: CoordinatorApi, settings: ConsoleSettings) -> None:
        self.kind = settings.layers
        self.layers = LayerQueries(coordinator, layers_of(settings.layers))
        self.sessions = SessionQueries()
        self.placed = PlacedSources(coordinator, self.sessions)
        self.links = DeclaredLinks(coordinator)
        self.site = SiteMap()
        self._drawing: PlanDrawing | None = None
        if settings.site_file:
            path = Path(settings.site_file)
            self.site = site_map(read_site(path))
            self._drawing = PlanDrawing(path, Path(settings.data_dir) / "map")
        self._tasks: list[asyncio.Task[object]] = []

    async def plan(self) -> Path:
        """Return the file of the floor plan's script.

        Raises:
            DeploymentError: There is no map, or it cannot be drawn.
        """
        if self._drawing is None:
            raise DeploymentError(
                "this federation has no map", hint="start it with a site: pando up --site FILE"
            )
        return await self._drawing.script()

    async def start(self) -> None:
        """Begin to keep the layers, and to draw the plan, without waiting for either."""
        self._tasks.append(asyncio.create_task(self.layers.keep()))
        if self.kind == "building":
            self._tasks.append(asyncio.create_task(self.placed.keep()))
        if self._drawing is not None:
            self._tasks.append(asyncio.create_task(self._drawing.script()))

    async def close(self) -> None:
        """Stop; the layers' queries keep running."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._drawing is not None:
            await self._drawing.close()
