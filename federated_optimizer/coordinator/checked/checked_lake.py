"""The lake as one principal may use it: its tables are read with the rights of their sources."""

import re
from collections.abc import Callable

import msgspec
from typing_extensions import override

from federated_optimizer.coordinator.contract.audit_model import Outcome
from federated_optimizer.coordinator.contract.lake_model import LakeApi
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.rights.statement_roles import NotAllowedError, check_action
from federated_optimizer.coordinator.shared_parts import SharedParts
from streamsql.errors import FederationError
from streamsql.wire.stored_tables.lake_messages import LakeAnswer, LakeJob, LakeRequest, LakeTask

_QUESTIONS = (LakeTask.STATUS, LakeTask.JOBS, LakeTask.SAMPLE, LakeTask.STORED)
_ROLLUP = re.compile(r"__1[mhd]$")


class CheckedLake(LakeApi):
    """A lake for one principal.

    Args:
        lake: The whole of it.
        shared: Of the coordinator.
        principal: Who asks.
        may_read: Whether they may read a relation.
    """

    def __init__(
        self,
        lake: LakeApi,
        shared: SharedParts,
        principal: Principal,
        may_read: Callable[[str], bool],
    ) -> None:
        self._lake = lake
        self._audit = shared.audit
        self._principal = principal
        self._may_read = may_read

    @override
    async def ask(self, request: LakeRequest) -> LakeAnswer:
        if request.task in _QUESTIONS:
            check_action("look at the lake", self._principal)
            if not request.table:
                return self._shown(await self._lake.ask(request))
            try:
                self._check_table(request.table, request.task)
            except FederationError as error:
                self._note_look(request.table, Outcome.REFUSED, error.message)
                raise
            answer = self._shown(await self._lake.ask(request))
            self._note_look(request.table, Outcome.DONE)
            return answer
        what = f"{request.task} the lake"
        target = request.table or request.job
        try:
            check_action("care for the lake", self._principal)
            if request.table:
                self._check_table(request.table, request.task)
            elif self._principal.sources is not None:
                raise NotAllowedError(
                    f"API token {self._principal.token} is limited to some sources, and this is "
                    "about all tables",
                    hint="name one table, or use another token",
                )
        except FederationError as error:
            self._audit.note(self._principal, what, target, Outcome.REFUSED, error.message)
            raise
        answer = await self._lake.ask(request)
        self._audit.note(self._principal, what, target, Outcome.DONE)
        return answer

    def _note_look(self, table: str, outcome: Outcome, message: str = "") -> None:
        self._audit.note(self._principal, "look at rows of", table, outcome, message)

    def _check_table(self, table: str, task: LakeTask) -> None:
        stored = task == LakeTask.STORED
        namespace, name = ("", table) if stored else _parts(table)
        if not (self._may_read(name) if stored else self._readable(namespace, name)):
            raise NotAllowedError(
                f"{self._principal.role} {self._principal.name} may not read {table} of the lake"
                if not stored
                else f"{self._principal.role} {self._principal.name} may not read table {name}",
                hint="ask an administrator for GRANT SELECT ON its source",
            )

    def _shown(self, answer: LakeAnswer) -> LakeAnswer:
        tables = tuple(t for t in answer.tables if self._readable(t.namespace, t.name))
        jobs = tuple(job for job in answer.jobs if self._shows(job))
        stored = tuple(table for table in answer.stored if self._may_read(table.name))
        return msgspec.structs.replace(answer, tables=tables, jobs=jobs, stored=stored)

    def _shows(self, job: LakeJob) -> bool:
        if not job.table:  # tells of all tables
            return self._reads_all
        return self._readable(*_parts(job.table))

    @property
    def _reads_all(self) -> bool:
        return self._principal.role.may_act_as(Role.OPERATOR) and self._principal.sources is None

    def _readable(self, namespace: str, name: str) -> bool:
        match namespace:
            case "readings" | "tables":
                return self._may_read(name)
            case "rollups":
                return self._may_read(_ROLLUP.sub("", name))
            case _:
                return self._reads_all


def _parts(table: str) -> tuple[str, str]:
    """Return namespace and name of a table of the lake; a source may be named alone."""
    namespace, _, name = table.rpartition(".")
    return namespace or "readings", name
