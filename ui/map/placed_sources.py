"""Views, queries and tables whose rows the map can place: badges and devices."""

import asyncio
import logging
import time
from dataclasses import dataclass

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryStatus, Wanted
from federated_optimizer.coordinator.statements.statement_validation import select_all
from streamsql.algebra.streams import Emit
from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import FederationError
from ui.map.place_columns import BADGES, CONFIDENCE, DEVICES, PlaceColumns, place_columns
from ui.map.session_queries import SessionQueries

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
SELDOM = 50
"""Looks at thousands of queries take a fiftieth of the time at most."""
MAX_VIEWS = 200  # of users, that are bound to know their columns
MAX_OFFERED = 30
BY_ACCURACY = ("radio_map_position", "weighted_centroid", "strongest_room", "last_sighting")


@dataclass(frozen=True, slots=True)
class PlacedSource:
    """A relation that says where something is.

    Attributes:
        kind: "query" or "relation".
        name: Of the relation, or the id of the query.
        title: What people call it.
    """

    kind: str
    name: str
    title: str
    columns: PlaceColumns

    @property
    def key(self) -> str:
        """What a reader names it by."""
        return f"{self.kind}:{self.name}"


class PlacedSources:
    """Keeps the lists of what there is, the ones that are shown by themselves first.

    Attributes:
        badges: Running queries of users, newest first; their views; views of the library.
        devices: Relations without a confidence: where links end.
    """

    def __init__(self, coordinator: CoordinatorApi, sessions: SessionQueries) -> None:
        self._coordinator = coordinator
        self._sessions = sessions
        self._definitions: tuple[Definition, ...] = ()
        self._views: tuple[PlacedSource, ...] = ()
        self._queried: tuple[PlacedSource, ...] = ()
        self._seen = -1  # when `_queried` was made, by the coordinator's count of changes
        self._took = 0.0
        self.badges: tuple[PlacedSource, ...] = ()
        self.devices: tuple[PlacedSource, ...] = ()

    async def keep(self) -> None:
        """Look again and again until cancelled."""
        while True:
            try:
                await self.look()
            except FederationError as error:
                log.warning("views with positions are looked for again: %s", error.message)
            except Exception:
                log.exception("views and queries with positions are no longer found")
                raise
            await asyncio.sleep(max(LOOK_SECONDS, SELDOM * self._took))

    async def look(self) -> None:
        """Find what there is now.

        Views are bound only after definitions have changed, and queries gone through only after
        one has begun, ended or failed, and then those with such columns.

        Raises:
            FederationError: They could not be bound in time.
        """
        definitions = self._coordinator.definitions()
        if definitions != self._definitions:
            await self._bind(definitions)
            self._definitions = definitions
        began = time.monotonic()
        changes = self._coordinator.query_changes()
        if changes != self._seen:
            self._queried, self._seen = self._queries(), changes
        self.badges = (*self._queried, *self._views)[:MAX_OFFERED]
        self._took = time.monotonic() - began

    async def start(self, source: PlacedSource, coordinator: CoordinatorApi) -> str:
        """Return the id of a running query with the rows of a source.

        Args:
            source: Of `badges` or `devices`.
            coordinator: As whoever is to read it may use it.

        Raises:
            FederationError: It cannot be started, or may not be read.
        """
        if source.kind == "query":
            return source.name
        return (await self._sessions.start(select_all(source.name), coordinator)).id

    def _queries(self) -> tuple[PlacedSource, ...]:
        found: list[PlacedSource] = []
        wanted = Wanted(shows=lambda schema: _badge_columns(schema) is not None)
        for query in reversed(self._coordinator.queries(Origin.USER, wanted)):
            ended = query.status in (QueryStatus.FAILED, QueryStatus.STOPPED)
            columns = _badge_columns(query.schema)
            if ended or query.emit != Emit.RELATION or columns is None:
                continue
            title = query.name if query.name != query.id else f"query {query.id}"
            found.append(PlacedSource("query", query.id, title, columns))
            if len(found) == MAX_OFFERED:
                break
        return tuple(found)

    async def _bind(self, definitions: tuple[Definition, ...]) -> None:
        own = [d.name for d in definitions if isinstance(d, ViewDefinition) and not d.library]
        library = [
            d.name
            for d in definitions
            if isinstance(d, ViewDefinition)
            and d.library
            and CONFIDENCE in (column.lower() for column in d.columns)
        ]
        library.sort(key=lambda n: BY_ACCURACY.index(n) if n in BY_ACCURACY else len(BY_ACCURACY))
        names = [*own[-MAX_VIEWS:], *library]
        shapes = await self._coordinator.shapes(names) if names else {}
        badges: list[PlacedSource] = []
        devices: list[tuple[str, PlacedSource]] = []
        for name in names:
            shape = shapes.get(name)
            if shape is None or not shape.columns:
                continue
            types = [DataType(dtype) for dtype in shape.types]
            columns = place_columns(shape.columns, types, BADGES)
            if columns and columns.confidence is not None:
                badges.append(PlacedSource("relation", name, name, columns))
            elif columns := place_columns(shape.columns, types, DEVICES):
                device = shape.columns[columns.id]
                devices.append((device, PlacedSource("relation", name, name, columns)))
        tables = [d for d in definitions if isinstance(d, SourceDefinition) and d.is_table]
        for table in tables:
            columns = place_columns(table.schema.names, table.schema.dtypes, DEVICES)
            if columns:
                device = table.schema.names[columns.id]
                placed = PlacedSource("relation", table.name, table.name, columns)
                devices.append((device, placed))
        devices.sort(key=lambda found: DEVICES.index(found[0].lower()))
        self._views = tuple(badges)
        self.devices = tuple(source for _, source in devices)


class ReadablePlaces:
    """The part of `PlacedSources` that one reader may read."""

    def __init__(self, placed: PlacedSources, coordinator: CoordinatorApi) -> None:
        self._placed = placed
        self._coordinator = coordinator

    @property
    def badges(self) -> tuple[PlacedSource, ...]:
        """Sources of badges, the ones that are shown by themselves first."""
        return self._readable(self._placed.badges)

    def chosen(self, wanted: str) -> PlacedSource | None:
        """Return the source of badges of a key; the first one if there is none of it."""
        badges = self.badges
        found = next((source for source in badges if source.key == wanted), None)
        return found or next(iter(badges), None)

    def device_places(self) -> PlacedSource | None:
        """Return what says where devices are."""
        return next(iter(self._readable(self._placed.devices)), None)

    async def start(self, source: PlacedSource) -> str:
        """Return the id of a running query with the rows of a source.

        Raises:
            FederationError: It cannot be started, or may not be read.
        """
        return await self._placed.start(source, self._coordinator)

    def _readable(self, sources: tuple[PlacedSource, ...]) -> tuple[PlacedSource, ...]:
        relations = {found.name for found in self._coordinator.definitions()}
        return tuple(
            source
            for source in sources
            if (source.name in relations if source.kind == "relation" else self._runs(source.name))
        )

    def _runs(self, query: str) -> bool:
        try:
            self._coordinator.query(query)
        except (KeyError, FederationError):  # it has ended, or may not be read
            return False
        return True


def _badge_columns(schema: Schema) -> PlaceColumns | None:
    """Return the columns that place badges, or None."""
    columns = place_columns(schema.names, schema.dtypes, BADGES)
    return columns if columns is not None and columns.confidence is not None else None
