"""Statements take turns: each is planned while others may run, and changes the catalog alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from federated_optimizer.coordinator.contract.audit_model import Outcome
from federated_optimizer.coordinator.contract.coordinator_model import (
    Origin,
    ResultKind,
    StatementResult,
    Validation,
)
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.explaining.explaining_rows import Question, RowExplanations
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.replanning import Replanning
from federated_optimizer.coordinator.rights.account_quotas import QUOTA_EXCEEDED
from federated_optimizer.coordinator.rights.statement_roles import (
    check_statement,
    is_change,
    statement_kind,
    statement_target,
)
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.statements.preparation import Prepared, PreparedDefinition
from federated_optimizer.coordinator.statements.statement_execution import (
    StatementRunner,
    carry_out,
)
from federated_optimizer.coordinator.statements.statement_validation import select_all, validate
from federated_optimizer.coordinator.tables.table_change_requests import Changing, TableChanges
from federated_optimizer.coordinator.trials.history_trials import HistoryTrials
from streamsql.catalog.read_gate import NOT_ALLOWED
from streamsql.errors import FederationError
from streamsql.redaction import redacted
from streamsql.syntax.statement_parsers.grant_statements import ShowGrants
from streamsql.syntax.statement_parsers.run_statements import RunOnHistory
from streamsql.syntax.statements import Describe, Explain, Query, Show, Statement, Subscribe

REFUSED = frozenset({NOT_ALLOWED, QUOTA_EXCEEDED})
"""Codes of refusals, which the audit has even of statements that change nothing."""

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
        past: HistoryTrials,
    ) -> None:
        self._shared = shared
        self._queries = queries
        self._statements = statements
        self._replanning = replanning
        self._rows = rows
        self._changes = changes
        self._past = past

    async def script(
        self, text: str, name: str, origin: Origin, principal: Principal
    ) -> tuple[StatementResult, ...]:
        """Run the statements of a script; see `CoordinatorApi.execute`."""
        return await carry_out(
            text,
            lambda statement: self.run(statement, name, origin, principal),
            self._shared.beside,
        )

    async def validate(self, text: str, principal: Principal) -> Validation:
        """Parse and bind without running anything."""
        catalog = self._shared.catalog_of(principal)
        async with self._shared.quotas.planning(principal):
            return await self._shared.beside.run(
                lambda: validate(text, catalog), "checking the text"
            )

    async def shapes(self, names: Sequence[str], principal: Principal) -> dict[str, Validation]:
        """Return the columns of relations by name, where they bind."""
        catalog = self._shared.catalog_of(principal)
        return await self._shared.beside.run(
            lambda: {name: validate(select_all(name), catalog) for name in names},
            "looking at the columns",
        )

    async def run(
        self, statement: Statement, name: str, origin: Origin, principal: Principal = LOCAL
    ) -> StatementResult:
        """Run a statement of somebody; the audit gets what changes something or is refused.

        Raises:
            FederationError: It cannot be run, or they may not; nothing has changed.
        """
        # Pages start queries for whoever looks at them. What else comes with their origin counts:
        # requests say themselves which one they have.
        is_of_page = isinstance(statement, Query | Subscribe) and origin in (
            Origin.MAP,
            Origin.SESSION,
        )
        noted = is_change(statement) and not is_of_page
        try:
            check_statement(statement, principal, origin)
            async with self._shared.quotas.planning(principal):
                result = await self._run(statement, name, origin, principal)
        except FederationError as error:
            if error.code in REFUSED:
                self._note(statement, principal, Outcome.REFUSED, error.message)
            elif noted:
                self._note(statement, principal, Outcome.FAILED, error.message)
            raise
        if noted:
            self._note(statement, principal, Outcome.DONE, statement.text)
        return result

    def _note(
        self, statement: Statement, principal: Principal, outcome: Outcome, detail: str
    ) -> None:
        kind, target = statement_kind(statement), statement_target(statement)
        self._shared.audit.note(principal, kind, target, outcome, redacted(detail))

    async def _run(
        self, statement: Statement, name: str, origin: Origin, principal: Principal
    ) -> StatementResult:
        if isinstance(statement, Question):
            return await self._rows.answer(statement, principal)
        self._shared.presence.check_in_charge()
        if isinstance(statement, RunOnHistory):
            return await self._past.begin(statement, principal)
        if isinstance(statement, Changing):
            return await self._changes.run(statement, principal)
        asked = _Asked(statement, name, origin, principal)
        if isinstance(statement, Explain | Show | Describe | ShowGrants):
            return await self._told(asked, None)
        for _ in range(_TRIES):
            prepared = await self._statements.preparation.of(statement, principal)
            async with self._shared.lock:
                result = None
                if prepared is None or self._statements.preparation.is_current(prepared):
                    result = await self._in_turn(asked, prepared)
            if result is not None:
                return await self._stored(result)
        # Definitions change all the time: others wait until this one is planned.
        async with self._shared.lock:
            result = await self._in_turn(asked, None)
        return await self._stored(result)

    async def _stored(self, result: StatementResult) -> StatementResult:
        """Return a result when the query that was started is in the catalog."""
        if result.kind == ResultKind.QUERY and result.query is not None:
            await self._statements.queries.ensure_stored(result.query.id)
        return result

    async def _in_turn(
        self, asked: "_Asked", prepared: Prepared | PreparedDefinition | None
    ) -> StatementResult:
        self._shared.presence.check_in_charge()
        result = await self._told(asked, prepared)
        defines = not isinstance(asked.statement, Query | Subscribe)
        self._queries.compare(self._shared.catalog, changed=defines)
        self._replanning.look_after(asked.statement)
        return result

    async def _told(
        self, asked: "_Asked", prepared: Prepared | PreparedDefinition | None
    ) -> StatementResult:
        return await self._statements.run(
            asked.statement,
            name=asked.name,
            origin=asked.origin,
            principal=asked.principal,
            prepared=prepared,
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A statement, the name and origin of the query that it may start, and who asks for it."""

    statement: Statement
    name: str
    origin: Origin
    principal: Principal
