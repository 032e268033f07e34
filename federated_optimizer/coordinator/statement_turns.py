"""Statements take turns: each is planned while others may run, and changes the catalog alone."""

from federated_optimizer.coordinator.contract.coordinator_model import Origin, StatementResult
from federated_optimizer.coordinator.explaining.explaining_rows import Question, RowExplanations
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.replanning import Replanning
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.statements.preparation import Prepared, PreparedDefinition
from federated_optimizer.coordinator.statements.statement_execution import StatementRunner
from federated_optimizer.coordinator.tables.table_change_requests import Changing, TableChanges
from streamsql.syntax.statements import Describe, Explain, Show, Statement

_TRIES = 3
"""Times that a statement is planned while others may run, before they have to wait for it."""


class StatementTurns:
    """Runs one statement after another for everybody who has some."""

    def __init__(  # noqa: PLR0913, PLR0917 - each is one seam
        self,
        shared: SharedParts,
        queries: Queries,
        statements: StatementRunner,
        replanning: Replanning,
        rows: RowExplanations,
        changes: TableChanges,
    ) -> None:
        self._shared = shared
        self._queries = queries
        self._statements = statements
        self._replanning = replanning
        self._rows = rows
        self._changes = changes

    async def run(self, statement: Statement, name: str, origin: Origin) -> StatementResult:
        """Run a statement.

        Raises:
            FederationError: It cannot be run; nothing has changed.
        """
        if isinstance(statement, Question):
            return await self._rows.answer(statement)
        self._shared.presence.check_in_charge()
        if isinstance(statement, Changing):
            return await self._changes.run(statement)
        if isinstance(statement, Explain | Show | Describe):
            return await self._statements.run(statement, name=name, origin=origin)
        for _ in range(_TRIES):
            prepared = await self._statements.preparation.of(statement)
            async with self._shared.lock:
                if prepared is None or self._statements.preparation.is_current(prepared):
                    return await self._in_turn(statement, name, origin, prepared)
        # Definitions change all the time: others wait until this one is planned.
        async with self._shared.lock:
            return await self._in_turn(statement, name, origin, None)

    async def _in_turn(
        self,
        statement: Statement,
        name: str,
        origin: Origin,
        prepared: Prepared | PreparedDefinition | None,
    ) -> StatementResult:
        self._shared.presence.check_in_charge()
        result = await self._statements.run(statement, name=name, origin=origin, prepared=prepared)
        self._queries.compare(self._shared.catalog, changed=True)
        self._replanning.look_after(statement)
        return result
