"""Parts of the coordinator's interface as one principal may use them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from typing_extensions import override

from federated_optimizer.coordinator.contract.audit_model import Audit, AuditEntry, Outcome
from federated_optimizer.coordinator.contract.coordinator_api import RowQuestions, Subscription
from federated_optimizer.coordinator.contract.coordinator_model import ChangeBatch, StatementResult
from federated_optimizer.coordinator.contract.grant_model import Grant, GrantsApi, Quotas, Usage
from federated_optimizer.coordinator.contract.history_model import (
    HistoryTrialInfo,
    HistoryTrialsApi,
    PastChange,
)
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from federated_optimizer.coordinator.contract.sink_model import SinkApi, SinkInfo
from federated_optimizer.coordinator.contract.trial_model import MappedTrial, TrialInfo, TrialsApi
from federated_optimizer.coordinator.explaining.explaining_rows import RowExplanations
from federated_optimizer.coordinator.grants.grant_changes import GrantChanges
from federated_optimizer.coordinator.rights.account_quotas import AccountQuotas
from federated_optimizer.coordinator.rights.statement_roles import check_action
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.grant_store import MadeKind
from streamsql.proposals.offered import Chosen
from streamsql.proposals.proposal import Proposal


class CheckedSubscription(Subscription):
    """A reader whose right is looked at again before each batch."""

    def __init__(self, reader: Subscription, check: Callable[[], None]) -> None:
        self._reader = reader
        self._check = check

    @override
    async def __aiter__(self) -> AsyncIterator[ChangeBatch]:
        async for batch in self._reader:
            self._check()
            yield batch

    @override
    async def close(self) -> None:
        await self._reader.close()


class CheckedRows(RowQuestions):
    """Questions about rows; `RowExplanations` looks at what they rest on."""

    def __init__(self, rows: RowExplanations, quotas: AccountQuotas, principal: Principal) -> None:
        self._rows = rows
        self._quotas = quotas
        self._principal = principal

    @override
    async def why_row(
        self, query_id: str, values: Sequence[object], *, limit: int = 10, confidence: str = ""
    ) -> StatementResult:
        check_action("ask about rows", self._principal)
        async with self._quotas.planning(self._principal):
            return await self._rows.why_row(
                query_id, values, limit=limit, confidence=confidence, principal=self._principal
            )

    @override
    async def confidence_of_rows(
        self, query_id: str, column: str, *, limit: int | None = None
    ) -> StatementResult:
        check_action("ask about rows", self._principal)
        async with self._quotas.planning(self._principal):
            return await self._rows.confidence_of_rows(
                query_id, column, limit=limit, principal=self._principal
            )

    @override
    async def what_if_deleted(
        self,
        deletions: Sequence[tuple[str, Sequence[object]]],
        *,
        gateways: Sequence[str] = (),
        nodes: Sequence[str | int] = (),
        query_id: str | None = None,
    ) -> StatementResult:
        check_action("ask about rows", self._principal)
        async with self._quotas.planning(self._principal):
            return await self._rows.what_if_deleted(
                deletions,
                gateways=gateways,
                nodes=nodes,
                query_id=query_id,
                principal=self._principal,
            )


class CheckedPast(HistoryTrialsApi):
    """Trials on history: one's own."""

    def __init__(self, past: HistoryTrialsApi, principal: Principal) -> None:
        self._past = past
        self._principal = principal

    @override
    def all(self) -> tuple[HistoryTrialInfo, ...]:
        check_action("run on history", self._principal)
        return tuple(info for info in self._past.all() if self._may_see(info))

    @override
    def info(self, trial_id: str) -> HistoryTrialInfo:
        check_action("run on history", self._principal)
        info = self._past.info(trial_id)
        if not self._may_see(info):
            raise KeyError(trial_id)
        return info

    @override
    def changes(self, trial_id: str, since: int, most: int) -> Sequence[PastChange]:
        return self._past.changes(self.info(trial_id).id, since, most)

    @override
    async def stop(self, trial_id: str) -> HistoryTrialInfo:
        return await self._past.stop(self.info(trial_id).id)

    def _may_see(self, info: HistoryTrialInfo) -> bool:
        # What a trial gives was readable for its maker alone, and not with any of their tokens.
        who = self._principal
        if who == LOCAL:
            return True
        return info.maker == who.name and who.sources in (None, info.sources)


class CheckedTrials(TrialsApi):
    """Trials of sources, for operators."""

    def __init__(self, trials: TrialsApi, principal: Principal) -> None:
        self._trials = trials
        self._principal = principal

    @override
    def listen(
        self,
        gateway: str,
        endpoint: str,
        options: Mapping[str, str],
        *,
        seconds: float = 10.0,
        payloads: int = 100,
    ) -> TrialInfo:
        return self._allowed.listen(gateway, endpoint, options, seconds=seconds, payloads=payloads)

    @override
    async def try_statement(
        self, gateway: str, text: str, *, seconds: float = 10.0, payloads: int = 100
    ) -> TrialInfo:
        return await self._allowed.try_statement(gateway, text, seconds=seconds, payloads=payloads)

    @override
    def discover(self, gateway: str, endpoint: str, *, seconds: float = 10.0) -> TrialInfo:
        return self._allowed.discover(gateway, endpoint, seconds=seconds)

    @override
    def info(self, trial_id: str) -> TrialInfo:
        return self._allowed.info(trial_id)

    @override
    def stop(self, trial_id: str) -> TrialInfo:
        return self._allowed.stop(trial_id)

    @override
    async def propose(
        self, trial_id: str, zone: str = "", chosen: Chosen | None = None
    ) -> tuple[Proposal, ...]:
        return await self._allowed.propose(trial_id, zone, chosen)

    @override
    async def map(self, trial_id: str, text: str) -> MappedTrial:
        return await self._allowed.map(trial_id, text)

    @property
    def _allowed(self) -> TrialsApi:
        check_action("try sources", self._principal)
        return self._trials


class CheckedSinks(SinkApi):
    """Sinks whose answers may be read; their dead letters are for operators to handle."""

    def __init__(
        self, sinks: SinkApi, audit: Audit, principal: Principal, readable: Callable[[str], bool]
    ) -> None:
        """Take what is checked; `readable` says whether a query's result may be read, by its id."""
        self._sinks = sinks
        self._audit = audit
        self._principal = principal
        self._readable = readable

    @override
    def infos(self) -> tuple[SinkInfo, ...]:
        return tuple(info for info in self._sinks.infos() if self._readable(info.query))

    @override
    def retry(self, name: str) -> int:
        check_action("handle sinks", self._principal)
        number = self._sinks.retry(name)
        self._audit.note(self._principal, "retry dead letters", name, Outcome.DONE, str(number))
        return number

    @override
    def discard(self, name: str) -> int:
        check_action("handle sinks", self._principal)
        number = self._sinks.discard(name)
        self._audit.note(self._principal, "discard dead letters", name, Outcome.DONE, str(number))
        return number


class CheckedAudit(Audit):
    """The audit, for administrators to read."""

    def __init__(self, audit: Audit, principal: Principal) -> None:
        self._audit = audit
        self._principal = principal

    @override
    def note(
        self,
        principal: Principal | None,
        action: str,
        target: str,
        outcome: Outcome,
        detail: str = "",
        *,
        address: str = "",
    ) -> None:
        self._audit.note(principal, action, target, outcome, detail, address=address)

    @override
    def entries(self) -> tuple[AuditEntry, ...]:
        check_action("read the audit", self._principal)
        return self._audit.entries()


class CheckedGrants(GrantsApi):
    """Grants and quotas that a principal may know of."""

    def __init__(self, shared: SharedParts, statements: GrantChanges, principal: Principal) -> None:
        self._shared = shared
        self._statements = statements
        self._principal = principal

    @override
    def grants(self) -> tuple[Grant, ...]:
        return self._statements.visible(self._principal)

    @override
    def makers(self) -> dict[str, str]:
        readable = {d.name.lower() for d in self._shared.catalog_of(self._principal)}
        makers = self._shared.rights.makers(MadeKind.DEFINITION)
        return {name: maker for name, maker in makers.items() if name in readable}

    @override
    def quotas(self, account: str) -> Quotas:
        return self._shared.quotas.of(self._of(account))

    @override
    def usage(self, account: str) -> Usage:
        return self._statements.usage(self._of(account))

    def _of(self, account: str) -> Principal:
        """Return an account as a principal: one's own, or any for administrators.

        Raises:
            NotAllowedError: It is somebody else's.
            KeyError: There is no such account.
        """
        if account == self._principal.name:
            return self._principal
        check_action("handle quotas", self._principal)
        found = self._shared.rights.account_of(account)
        if found is None:
            raise KeyError(account)
        return Principal(found.name, Role(found.role))
