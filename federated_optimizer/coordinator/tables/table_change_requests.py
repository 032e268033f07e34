"""Changes of stored tables: the static engine, which alone reads them, does them."""

import secrets

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.tables.awaited_answers import AwaitedAnswers
from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.binder import bind_delete, bind_insert, bind_merge, bind_update
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import expand
from streamsql.data.types import Row
from streamsql.errors import BindingError, DeploymentError, UnsupportedError
from streamsql.reference import Database, evaluate
from streamsql.syntax import Delete, Insert, Merge, Update
from streamsql.wire.table_changes import TableChange, TableChanged

Changing = Insert | Delete | Update | Merge

MAX_WAITING = 50
SECONDS = 20.0
"""Less than a terminal waits for the console (`ui.cli.client`)."""


class TableChanges:
    """Sends changes and waits for the answers."""

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._static = shared.settings.static
        self._answers: AwaitedAnswers[TableChanged] = AwaitedAnswers(
            shared, MAX_WAITING, "changes of tables", "change_failed"
        )

    async def run(self, statement: Changing) -> StatementResult:
        """Change a table and return how many rows.

        Raises:
            QueryError: The statement is wrong, or asks for what is not changed here.
            DeploymentError: It could not be done; only with code `no_answer` that is not known.
        """
        change, done = self._bound(statement)
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

    def _bound(self, statement: Changing) -> tuple[TableChange, str]:
        number = secrets.token_hex(8)
        if isinstance(statement, Insert):
            insert = bind_insert(statement, self._shared.catalog)
            self._check(insert.definition, statement)
            rows, given = insert.rows, insert.given
            return TableChange(number, 0, insert.definition, rows, given=given), "inserted into"
        if isinstance(statement, Update):
            update = bind_update(statement, self._shared.catalog)
            self._check(update.definition, statement)
            values, predicate = update.values, update.predicate
            change = TableChange(number, 0, update.definition, update=values, predicate=predicate)
            return change, "updated in"
        if isinstance(statement, Merge):
            merge = bind_merge(statement, self._shared.catalog)
            self._check(merge.definition, statement)
            rows = constant_rows(merge.rows, statement)
            change = TableChange(number, 0, merge.definition, rows, merge=merge.merge)
            return change, "changed in"
        delete = bind_delete(statement, self._shared.catalog)
        self._check(delete.definition, statement)
        change = TableChange(number, 0, delete.definition, delete=True, predicate=delete.predicate)
        return change, "deleted from"

    def _check(self, definition: SourceDefinition, statement: Changing) -> None:
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


def constant_rows(plan: Plan, statement: Merge) -> tuple[Row, ...]:
    """Return the rows of USING.

    Raises:
        UnsupportedError: They are those of a relation.
    """
    read = sorted({node.source for node in walk_plan(plan) if isinstance(node, Scan)})
    if read:
        raise UnsupportedError(
            f"USING reads {', '.join(read)}: MERGE takes rows that the statement lists",
            span=statement.rows.span,
            hint="USING (VALUES (…), (…)) AS s (columns)",
            code="unsupported_statement",
        )
    return tuple(expand(evaluate(plan, Database(), 0)))
