"""RUN … ON HISTORY: queries and alarms tried on the past, and what they gave."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from typing_extensions import override

from federated_optimizer.coordinator.contract.coordinator_model import (
    ResultKind,
    StatementResult,
)
from federated_optimizer.coordinator.contract.history_model import (
    HistoryTrialInfo,
    HistoryTrialsApi,
    PastChange,
)
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.explaining.known_base_rows import BaseRowReader
from federated_optimizer.coordinator.grants.query_rights import readable
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryAlarm,
    HistoryChanges,
    HistoryEnd,
    HistoryMessage,
    HistoryOrder,
    HistoryProgress,
    HistoryRunner,
)
from federated_optimizer.coordinator.trials.tried_past import scans_of, tried_past
from streamsql.algebra.operators import SourceKind
from streamsql.binder import BoundQuery
from streamsql.data.types import Row
from streamsql.errors import (
    DeploymentError,
    FederationError,
    InternalError,
)
from streamsql.syntax import RunOnHistory
from streamsql.syntax.statements import Name

log = logging.getLogger(__name__)

MAX_AT_ONCE = 2
MAX_KEPT = 20
MAX_CHANGES = 100_000
"""Changes of a trial that are kept; more are counted only."""


@dataclass(slots=True)
class _Kept:
    info: HistoryTrialInfo
    changes: list[PastChange] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


class HistoryTrials(HistoryTrialsApi):
    """The trials of one coordinator.

    Args:
        reader: Reads the rows of stored tables, which are as they are now.
        runner: Runs queries on the past; without it trials are refused.
    """

    def __init__(
        self,
        shared: SharedParts,
        planner: Planner,
        queries: Queries,
        reader: BaseRowReader,
        runner: HistoryRunner | None,
    ) -> None:
        self._shared = shared
        self._planner = planner
        self._queries = queries
        self._reader = reader
        self._runner = runner
        self._kept: dict[str, _Kept] = {}

    async def begin(self, statement: RunOnHistory, principal: Principal) -> StatementResult:
        """Begin a trial for somebody.

        Raises:
            FederationError: It is wrong, reads what they may not, or there are too many.
        """
        runner = self._runner
        if runner is None:
            raise DeploymentError(
                "this federation keeps no history, so nothing can be run on it",
                hint="start it with Spark and the lake, as `pando up` does",
                code="no_history",
            )
        self._check_room()
        since, until = statement.interval(self._shared.clock())
        catalog = self._shared.catalog_of(principal)
        named = None if statement.named is None else self._text_of(statement.named, principal)
        tried = await self._shared.beside.run(
            lambda: tried_past(statement, catalog, named), "planning the query"
        )
        tables, notes = await self._tables(tried.query)
        self._check_room()
        settings = self._shared.settings
        order = HistoryOrder(
            query=tried.query,
            topology=self._planner.topology(),
            sources=tried.sources,
            since=since,
            until=until,
            lookback=statement.lookback,
            tables=tables,
            grace=int(settings.grace * 1_000_000),
            speed=statement.speed,
            alarm=tried.alarm,
        )
        info = HistoryTrialInfo(
            secrets.token_hex(8),
            principal.name,
            principal.sources,
            statement.text,
            tried.query.schema,
            since,
            until,
            alarm="" if tried.alarm is None else tried.alarm.name,
            notes=notes,
        )
        kept = self._kept[info.id] = _Kept(info)
        kept.task = asyncio.create_task(self._follow(kept, runner, order))
        self._drop_oldest()
        message = f"trial {info.id} runs on history; follow it with: pando trial follow {info.id}"
        return StatementResult(
            ResultKind.DONE, message, data={"trial": info.id}, warnings=tried.query.warnings
        )

    async def end(self) -> None:
        """End all trials."""
        for trial in list(self._kept):
            await self.stop(trial)

    @override
    def all(self) -> tuple[HistoryTrialInfo, ...]:
        return tuple(kept.info for kept in reversed(self._kept.values()))

    @override
    def info(self, trial_id: str) -> HistoryTrialInfo:
        return self._kept[trial_id].info

    @override
    def changes(self, trial_id: str, since: int, most: int) -> Sequence[PastChange]:
        return self._kept[trial_id].changes[since : since + most]

    @override
    async def stop(self, trial_id: str) -> HistoryTrialInfo:
        kept = self._kept[trial_id]
        if kept.task is not None and not kept.task.done():
            kept.task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await kept.task
            # A task that had not begun yet has said nothing.
            stopped = kept.info.problem or "it was stopped"
            code = kept.info.code or "stopped"
            kept.info = replace(kept.info, problem=stopped, code=code, done=True)
        return kept.info

    def _check_room(self) -> None:
        running = sum(not kept.info.done for kept in self._kept.values())
        if running >= MAX_AT_ONCE:
            raise DeploymentError(
                f"{running} trials on history run already",
                hint="wait for one of them, or stop one: pando trial list, pando trial stop ID",
                code="limit_exceeded",
            )

    def _drop_oldest(self) -> None:
        over = [trial for trial, kept in self._kept.items() if kept.info.done]
        for trial in over[: max(len(self._kept) - MAX_KEPT, 0)]:
            del self._kept[trial]

    def _text_of(self, name: Name, principal: Principal) -> str:
        """Return the text of a running query that is meant by its name, or an empty one."""
        if self._shared.catalog.find(name.text) is not None:
            return ""
        query = self._queries.find(name.text)
        asked = () if query is None else readable(self._shared.rights, principal, (query,))
        return asked[0].text if asked else ""

    async def _tables(
        self, query: BoundQuery
    ) -> tuple[dict[str, tuple[Row, ...]], tuple[str, ...]]:
        """Return the rows of the stored tables that a query reads, as they are now."""
        scans = [scan for scan in scans_of(query) if scan.kind == SourceKind.TABLE]
        if not scans:
            return {}, ()
        base = await self._reader.read(scans)
        rows = {scan.source: tuple(base.contents[scan]) for scan in scans}
        names = ", ".join(sorted(rows))
        return rows, (f"rows of {names} are those that are there now", *base.notes)

    async def _follow(self, kept: _Kept, runner: HistoryRunner, order: HistoryOrder) -> None:
        """Ingest the messages of a run until it is over."""
        messages = runner.run(order)
        try:
            async for message in messages:
                self._heard(kept, message)
        except FederationError as error:
            kept.info = replace(kept.info, problem=error.message, hint=error.hint, code=error.code)
        except Exception as error:
            log.exception("a trial on history failed")
            kept.info = replace(kept.info, problem=f"{error!r:.300}", code=InternalError.code)
            raise
        finally:
            kept.info = replace(kept.info, done=True)
            close = getattr(messages, "aclose", None)
            if close is not None:
                await close()

    def _heard(self, kept: _Kept, message: HistoryMessage) -> None:
        match message:
            case HistoryChanges(at=at, rows=rows):
                self._keep(kept, [PastChange(at, weight, row) for weight, row in rows])
            case HistoryAlarm(at=at, state=state, row=row):
                self._keep(kept, [PastChange(at, 0, row, state)])
            case HistoryProgress():
                reached = message.at if message.at >= kept.info.since else None
                notes = tuple(dict.fromkeys((*kept.info.notes, *message.notes)))
                kept.info = replace(
                    kept.info,
                    at=reached,
                    readings=message.readings,
                    seconds=message.seconds,
                    notes=notes,
                )
            case HistoryEnd():
                kept.info = replace(
                    kept.info, code=message.code, problem=message.problem, hint=message.hint
                )

    def _keep(self, kept: _Kept, changes: list[PastChange]) -> None:
        room = MAX_CHANGES - len(kept.changes)
        kept.changes.extend(changes[:room])
        kept.info = replace(
            kept.info,
            events=kept.info.events + len(changes),
            dropped=kept.info.dropped + max(len(changes) - room, 0),
        )
