"""Changes of stored tables: the static engine, which alone reads them, does them."""

import secrets
from collections.abc import Callable
from functools import partial

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.tables.awaited_answers import AwaitedAnswers
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from streamsql.algebra.operators import Plan
from streamsql.binder import bind_delete, bind_insert, bind_merge, bind_update
from streamsql.binder.relations.system_times import is_managed
from streamsql.binder.statements.stored_rows import reads_rows
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import expand
from streamsql.errors import BindingError, DeploymentError, UnsupportedError
from streamsql.history.past_plans import fixed
from streamsql.reference import Database, evaluate
from streamsql.syntax import Delete, Insert, Merge, Update
from streamsql.wire.stored_tables.table_changes import TableChange, TableChanged

Changing = Insert | Delete | Update | Merge

MAX_WAITING = 50
SECONDS = 20.0
"""Less than a terminal waits for the console (`ui.cli.client`)."""


class TableChanges:
    """Sends changes and waits for the answers.

    Args:
        shared: Of the coordinator.
        topology: Returns the sites as known now.
    """

    def __init__(self, shared: SharedParts, topology: Callable[[], Topology]) -> None:
        self._shared = shared
        self._topology = topology
        self._static = shared.settings.static
        self._answers: AwaitedAnswers[TableChanged] = AwaitedAnswers(
            shared, MAX_WAITING, "changes of tables", "change_failed"
        )

    async def run(self, statement: Changing, principal: Principal) -> StatementResult:
        """Change a table and return how many rows.

        Args:
            statement: What is changed.
            principal: Whose rights count for what the rows are computed from.

        Raises:
            QueryError: The statement is wrong, or asks for what is not changed here.
            DeploymentError: It could not be done; only with code `no_answer` that is not known.
        """
        catalog = self._shared.catalog_of(principal)
        queried = isinstance(statement, Merge) or (
            isinstance(statement, Insert) and statement.query is not None
        )
        beside = self._shared.beside if queried else OnTheLoop()
        change, done = await beside.run(
            partial(bound_change, statement, catalog, self._topology(), self._shared.clock()),
            "planning the change",
        )
        answer = await self._asked(change)
        name = change.definition.name
        if answer.code == "not_writable":
            raise UnsupportedError(
                answer.message, span=statement.source.span, hint=answer.hint, code=answer.code
            )
        if answer.code in ("duplicate_key", "constraint_violated"):
            raise BindingError(
                answer.message, span=statement.source.span, hint=answer.hint, code=answer.code
            )
        if answer.code:
            raise DeploymentError(answer.message, hint=answer.hint, code=answer.code)
        rows = "1 row" if answer.rows == 1 else f"{answer.rows} rows"
        return StatementResult(ResultKind.DONE, f"{rows} {done} table {name}")

    def heard(self, answer: TableChanged) -> None:
        """Ingest an answer; one that nobody waits for any more is dropped."""
        self._answers.heard(answer.id, answer)

    async def _asked(self, change: TableChange) -> TableChanged:
        epoch = 0

        def send(meant: int) -> None:
            nonlocal epoch
            epoch = meant
            asked = msgspec.structs.replace(change, epoch=meant)
            self._shared.deployment.change(self._static, asked)

        answer = await self._answers.ask(change.id, send, SECONDS)
        if answer is not None:
            return answer
        name = change.definition.name
        what = (
            f"the static engine did not answer within {SECONDS:g} s; it is unknown whether "
            f"table {name} has changed or will change"
            if self._answers.is_there(epoch)
            else "the static engine stopped before it answered; it is unknown whether table "
            f"{name} has changed"
        )
        raise DeploymentError(what, hint="check with SELECT before you retry", code="no_answer")


def bound_change(
    statement: Changing, catalog: Catalog, topology: Topology, now: int
) -> tuple[TableChange, str]:
    """Return what the static engine is asked, and what it does then, for people.

    Args:
        statement: What is changed.
        catalog: As its author may read it.
        topology: The sites as known now.
        now: Wall-clock microseconds, from which times of the past count.

    Raises:
        QueryError: The statement is wrong, or asks for what is not changed here.
    """
    change, done, plan = _bound(statement, catalog, secrets.token_hex(8))
    _check(change.definition, statement)
    if plan is None:
        return change, done
    if not reads_rows(plan):
        rows = tuple(expand(evaluate(plan, Database(), 0)))
        return msgspec.structs.replace(change, rows=rows), done
    _check_managed(change.definition, statement)
    try:
        query = fixed(normalize(plan, topology), now)
    except RecursionError:
        raise UnsupportedError(
            "the operators of this query are nested too deeply",
            span=statement.span,
            hint="use fewer joins and set operations in one query",
            code="limit_exceeded",
        ) from None
    return msgspec.structs.replace(change, query=query), done


def _bound(
    statement: Changing, catalog: Catalog, number: str
) -> tuple[TableChange, str, Plan | None]:
    """Return a change without its rows, what it does, and what computes the rows if anything."""
    match statement:
        case Insert():
            insert = bind_insert(statement, catalog)
            change = TableChange(number, 0, insert.definition, insert.rows, given=insert.given)
            return change, "inserted into", insert.query
        case Update():
            update = bind_update(statement, catalog)
            values, predicate = update.values, update.predicate
            change = TableChange(number, 0, update.definition, update=values, predicate=predicate)
            return change, "updated in", None
        case Merge():
            merge = bind_merge(statement, catalog)
            change = TableChange(number, 0, merge.definition, merge=merge.merge)
            return change, "changed in", merge.rows
        case Delete():
            delete = bind_delete(statement, catalog)
            predicate = delete.predicate
            change = TableChange(number, 0, delete.definition, delete=True, predicate=predicate)
            return change, "deleted from", None


def _check(definition: SourceDefinition, statement: Changing) -> None:
    verb = type(statement).__name__.upper()
    if not definition.is_table:
        raise UnsupportedError(
            f"{verb} on a stream works only in a local session: in a federation, "
            "readings come from gateways",
            span=statement.source.span,
            hint="send a reading through a connector, or use pando shell --local or pando run "
            "FILE --local",
            code="local_only",
        )


def _check_managed(definition: SourceDefinition, statement: Changing) -> None:
    if not is_managed(definition):
        raise UnsupportedError(
            f"{definition.name} is not a table that Pando keeps: "
            f"{type(statement).__name__.upper()} takes only rows that the statement lists there",
            span=statement.source.span,
            hint="list the rows with VALUES, or create a table without source",
            code="unsupported_statement",
        )
