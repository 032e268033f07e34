"""Work on a statement before its turn: planning and checking, off the event loop."""

from dataclasses import dataclass, field, replace

from federated_optimizer.coordinator.contract.presentation import Presentation, presentation_of
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.planning.shared_planning import Reading
from federated_optimizer.coordinator.queries.runs.readable_offers import ReadableOffers
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.statements.known_plans import Asked, KnownPlans
from federated_optimizer.network.topology import Topology
from host.clocks import monotonic_clock
from streamsql.binder import Creating, define
from streamsql.catalog.definitions import Definition
from streamsql.syntax import (
    CreateAlarm,
    CreateSink,
    Query,
    Subscribe,
)
from streamsql.syntax.statements import Statement

KNOWN_MICROSECONDS = 60_000_000
"""Time in which an equal text is not planned again: between two looks at what runs."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that was planned before it is its turn.

    Attributes:
        catalog: The definitions it was planned with.
        sites: The sites it was planned with.
        planned: Its plan, without an id.
        presentation: What it says about its readers.
        gathered: Whether rows of gateways are brought together first.
        rights: Version of the rights it was planned with.
        made: When it was planned, by `monotonic_clock`.
    """

    catalog: tuple[Definition, ...]
    sites: Topology
    planned: Planned
    presentation: Presentation
    gathered: bool = True
    rights: int = 0
    made: int = field(default_factory=monotonic_clock)

    @property
    def display(self) -> str:
        """The display it wants to be shown on, or empty."""
        return self.presentation.display


@dataclass(frozen=True, slots=True)
class PreparedDefinition:
    """A definition that was checked before it is its turn.

    Attributes:
        catalog: The definitions it was checked with.
        definition: What it defines.
        query: The plan of an alarm's or sink's query.
        rights: Version of the rights it was checked with.
    """

    catalog: tuple[Definition, ...]
    definition: Definition
    query: Prepared | None = None
    rights: int = 0


class Preparation:
    """Plans queries and checks definitions, before others have to wait for it."""

    def __init__(self, shared: SharedParts, planner: Planner, offers: ReadableOffers) -> None:
        self._shared = shared
        self._offers = offers
        self._planner = planner
        self._runs = offers.runs
        self._known: KnownPlans[Prepared] = KnownPlans(self._holds)

    async def of(
        self, statement: Statement, principal: Principal = LOCAL
    ) -> Prepared | PreparedDefinition | None:
        """Do what can be done of a statement before others have to wait for it.

        Raises:
            FederationError: The statement is wrong, or takes too long.
        """
        if isinstance(statement, Query | Subscribe):
            return await self.query(statement, principal)
        if not isinstance(statement, Creating):
            return None
        defined = await self.definition(statement, principal)
        if isinstance(statement, CreateAlarm | CreateSink):
            query = await self.query(statement.query, principal, whole_changes=True)
            return replace(defined, query=query)
        return defined

    def is_current(self, prepared: Prepared | PreparedDefinition) -> bool:
        """Whether no definition has changed since, nor the sites that a plan rests on."""
        if isinstance(prepared, Prepared) and prepared.sites != self._planner.topology():
            return False
        if prepared.rights != self._shared.rights.version:
            return False
        return prepared.catalog == tuple(self._shared.catalog)

    async def query(
        self,
        statement: Query | Subscribe,
        principal: Principal = LOCAL,
        *,
        gathered: bool = True,
        whole_changes: bool = False,
    ) -> Prepared:
        """Return a query with its plan; not gathered, gateways give their rows themselves.

        `whole_changes` is as of `BoundQuery`.

        Raises:
            FederationError: It is wrong, takes too long, or reads what the principal may not.
        """
        asked = Asked(statement.text, principal, gathered, whole_changes)
        await self._offers.catch_up()
        running = self._known.find(asked)
        if running is not None:
            return running
        sites = self._planner.topology()
        known, rights = tuple(self._shared.catalog), self._shared.rights.version
        readable = self._shared.catalog_of(principal)

        reading = self.reading(principal, whole_changes=whole_changes)

        def work() -> tuple[Planned, Presentation]:
            bound = replace(self._planner.bind(statement, readable), whole_changes=whole_changes)
            presentation = presentation_of(statement, bound.schema, bound.emit)
            planned = self._planner.placed(
                bound, query="", text=statement.text, gathered=gathered, reading=reading
            )
            return planned, presentation

        planned, presentation = await self._shared.beside.run_short(work, "planning the query")
        prepared = Prepared(known, sites, planned, presentation, gathered, rights)
        self._known.keep(asked, prepared)
        return prepared

    def reading(self, principal: Principal, *, whole_changes: bool = False) -> Reading:
        """Return the rules by which a new query of somebody is planned over what runs."""
        self._offers.index()  # here: what a process finds out is seen nowhere else
        allowed = self._offers.for_new(principal, whole_changes=whole_changes)
        moves = self._shared.settings.adapt > 0.0
        return Reading(self._offers, allowed, makes_nodes=True, moves=moves)

    def _holds(self, prepared: Prepared, principal: Principal) -> bool:
        """Return whether a plan is still what an equal text gets: a run that computes it.

        Facts may have changed since, as for the queries that run: looks at those are as seldom. But
        where one of them moves a query begins with the plan of now.
        """
        is_recent = monotonic_clock() - prepared.made < KNOWN_MICROSECONDS
        if not is_recent or self._runs.tried() or not self.is_current(prepared):
            return False
        if self._runs.alike(prepared.planned) is None:
            return False
        # Rights of makers of views change without a version.
        return next(self._shared.rights.refusals(principal, prepared.planned.reads), None) is None

    async def definition(
        self, statement: Creating, principal: Principal = LOCAL
    ) -> PreparedDefinition:
        """Return a definition that was checked.

        Raises:
            FederationError: It is wrong, takes too long, or reads what the principal may not.
        """
        known, rights = tuple(self._shared.catalog), self._shared.rights.version
        readable = self._shared.catalog_of(principal)
        work = lambda: define(statement, readable)  # noqa: E731
        definition = await self._shared.beside.run_short(work, "checking the definition")
        return PreparedDefinition(known, definition, rights=rights)
