"""INSERT and DELETE on stored tables: the static engine, which alone reads files, does them."""

import asyncio
import secrets

import msgspec

from federated_optimizer.coordinator.deployment import Deployment
from federated_optimizer.coordinator.membership import Membership
from federated_optimizer.coordinator.model import ResultKind, StatementResult
from streamsql.binder import bind_delete, bind_insert
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError, DeploymentError, UnsupportedError
from streamsql.syntax import Delete, Insert
from streamsql.wire.table_changes import TableChange, TableChanged

Changing = Insert | Delete

MAX_WAITING = 50
SECONDS = 20.0
"""Less than a terminal waits for the console (`ui.cli.client`)."""


class TableChanges:
    """Sends changes and waits for the answers.

    Args:
        catalog: All definitions.
        deployment: Sends them.
        membership: Says whether the static engine is there.
        static: Its id.
    """

    def __init__(
        self,
        catalog: Catalog,
        deployment: Deployment,
        membership: Membership,
        static: str,
    ) -> None:
        self._catalog = catalog
        self._deployment = deployment
        self._membership = membership
        self.static = static
        self._waiting: dict[str, asyncio.Future[TableChanged]] = {}

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
        if answer.code == "duplicate_key":
            raise BindingError(
                answer.message, span=statement.source.span, hint=answer.hint, code=answer.code
            )
        if answer.code:
            raise DeploymentError(answer.message, hint=answer.hint, code=answer.code)
        rows = "1 row" if answer.rows == 1 else f"{answer.rows} rows"
        return StatementResult(ResultKind.DONE, f"{rows} {done} table {name}")

    def heard(self, answer: TableChanged) -> None:
        """Take in an answer; one that nobody waits for any more is none."""
        waiting = self._waiting.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _bound(self, statement: Changing) -> tuple[TableChange, str]:
        number = secrets.token_hex(8)
        if isinstance(statement, Insert):
            insert = bind_insert(statement, self._catalog)
            self._check(insert.definition, statement)
            return TableChange(number, 0, insert.definition, insert.rows), "inserted into"
        delete = bind_delete(statement, self._catalog)
        self._check(delete.definition, statement)
        change = TableChange(number, 0, delete.definition, delete=True, predicate=delete.predicate)
        return change, "deleted from"

    def _check(self, definition: SourceDefinition, statement: Changing) -> None:
        """Check that it is a table in a file that can be changed.

        Raises:
            UnsupportedError: It is not; the text says what to do instead.
        """
        verb = type(statement).__name__.upper()
        if not definition.is_table:
            raise UnsupportedError(
                f"{verb} on a stream works in a local script only: here readings come from "
                "gateways",
                span=statement.source.span,
                hint="send a reading through a wrapper; or pando shell --local, pando run FILE "
                "--local",
                code="local_only",
            )
        source = (definition.option("source") or "").lower()
        if source == "csv":
            return
        what = f"is read from {source}" if source else "names no source"
        hints = {
            "": "CREATE TABLE it WITH (source = 'csv', path = 'rows.csv')",
            "sql": "change it in the database; with the option refresh it is read again",
        }
        raise UnsupportedError(
            f"table {definition.name} {what}: {verb} changes tables in one plain CSV file",
            span=statement.source.span,
            hint=hints.get(source, "write the file anew; what has changed there is read again"),
            code="not_writable",
        )

    async def _asked(self, change: TableChange) -> TableChanged:
        self._membership.check_reachable(self.static)
        if len(self._waiting) >= MAX_WAITING:
            raise DeploymentError(
                f"{MAX_WAITING} changes of tables wait already",
                hint="try again a little later",
                code="change_failed",
            )
        asked = msgspec.structs.replace(change, epoch=self._membership.epoch(self.static))
        waiting: asyncio.Future[TableChanged] = asyncio.get_running_loop().create_future()
        self._waiting[change.id] = waiting
        try:
            self._deployment.change(self.static, asked)
            async with asyncio.timeout(SECONDS):
                return await waiting
        except TimeoutError:
            raise DeploymentError(
                f"the static engine has not answered within {SECONDS:g} s; whether table "
                f"{change.definition.name} has changed, or will, is not known",
                hint="look with a SELECT before you try again",
                code="no_answer",
            ) from None
        finally:
            del self._waiting[change.id]
