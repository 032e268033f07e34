"""The sources of a site as they are now, as the catalog declares them.

An order takes effect when it arrives: the engine, intake and births go by it at once, so whatever
the same burst of messages holds meets it. Connectors and the file on disk follow a moment later,
because orders come in bursts.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from gateway.connectors.reading import PastPack
from gateway.declared.source_book import SourceBook
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import SITE_SOURCES
from streamsql.data.types import Value
from streamsql.errors import WireError
from streamsql.mapping.assignment import Assigned, Endpoints, Unserved, assignment
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.site_messages import DeclaredState
from streamsql.wire.source_orders import MAX_SOURCES, addressees_of, decode_order
from streamsql.wire.source_shapes import layout_of
from streamsql.wire.topics import text_of_level

log = logging.getLogger(__name__)

Definitions = dict[str, SourceDefinition]
MAX_NAME = 200
MAX_REASON = 500
"""Characters of a name and of a reason that a state shows of a definition that cannot be read."""

_OF_THE_SITE = frozenset(source.name for source in SITE_SOURCES)
"""Sources that every site reports to, whatever the catalog has."""


class Connectors(Protocol):
    """Connectors that read devices; see `gateway.connectors.running_connectors`."""

    def serve(self, by_endpoint: Mapping[str, Sequence[SourceDefinition]]) -> None:
        """Serve these sources through their endpoints, and no others."""

    def state_of(self, definition: SourceDefinition, endpoint: str) -> DeclaredState:
        """Return how a source is doing that an endpoint serves."""

    def past(self, hour: int, every: int) -> Iterator[PastPack]:
        """Yield what simulated devices would have read in an hour since 1970."""

    def simulate(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        """Pass a command to the simulated devices; answer whether one could follow it."""

    async def stop(self) -> None:
        """Stop all connectors."""


class DeclaredSources:
    """Brings the catalog's definitions into force.

    Args:
        gateway: Id of the site.
        endpoints: Of its settings: their names and the kinds of their connectors.
        book: The orders on disk.
        engine: Where sources are declared.
        make_connectors: Makes what reads devices, when the first source is served; None: a base
            site, which reads what gateways publish.
        on_redefined: Called with a source that has another definition now, and what was stopped
            because it reads the former one.
        on_definitions: Called with all sources of the site when they are others.

    Attributes:
        definitions: All sources whose rows are produced here, by name.
    """

    def __init__(  # noqa: PLR0913  (each is one seam)
        self,
        gateway: str,
        endpoints: Endpoints,
        *,
        book: SourceBook,
        engine: RecordedSite,
        make_connectors: Callable[[], Connectors] | None,
        on_redefined: Callable[[str, Sequence[FragmentBundle]], None],
        on_definitions: Callable[[Definitions], None],
    ) -> None:
        self._gateway = gateway
        self._endpoints = endpoints
        self._book = book
        self._engine = engine
        self._make_connectors = make_connectors
        self._connectors: Connectors | None = None
        self._on_redefined = on_redefined
        self._on_definitions = on_definitions
        self._served: dict[str, Assigned] = {}
        self._unserved: dict[str, str] = {}
        self._unread: dict[str, DeclaredState] = {}
        self._layouts: dict[str, tuple[SourceDefinition, int]] = {}
        self._news = asyncio.Event()
        self.definitions: Definitions = {}
        for definition in book.all():
            self._assign(definition)

    def declare_all(self) -> None:
        """Declare every source at the engine, before anything is read."""
        for definition in self.definitions.values():
            self._engine.declare(definition.scan())
        self._define_others()

    def begin(self) -> None:
        """Bring what was kept on disk into force, after the engine's state was restored.

        What the engine was restored to may be of other definitions.
        """
        for name in self._engine.declared - self.definitions.keys() - _OF_THE_SITE:
            self._engine.undeclare(name)
        for definition in self.definitions.values():
            self._on_redefined(definition.name, self._engine.declare(definition.scan()))
        self._define_others()
        self._changed()

    def heard(self, level: str, payload: bytes) -> None:
        """Ingest an order; empty: the source is dropped.

        Raises:
            WireError: It cannot be read; a source of its name is served no more, and the state
                says why.
        """
        name = text_of_level(level)
        if not payload:
            self.dropped(name)
            return
        try:
            definition = decode_order(name, payload)
            is_new = self._book.put(definition)
        except WireError as error:
            self._refused(name, payload, error.message)
            raise
        self._unread.pop(name, None)
        if is_new:
            log.info("source %s version %d is declared", name, definition.version)
            self._take(definition)

    def dropped(self, name: str) -> None:
        """Note that a declared source is no more."""
        if self._unread.pop(name, None) is not None:
            self._changed()
        if not self._book.drop(name):
            return
        log.info("source %s is dropped", name)
        self._served.pop(name, None)
        self._unserved.pop(name, None)
        self._layouts.pop(name, None)
        self.definitions.pop(name, None)
        self._engine.undeclare(name)
        self._changed()

    def layout_of(self, name: str) -> int | None:
        """Return the layout of a declared source as it is defined now; None: it is not declared."""
        definition = self._book.find(name)
        if definition is None:
            return None
        known = self._layouts.get(name)
        if known is None or known[0] is not definition:
            known = self._layouts[name] = (definition, layout_of(definition.scan()))
        return known[1]

    def names(self) -> tuple[str, ...]:
        """Return the names of all sources that the catalog is known to declare."""
        return (*(definition.name for definition in self._book.all()), *self._unread)

    @property
    def problem(self) -> str:
        """Reason why the orders cannot be saved on disk, or empty."""
        return self._book.problem

    async def run(self) -> None:
        """Let files and connectors follow the definitions, until cancelled."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                self._book.save()
        finally:
            if self._connectors is not None:
                await self._connectors.stop()

    def simulate(self, arguments: Mapping[str, Value]) -> dict[str, Value]:
        """Pass a command to the simulated devices; answer whether one could follow it."""
        if self._connectors is None:
            return {"done": False, "message": "nothing is simulated here"}
        return self._connectors.simulate(arguments)

    def past(self, hour: int, every: int) -> Iterator[PastPack]:
        """Return what the simulated devices would have read in an hour since 1970.

        Raises:
            ValueError: Nothing is simulated here; also while it is read.
        """
        if self._connectors is None:
            raise ValueError("nothing is simulated here")
        return self._connectors.past(hour, every)

    def states(self) -> tuple[DeclaredState, ...]:
        """Return how each declared source that concerns this site is doing."""
        return tuple(
            self._state(definition)
            for definition in self._book.all()
            if definition.name in self._served or definition.name in self._unserved
        ) + tuple(self._unread.values())

    # --- inside ------------------------------------------------------------------------------

    def _take(self, definition: SourceDefinition) -> None:
        name = definition.name
        was_served = name in self._served
        self._assign(definition)
        scan = definition.scan()
        if name in self._served:
            self._on_redefined(name, self._engine.declare(scan))
        else:
            if was_served:
                self._engine.undeclare(name)
            self._on_redefined(name, self._engine.define(scan))
        self._changed()

    def _refused(self, name: str, payload: bytes, why: str) -> None:
        """Note a definition that cannot be read here; the one before it is no more in force."""
        self.dropped(name)
        version = 0
        with contextlib.suppress(WireError):
            version, mapping = addressees_of(payload)
            if assignment(mapping, self._gateway, self._endpoints) is None:
                return
        is_full = len(self._unread) >= MAX_SOURCES or len(name) > MAX_NAME
        if self._make_connectors is None or is_full:
            return
        reason = f"its definition cannot be read here, perhaps by an older release: {why}"
        self._unread[name] = DeclaredState(name, version, reason[:MAX_REASON])
        self._changed()

    def _assign(self, definition: SourceDefinition) -> None:
        """Note whether, and how, a source is served here."""
        name = definition.name
        self._served.pop(name, None)
        self._unserved.pop(name, None)
        self.definitions.pop(name, None)
        if self._make_connectors is None or definition.mapping is None:
            return
        match assignment(definition.mapping, self._gateway, self._endpoints):
            case Assigned() as assigned:
                self._served[name] = assigned
                self.definitions[name] = definition
            case Unserved(reason=reason):
                self._unserved[name] = reason
            case None:
                pass

    def _define_others(self) -> None:
        """Tell the engine of sources that others serve: it refuses plans of other definitions."""
        for definition in self._book.all():
            if definition.name not in self.definitions:
                stopped = self._engine.define(definition.scan())
                self._on_redefined(definition.name, stopped)

    def _changed(self) -> None:
        self._on_definitions(self.definitions)
        if self._served and self._connectors is None and self._make_connectors is not None:
            self._connectors = self._make_connectors()
        if self._connectors is not None:
            by_endpoint: dict[str, list[SourceDefinition]] = {}
            for name, assigned in self._served.items():
                by_endpoint.setdefault(assigned.endpoint, []).append(self.definitions[name])
            self._connectors.serve(by_endpoint)
        self._news.set()

    def _state(self, definition: SourceDefinition) -> DeclaredState:
        name, assigned = definition.name, self._served.get(definition.name)
        if assigned is None or self._connectors is None:
            return DeclaredState(name, definition.version, self._unserved.get(name, ""))
        return self._connectors.state_of(definition, assigned.endpoint)
