"""Work on a statement before its turn: planning and checking, off the event loop."""

from dataclasses import dataclass, replace

from federated_optimizer.coordinator.contract.presentation import presentation_of
from federated_optimizer.coordinator.queries.planner import Planned, Planner
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.placement import Topology
from streamsql.binder import Creating, define
from streamsql.catalog.definitions import Definition
from streamsql.syntax import (
    CreateAlarm,
    CreateSink,
    Query,
    Subscribe,
)
from streamsql.syntax.statements import Statement


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that was planned before it is its turn.

    Attributes:
        catalog: The definitions it was planned with.
        sites: The sites it was planned with.
        planned: Its plan, without an id.
        display: The display it wants to be shown on, or empty.
        gathered: Whether rows of gateways are brought together first.
    """

    catalog: tuple[Definition, ...]
    sites: Topology
    planned: Planned
    display: str
    gathered: bool = True


@dataclass(frozen=True, slots=True)
class PreparedDefinition:
    """A definition that was checked before it is its turn.

    Attributes:
        catalog: The definitions it was checked with.
        definition: What it defines.
        query: The plan of an alarm's or sink's query.
    """

    catalog: tuple[Definition, ...]
    definition: Definition
    query: Prepared | None = None


class Preparation:
    """Plans queries and checks definitions, before others have to wait for it."""

    def __init__(self, shared: SharedParts, planner: Planner) -> None:
        self._shared = shared
        self._planner = planner

    async def of(self, statement: Statement) -> Prepared | PreparedDefinition | None:
        """Do what can be done of a statement before others have to wait for it.

        Raises:
            FederationError: The statement is wrong, or takes too long.
        """
        if isinstance(statement, Query | Subscribe):
            return await self.query(statement)
        if not isinstance(statement, Creating):
            return None
        defined = await self.definition(statement)
        if isinstance(statement, CreateAlarm | CreateSink):
            return replace(defined, query=await self.query(statement.query))
        return defined

    def is_current(self, prepared: Prepared | PreparedDefinition) -> bool:
        """Whether no definition has changed since, nor the sites that a plan rests on."""
        if isinstance(prepared, Prepared) and prepared.sites != self._planner.topology():
            return False
        return prepared.catalog == tuple(self._shared.catalog)

    async def query(self, statement: Query | Subscribe, *, gathered: bool = True) -> Prepared:
        """Return a query with its plan; not gathered, gateways give their rows themselves."""
        sites = self._planner.topology()
        known = tuple(self._shared.catalog)

        def work() -> tuple[Planned, str]:
            bound = self._planner.bind(statement)
            presentation = presentation_of(statement, bound.schema, bound.emit)
            bundle = self._planner.place(bound, query="", text=statement.text, gathered=gathered)
            planned = Planned(bundle, tuple(bound.warnings), bound.order)
            return planned, presentation.display

        planned, display = await self._shared.beside.run(work, "planning the query")
        return Prepared(known, sites, planned, display, gathered)

    async def definition(self, statement: Creating) -> PreparedDefinition:
        """Return a definition that was checked."""
        known = tuple(self._shared.catalog)
        work = lambda: define(statement, self._shared.catalog)  # noqa: E731
        return PreparedDefinition(
            known, await self._shared.beside.run(work, "checking the definition")
        )
