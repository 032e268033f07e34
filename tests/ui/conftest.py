"""A console without a federation: the real application over a coordinator of our own making."""

import asyncio
import contextlib
import functools
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import uvicorn
from msgspec import structs
from playwright.sync_api import Browser, Page, expect
from typing_extensions import override

from building.files.provision import provision
from building.sample.sample_building import sample_building
from deploy.session.engines import LocalPlanner
from federated_optimizer.alarm_life_cycle import AlarmBook, AlarmRow
from federated_optimizer.coordinator.contract.audit_model import Audit, AuditEntry, Outcome
from federated_optimizer.coordinator.contract.coordinator_api import Figures
from federated_optimizer.coordinator.contract.coordinator_model import (
    ALL,
    AlarmInfo,
    Change,
    ChangeBatch,
    Freshness,
    Origin,
    QueryInfo,
    QueryStatus,
    ResultKind,
    SiteInfo,
    StatementResult,
    Validation,
    Wanted,
    alarm_info,
)
from federated_optimizer.coordinator.contract.cost_model import CostConstant, CostsApi, Measured
from federated_optimizer.coordinator.contract.fleet_model import (
    Enrolment,
    EnrolmentState,
    JoinRefusedError,
    ProvisionedGateway,
)
from federated_optimizer.coordinator.contract.grant_model import (
    Grant,
    GrantsApi,
    Quotas,
    Usage,
)
from federated_optimizer.coordinator.contract.network_model import (
    MOST_NODES,
    IndexReport,
    Network,
)
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.presentation import presentation_of
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.contract.sink_model import SinkInfo
from federated_optimizer.coordinator.explaining.explaining import explained
from federated_optimizer.coordinator.explaining.explaining_rows import Question
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.queries.answers.result_subscriptions import ResultSubscription
from federated_optimizer.coordinator.statements.source_listings import SOURCE_COLUMNS, source_row
from federated_optimizer.coordinator.statements.statement_execution import carry_out
from federated_optimizer.coordinator.statements.statement_validation import select_all, validate
from federated_optimizer.coordinator.system.site_settings_changes import changed
from federated_optimizer.coordinator.trials.source_trials import SourceTrials
from federated_optimizer.statistics.calibrated_constants import refused
from host.metrics.families import Sample
from host.metrics.service_figures import CONNECTED
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.data.types import Row, Value
from streamsql.errors import BindingError, DeploymentError, UnsupportedError
from streamsql.library import library_views
from streamsql.mapping.offers import OfferedRecord
from streamsql.syntax import parse_script
from streamsql.syntax.explain_options import ExplainFormat
from streamsql.syntax.statements import (
    CreateAlarm,
    CreateDisplay,
    CreateSink,
    CreateSource,
    CreateView,
    Delete,
    Drop,
    Explain,
    Insert,
    Query,
    Refresh,
    Show,
    Statement,
    Subscribe,
)
from streamsql.wire.enrolment import JoinAnswer, JoinRequest
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import (
    BufferState,
    ConnectorState,
    EndpointState,
    SiteRole,
    SiteState,
)
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.trial_messages import SAMPLE, TRIAL, TrialReport, TrialSample
from tests.headless_browser import headless_browser
from tests.loop_turns import loop_turns
from tests.server_sent_events import Events, wait_for
from tests.streamsql.from_text import query_of
from tests.ui.kept_readings import FakeLake
from tests.ui.past_trials import FakePast
from tests.ui.questions import questions
from ui.app import create_app
from ui.console_settings import ConsoleSettings
from ui.map.site_map import SiteMap, read_site, site_map

anyio.open_file  # noqa: B018  # loaded on first use: in a server's thread pytest cannot rewrite it
SCHEMA = Path(__file__).parents[2] / "deploy" / "schema"
SECONDS = 60.0
UNSETTLED_SINCE = 1_767_258_000_000_000  # 2026-01-01T09:00:00Z


def now() -> int:
    """Wall-clock microseconds."""
    return time.time_ns() // 1000


class _Running:
    def __init__(self, info: QueryInfo) -> None:
        self.info = info
        self.rows: dict[Row, int] = {}
        self.readers: set[ResultSubscription] = set()


@functools.cache
def definitions_of(script: str) -> tuple[Definition, ...]:
    """Bind the statements of a schema, once for all tests."""
    catalog = Catalog(library_views())
    found = []
    for statement in parse_script(script):
        assert isinstance(statement, CreateSource | CreateView | CreateDisplay | CreateAlarm)
        found.append(define(statement, catalog))
        catalog.define(found[-1])
    return tuple(found)


class FakeSinks:
    """The sinks are those that a test lists.

    Attributes:
        listed: All sinks.
        retried: Names of the sinks whose dead letters were sent again.
        discarded: Names of the sinks whose dead letters were discarded.
    """

    def __init__(self) -> None:
        self.listed: tuple[SinkInfo, ...] = ()
        self.retried: list[str] = []
        self.discarded: list[str] = []

    def infos(self) -> tuple[SinkInfo, ...]:
        """Return all sinks."""
        return self.listed

    def retry(self, name: str) -> int:
        """Note that dead letters are to be sent again."""
        self.retried.append(name)
        return len(self._of(name).dead)

    def discard(self, name: str) -> int:
        """Note that dead letters are to be forgotten."""
        self.discarded.append(name)
        return len(self._of(name).dead)

    def _of(self, name: str) -> SinkInfo:
        """Return a sink, or raise KeyError."""
        return {info.definition.name: info for info in self.listed}[name]


class Noted(Audit):
    """An audit in a list."""

    def __init__(self) -> None:
        self._entries: list[AuditEntry] = []

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
        who = principal or Principal("", Role.VIEWER)
        role = str(who.role) if principal else ""
        place = address or who.address
        entry = AuditEntry(
            *(len(self._entries) + 1, now(), who.name, role, who.token),
            *(action, target, outcome, detail, place),
        )
        self._entries.append(entry)

    @override
    def entries(self) -> tuple[AuditEntry, ...]:
        return tuple(self._entries)


class FakeFigures:
    """One figure of the coordinator; it is as well as a test says."""

    def __init__(self) -> None:
        self.trouble = ""

    def samples(self) -> list[Sample]:
        """Return the figure."""
        return [CONNECTED.at(1)]

    def problem(self) -> str:
        """Return what a test says."""
        return self.trouble


class FakeFleet:
    """Gateways that are enrolled as a test says; no broker is asked.

    Attributes:
        known: Enrolments by name.
        authority: Certificate in PEM form.
        asked: What was asked for, in order.
    """

    def __init__(self) -> None:
        self.known: dict[str, Enrolment] = {}
        self.authority = ""
        self.asked: list[tuple[str, ...]] = []

    def enrolments(self) -> tuple[Enrolment, ...]:
        """Return all."""
        return tuple(self.known[name] for name in sorted(self.known))

    def set_state(self, name: str, state: str) -> None:
        """Let an enrolment be in a state."""
        self.known[name] = structs.replace(self.known[name], state=EnrolmentState(state))

    async def provision(
        self, name: str, asker: Principal, *, hours: float = 24.0
    ) -> ProvisionedGateway:
        """Make a token."""
        if name in self.known:
            raise DeploymentError(f"gateway {name} has joined already")
        self.asked.append(("provision", name, f"{hours:g}", asker.name))
        self.known[name] = Enrolment(name, EnrolmentState.PROVISIONED, UNSETTLED_SINCE, asker.name)
        return ProvisionedGateway(name, f"pando1.token-of-{name}", UNSETTLED_SINCE)

    async def join(self, request: JoinRequest, address: str) -> JoinAnswer:
        """Take the token `pando1.good` only."""
        self.asked.append(("join", request.token, address))
        if request.token != "pando1.good":
            raise JoinRefusedError("this token is not good", hint="ask for a new one")
        return JoinAnswer("demo", "gw-4", "mqtts://broker.example:8883", "", "", "secret")

    async def revoke(self, name: str, asker: Principal) -> Enrolment:
        """Note it."""
        return self._change(
            "revoke", name, asker, state=EnrolmentState.REVOKED, revoked=UNSETTLED_SINCE
        )

    async def rotate(self, name: str, asker: Principal) -> Enrolment:
        """Note it."""
        return self._change("rotate", name, asker, rotated=UNSETTLED_SINCE)

    async def rename(self, name: str, new: str, asker: Principal) -> Enrolment:
        """Note it."""
        changed = self._change("rename", name, asker, name=new)
        del self.known[name]
        return changed

    async def retire(self, name: str, asker: Principal) -> None:
        """Forget it."""
        self._change("retire", name, asker)
        del self.known[name]

    def _change(self, verb: str, of: str, asker: Principal, **changes: Any) -> Enrolment:
        changed = structs.replace(self.known[of], **changes)
        self.asked.append((verb, of, asker.name))
        self.known[changed.name] = changed
        return changed


class NoGrants(GrantsApi):
    """Without accounts nothing is granted, and there are no quotas."""

    @override
    def grants(self) -> tuple[Grant, ...]:
        return ()

    @override
    def makers(self) -> dict[str, str]:
        return {}

    @override
    def quotas(self, account: str) -> Quotas:
        raise KeyError(account)

    @override
    def usage(self, account: str) -> Usage:
        raise KeyError(account)


class FakeCosts(CostsApi):
    """One constant, refused as the real ones are.

    Attributes:
        set: What was calibrated, by name and place.
        away: Whether the broker is.
    """

    def __init__(self) -> None:
        self.set: dict[tuple[str, str], Measured] = {}
        self.away = False

    @override
    def all(self) -> tuple[CostConstant, ...]:
        return tuple(
            CostConstant(
                name, "words", place, *measured[:3], 2.0, 1_700_000_000_000_000, "calibrated"
            )
            for (name, place), measured in self.set.items()
        )

    @override
    async def calibrate(
        self, values: Mapping[str, Measured], place: str
    ) -> tuple[CostConstant, ...]:
        for name, measured in values.items():
            if reason := refused(name, place, *measured[:3]):
                raise BindingError(reason, code="bad_option")
        self.set.update({(name, place): measured for name, measured in values.items()})
        return self.all()

    @override
    async def forget(self) -> int:
        count = len(self.set)
        self.set.clear()
        return count

    @override
    async def hops(self, rounds: int) -> tuple[float, ...]:
        if self.away:
            raise DeploymentError("the console is not connected to its broker")
        return (0.5,) * rounds


class FakeCoordinator:
    """Binds like the real one; the rows of its queries are what a test pushes.

    Attributes:
        commands: What was sent to sites.
        inserted: Statements that insert rows.
        deleted: Statements that delete rows.
        tried: Commands to try sources, by site; `report` answers them.
        devices: What every trial finds at once; empty: it goes on until `report` ends it.
        offers: What a device offers, beside it.
        answers: Called with a query's text when it starts; gives its first rows.
        status: Of queries that start.
        base: Rows of sources, for questions about rows.
        rows: Answers such questions.
        away: Because of whom rows of alarms are unknown; if nobody, a query has not settled since
            `UNSETTLED_SINCE`.
    """

    def __init__(self, script: str) -> None:
        self.catalog = Catalog(library_views())
        for definition in definitions_of(script):
            self.catalog.define(definition)
        self.running: dict[str, _Running] = {}
        self.listed = 0  # queries that lists were made of
        self.changes = 0
        self.stood: list[tuple[str, QueryStatus]] = []
        self.commands: list[tuple[str, str, dict[str, Value]]] = []
        self.command_answers: dict[str, dict[str, Value]] = {}
        self.inserted: list[str] = []
        self.deleted: list[str] = []
        self.answers: Callable[[str], list[Row]] = lambda _text: []
        self.status = QueryStatus.RUNNING
        self.waiting_for: tuple[str, ...] = ()
        self.started = 0
        self.set_at: dict[str, SiteSettings] = {}
        self.books: dict[str, AlarmBook] = {}
        self.away: tuple[str, ...] = ("gw-2",)
        self.site_infos = tuple(self._site(f"gw-{n}") for n in (1, 2, 3))
        self.base: dict[str, list[Row]] = {}
        self.rows = questions(self.base, self.catalog, self.queries)
        self.trials = SourceTrials(
            self._tried, self.sites, lambda: [d.name for d in self.catalog], OnTheLoop()
        )
        self.tried: list[tuple[str, Command]] = []
        self.noted = Noted()
        self.asked_for: list[Principal] = []
        self.devices: tuple[TrialSample, ...] = ()
        self.offers: tuple[OfferedRecord, ...] = ()
        self.sinks = FakeSinks()
        self.past = FakePast()
        self.lake = FakeLake()
        self.costs = FakeCosts()
        self.nodes = Network(())
        self.index_report = IndexReport(2)
        self.figures: Figures = FakeFigures()

        self.fleet = FakeFleet()

    # --- what tests do -----------------------------------------------------------------------

    def push(self, name: str, *changes: tuple[int, Row]) -> None:
        """Change a query's result."""
        running = self._find(name)
        made = []
        for diff, row in changes:
            weight = running.rows.get(row, 0) + diff
            if weight:
                running.rows[row] = weight
            else:
                del running.rows[row]
            made.append(Change(now(), diff, row, now()))
        running.info = replace(
            running.info,
            rows=len(running.rows),
            changes=running.info.changes + len(made),
            last_change=now(),
        )
        self._deliver(running, ChangeBatch(running.info.id, tuple(made)))

    def raise_alarm(self, name: str, *rows: Row, in_doubt: bool = False) -> None:
        """Say which rows an alarm's query has now, and whether a site is away."""
        self.books[name].meet(dict.fromkeys(rows, 1), now(), in_doubt=in_doubt)

    def decide_alarm(self, name: str, *rows: Row) -> None:
        """Say which rows an alarm's query has now that all its sites are back."""
        self.books[name].decide(dict.fromkeys(rows, 1), now())

    def set_status(self, name: str, status: QueryStatus, error: str = "", *wait: str) -> None:
        """Change where a query stands."""
        running = self._find(name)
        running.info = replace(running.info, status=status, error=error, waiting_for=wait)
        self._deliver(running, ChangeBatch(running.info.id, (), status=status, error=error))

    def set_warnings(self, name: str, *warnings: str) -> None:
        """Change what a query warns of."""
        running = self._find(name)
        running.info = replace(running.info, warnings=warnings)

    def set_site(self, name: str, freshness: str) -> None:
        """Change how fresh a gateway is."""
        is_live = freshness == "live"
        since = None if is_live else now()
        self.site_infos = tuple(
            replace(s, freshness=Freshness(freshness), online=is_live, figures_since=since)
            if s.site == name
            else s
            for s in self.site_infos
        )

    def report(self, *samples: TrialSample, number: int = 0, **more: Any) -> None:
        """Say what the trial that was begun last has found."""
        trial = next(c.id for _, c in reversed(self.tried) if TRIAL in c.arguments)
        self.trials.heard(trial, TrialReport(trial, number, samples, **more))

    # --- CoordinatorApi ----------------------------------------------------------------------

    def on_behalf(self, principal: Principal) -> "FakeCoordinator":
        """Everybody may do everything here."""
        self.asked_for.append(principal)
        return self

    def follow_accounts(self, account_of: Callable[[str], Account | None]) -> None:
        """Take note of accounts."""

    @property
    def grants(self) -> GrantsApi:
        """Nobody is granted anything."""
        return NoGrants()

    @property
    def audit(self) -> Audit:
        """The list."""
        return self.noted

    async def execute(
        self,
        text: str,
        *,
        name: str = "",
        origin: Origin = Origin.USER,
        principal: Principal | None = None,  # noqa: ARG002
    ) -> tuple[StatementResult, ...]:
        """Run a script."""
        return await carry_out(text, lambda s: self._run_one(s, name, origin), OnTheLoop())

    async def validate(
        self,
        text: str,
        *,
        principal: Principal | None = None,  # noqa: ARG002
    ) -> Validation:
        """Check a text."""
        return validate(text, self.catalog)

    async def shapes(
        self,
        names: Sequence[str],
        *,
        principal: Principal | None = None,  # noqa: ARG002
    ) -> dict[str, Validation]:
        """Check that names can be read."""
        return {name: validate(select_all(name), self.catalog) for name in names}

    def queries(self, origin: Origin | None = None, wanted: Wanted = ALL) -> tuple[QueryInfo, ...]:
        """List queries."""
        infos = [running.info for running in self.running.values()]
        self.listed += len(infos)
        words = wanted.words.lower().split()
        asked = [
            info
            for info in infos
            if origin in {None, info.origin}
            and (wanted.shows is None or wanted.shows(info.schema))
            and wanted.reads.lower() in info.text.lower()
            and all(word in f"{info.id} {info.name} {info.text}".lower() for word in words)
        ]
        return tuple(asked if wanted.most is None else asked[max(len(asked) - wanted.most, 0) :])

    def query_changes(self) -> int:
        """Return another number whenever a query is another one, or stands otherwise."""
        now = [(running.info.id, running.info.status) for running in self.running.values()]
        self.changes += now != self.stood
        self.stood = now
        return self.changes

    def query(self, query_id: str) -> QueryInfo:
        """Find a query."""
        return self._find(query_id).info

    def keep(self, query_id: str) -> QueryInfo:
        """Find a query; here they stay anyway."""
        return self.query(query_id)

    def explain(self, query_id: str) -> StatementResult:
        """Explain a query."""
        info = self.query(query_id)
        return StatementResult(ResultKind.TEXT, text=f"Fragment of {info.id}", data={"f": [1]})

    async def explained(
        self, query_id: str, form: ExplainFormat = ExplainFormat.TEXT
    ) -> StatementResult:
        """Explain a query, as the console asks for it."""
        if form == ExplainFormat.DOT:
            return StatementResult(ResultKind.TEXT, text=f"digraph {query_id} {{}}")
        return self.explain(query_id)

    async def stop(self, query_id: str) -> QueryInfo:
        """Stop a query."""
        running = self._find(query_id)
        del self.running[running.info.id]
        last = ChangeBatch(running.info.id, (), status=QueryStatus.STOPPED)
        for reader in tuple(running.readers):
            reader.end(last)
        return replace(running.info, status=QueryStatus.STOPPED)

    def relation(self, query_id: str) -> tuple[Row, ...]:
        """Return the rows."""
        return tuple(self._find(query_id).rows)

    def subscribe(
        self, query_id: str, *, snapshot: bool = True, progress: bool = False
    ) -> ResultSubscription:
        """Read changes."""
        running = self._find(query_id)

        def whole() -> ChangeBatch:
            changes = tuple(Change(now(), weight, row) for row, weight in running.rows.items())
            return ChangeBatch(running.info.id, changes, snapshot=True)

        reader = ResultSubscription(
            whole, running.readers.discard, max_behind=1000, begin_with_snapshot=snapshot
        )
        reader.progress = progress
        running.readers.add(reader)
        return reader

    def alarms(self) -> tuple[AlarmInfo, ...]:
        """List alarms; their rows are what `raise_alarm` said."""
        return tuple(
            replace(
                alarm_info(book, bind_query(query_of(book.definition.query), self.catalog).schema),
                query="q0",
                status="running",
                away=self.away if book.has_unknown else (),
                unsettled_since=UNSETTLED_SINCE if book.has_unknown and not self.away else None,
            )
            for book in self.books.values()
        )

    def acknowledge(self, number: int) -> AlarmRow:
        """Note that somebody has seen a row."""
        for book in self.books.values():
            with contextlib.suppress(KeyError):
                return book.acknowledge(number, now())
        raise KeyError(number)

    def acknowledge_all(self, alarm: str) -> int:
        """Note that somebody has seen all rows of an alarm."""
        return self.books[alarm].acknowledge_all(now())

    def network(self, most: int = MOST_NODES) -> Network:
        """Return the nodes that a test has set."""
        found = self.nodes
        unlisted = found.unlisted + len(found.nodes[most:])
        return replace(found, nodes=found.nodes[:most], unlisted=unlisted)

    async def check_network(self, *, rebuild: bool = False) -> IndexReport:
        """Return what a test has set; rebuilding it finds the same once more."""
        return replace(self.index_report, rebuilt=rebuild)

    def sites(self) -> tuple[SiteInfo, ...]:
        """List sites."""
        return self.site_infos

    def site_settings(self, site: str) -> SiteSettings:
        """Return what is set at a gateway."""
        if all(info.site != site for info in self.site_infos):
            raise KeyError(site)
        return self.set_at.get(site, SiteSettings())

    async def change_site(self, site: str, changes: Mapping[str, Value]) -> SiteSettings:
        """Set something at a gateway."""
        self.set_at[site] = changed(self.site_settings(site), changes)
        return self.set_at[site]

    async def remove_gateway(self, site: str) -> None:
        """Remove a gateway that is offline."""
        info = next((info for info in self.site_infos if info.site == site), None)
        if info is None:
            raise KeyError(site)
        if info.online:
            raise BindingError(f"gateway {site} is online", hint="stop it first")
        self.site_infos = tuple(other for other in self.site_infos if other is not info)

    def definitions(self) -> tuple[Definition, ...]:
        """List definitions."""
        return tuple(self.catalog)

    def links(self) -> tuple[tuple[str, str, float | None, str, str], ...]:
        """List links."""
        return (("m-1", "m-2", 1.25, "link", "gw-1"), ("m-2", "m-1", None, "link", "gw-1"))

    def command(self, site: str, verb: str, arguments: dict[str, Value]) -> None:
        """Take note of a command."""
        if not any(info.site == site and info.online for info in self.site_infos):
            raise DeploymentError(f"site {site} is not online")
        self.commands.append((site, verb, arguments))

    async def answer_of(
        self, site: str, verb: str, arguments: dict[str, Value]
    ) -> dict[str, Value]:
        """Take note of a command that a gateway carries out."""
        self.command(site, verb, arguments)
        return self.command_answers.get(site, {"done": True, "message": "", "readings": 100})

    # --- inside ------------------------------------------------------------------------------

    def _tried(self, site: str, verb: str, command: Command) -> None:
        assert verb == SAMPLE
        self.tried.append((site, command))
        if TRIAL in command.arguments and self.devices:
            sent = self.devices
            asyncio.get_running_loop().call_soon(
                lambda: self.report(*sent, offers=self.offers, done=True)
            )

    async def _run_one(self, statement: Statement, name: str, origin: Origin) -> StatementResult:
        if isinstance(statement, Question):
            return await self.rows.answer(statement)
        return self._run(statement, name, origin)

    def _run(self, statement: Statement, name: str, origin: Origin) -> StatementResult:
        match statement:
            case Query() | Subscribe():
                return self._start(statement, name, origin)
            case CreateSource() | CreateView() | CreateDisplay() | CreateAlarm() | CreateSink():
                definition = self._define(statement)
                self.catalog.define(definition, replace=True)
                if isinstance(definition, AlarmDefinition):
                    numbers = itertools.count(1 + 100 * len(self.books))
                    self.books[definition.name] = AlarmBook(definition, lambda: next(numbers))
                return StatementResult(ResultKind.DONE, f"{statement.name.text} created")
            case Drop():
                self.catalog.drop(statement.name.text)
                return StatementResult(ResultKind.DONE, f"{statement.name.text} dropped")
            case Insert():
                self.inserted.append(statement.text)
                return StatementResult(ResultKind.DONE, "inserted")
            case Delete():
                self.deleted.append(statement.text)
                return StatementResult(ResultKind.DONE, "1 deleted")
            case Refresh():
                if statement.name.text != "leases":
                    raise UnsupportedError("not here", span=statement.span)
                return StatementResult(ResultKind.DONE, "leases is read again")
            case Explain():
                if isinstance(statement.inner, Query):
                    bind_query(statement.inner, self.catalog)
                    if statement.format == ExplainFormat.JSON:
                        return explained(statement, self.catalog, LocalPlanner(self.catalog, 2), ())
                return StatementResult(ResultKind.TEXT, text="Fragment f0 [BASE: base] -> result")
            case Show(kind="sources"):
                sources = [d for d in self.catalog if isinstance(d, SourceDefinition)]
                rows = tuple(source_row(source, self.sites()) for source in sources)
                return StatementResult(ResultKind.ROWS, columns=SOURCE_COLUMNS, rows=rows)
            case Show():
                rows = tuple((d.name,) for d in self.catalog)
                return StatementResult(ResultKind.ROWS, columns=("name",), rows=rows)
            case _:
                raise UnsupportedError("not here", span=statement.span)

    def _start(self, statement: Query | Subscribe, name: str, origin: Origin) -> StatementResult:
        query = statement.inner if isinstance(statement, Subscribe) else statement
        bound = bind_query(query, self.catalog)
        existing = next(
            (r.info for r in self.running.values() if name and r.info.name == name), None
        )
        if existing is not None:
            if existing.text != statement.text:
                raise BindingError(f"query {name!r} already exists")
            return StatementResult(ResultKind.QUERY, "already runs", query=existing)
        self.started += 1
        presentation = presentation_of(statement, bound.schema)
        info = QueryInfo(
            f"q{self.started}",
            name or f"q{self.started}",
            statement.text,
            self.status,
            bound.schema,
            origin=origin,
            created=now(),
            waiting_for=self.waiting_for,
            settled=True,
            display=presentation.display,
            snapshot=presentation.snapshot,
            progress=presentation.progress,
            key=presentation.key,
            run=f"q{self.started}",
        )
        self.running[info.id] = _Running(info)
        for row in self.answers(statement.text):
            self.push(info.id, (1, row))
        return StatementResult(ResultKind.QUERY, "started", query=self.query(info.id))

    def _define(self, statement: Statement) -> Definition:
        assert isinstance(
            statement, CreateSource | CreateView | CreateDisplay | CreateAlarm | CreateSink
        )
        return define(statement, self.catalog)

    def _find(self, query_id: str) -> _Running:
        for running in self.running.values():
            if query_id in (running.info.id, running.info.name):
                return running
        raise KeyError(query_id)

    def _deliver(self, running: _Running, batch: ChangeBatch) -> None:
        for reader in tuple(running.readers):
            reader.deliver(batch)

    def _site(self, name: str) -> SiteInfo:
        connector = ConnectorState(
            name="motes",
            kind="motes",
            streams=("seatsensor",),
            readings=7,
            errors=1,
            last_error="odd",
            note="the replay is over",
        )
        state = SiteState(
            online=True,
            epoch=1,
            ts=now(),
            role=SiteRole.GATEWAY,
            buffer=BufferState(stored=3, bytes=120, dropped=0, hours_left=5.0),
            endpoints=(
                EndpointState("home", "mqtt", listens=True),
                EndpointState("meter", "modbus"),
                EndpointState("press", "opcua", browses=True),
            ),
        )
        return SiteInfo(
            name,
            SiteRole.GATEWAY,
            online=True,
            freshness=Freshness.LIVE,
            epoch=1,
            since=now(),
            rooms=("L101",),
            sensors=12,
            connectors=(connector,),
            state=state,
            figures=state,
        )


class Console:
    """The application served on a port of its own, in a thread of its own.

    Attributes:
        address: http://127.0.0.1:port
    """

    def __init__(
        self,
        coordinator: FakeCoordinator,
        settings: ConsoleSettings,
        people: People | None = None,
    ) -> None:
        self.coordinator = coordinator
        self._settings = settings
        self.people = people
        self._open(0)

    def _open(self, port: int) -> None:
        listener = socket.socket(proto=socket.IPPROTO_TCP)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as `python -m ui` does
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        self.port = listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._listener = listener
        self.app = create_app(self.coordinator, self._settings, self.people)
        config = uvicorn.Config(self.app, log_level="warning", timeout_graceful_shutdown=2)
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        """Serve, and wait until it answers."""
        self._thread.start()
        wait_for(lambda: self._server.started, "the console answers")
        if self.people is not None:
            self.run(self.people.begin())

    def stop(self) -> None:
        """End streams, stop serving."""
        if self.people is not None:
            self.run(self.people.close())
        self.do(self.app.state.closing.set)
        self._server.should_exit = True
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    def start_again(self) -> None:
        """Serve once more on the same port, after `stop`."""
        self._open(self.port)
        self.start()

    def do(self, action: Callable[[], Any]) -> Any:
        """Run something on the server's event loop and return what it gives."""
        assert self._loop is not None

        async def run() -> Any:
            return action()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(SECONDS)

    def run(self, job: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the server's event loop and return what it gives."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(job, self._loop).result(SECONDS)

    def push(self, name: str, *changes: tuple[int, Row]) -> None:
        """Change a query's result; waits until the query is there."""
        wait_for(lambda: self.do(lambda: self._known(name)), f"query {name}")
        self.do(lambda: self.coordinator.push(name, *changes))

    def _known(self, name: str) -> bool:
        return any(name in (q.name, q.id) for q in self.coordinator.queries())

    def _serve(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._listener])
            await loop_turns()  # transports close their sockets a turn later

        asyncio.run(serve())


@pytest.fixture(scope="session")
def site_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The map of the sample building."""
    folder = tmp_path_factory.mktemp("site")
    return provision(sample_building(), folder, gateways=3, host="here").site


@pytest.fixture(scope="session")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory for all consoles, so that each map is drawn once."""
    return tmp_path_factory.mktemp("drawings")


@pytest.fixture
def settings(site_file: Path, drawings: Path) -> ConsoleSettings:
    """Settings of a console with the sample building."""
    return ConsoleSettings(broker="", data_dir=str(drawings), site_file=str(site_file))


@pytest.fixture
def coordinator() -> FakeCoordinator:
    """A coordinator that knows a building's relations."""
    return FakeCoordinator((SCHEMA / "building.sql").read_text(encoding="utf-8"))


@pytest.fixture
def site(site_file: Path) -> SiteMap:
    """The ids of the sample building."""
    return site_map(read_site(site_file))


@pytest.fixture
def serve() -> Iterator[Callable[[FakeCoordinator, ConsoleSettings], Console]]:
    """Serves consoles with other settings."""
    served: list[Console] = []

    def start(coordinator: FakeCoordinator, settings: ConsoleSettings) -> Console:
        served.append(Console(coordinator, settings))
        served[-1].start()
        return served[-1]

    yield start
    for console in served:
        console.stop()


@pytest.fixture
def console(coordinator: FakeCoordinator, settings: ConsoleSettings) -> Iterator[Console]:
    """A console on a port."""
    made = Console(coordinator, settings)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(console: Console) -> Iterator[httpx.Client]:
    """Requests to the console."""
    with httpx.Client(base_url=console.address, timeout=30, trust_env=False) as made:
        yield made


@pytest.fixture
def trace_console(tmp_path: Path) -> Iterator[Console]:
    """A console with a network of four nodes instead of a building."""
    features = [
        {
            "type": "Feature",
            "id": node,
            "geometry": {"type": "Point", "coordinates": place},
            "properties": {
                "feature_type": "mote",
                "id": node,
                "level": 0,
                "room": None,
                "gateway": "gw-1",
            },
        }
        for node, place in {"0": [0, 0], "1": [10, 5], "2": [20, 0], "10": [30, 8]}.items()
    ]
    pando = {
        "name": "four",
        "levels": [{"ordinal": 0, "name": "Testbed"}],
        "bounds": [[0, 0], [30, 10]],
        "origin": None,
    }
    path = tmp_path / "site.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "pando": pando, "features": features}))
    settings = ConsoleSettings(
        broker="", data_dir=str(tmp_path), site_file=str(path), layers="trace"
    )
    fake = FakeCoordinator((SCHEMA / "trace.sql").read_text(encoding="utf-8"))
    made = Console(fake, settings)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def events() -> type[Events]:
    """Opens event streams."""
    return Events


@pytest.fixture
def addresses() -> Callable[[str], list[str]]:
    """Finds what a text refers to on other hosts."""

    def find(text: str) -> list[str]:
        known = ("www.w3.org", "127.0.0.1", "localhost")
        found = re.findall(
            r"(?:https?:)?//([a-z0-9-]+(?:\.[a-z0-9-]+)+)[/\"')]", text, re.IGNORECASE
        )
        return [host for host in found if host not in known]

    return find


# --- a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One headless Chromium for a module's tests.

    Not for the session: Playwright keeps an event loop running in this thread, and the tests of
    other modules run their own.
    """
    with headless_browser() as browser:
        yield browser


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page in a profile of its own."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(SECONDS * 1000)
    yield context.new_page()
    context.close()


@pytest.fixture
def problems(page: Page) -> list[str]:
    """What goes wrong in a page; ask for it before the page is opened."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda said: found.append(said.text) if said.type == "error" else None)
    return found


@pytest.fixture
def requests(page: Page) -> list[str]:
    """What a page fetches; ask for it before the page is opened."""
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url))
    return found


@pytest.fixture(name="expect")
def patient_expect() -> Any:
    """Playwright's assertions, as patient as everything here."""
    expect.set_options(timeout=SECONDS * 1000)
    return expect


@pytest.fixture(name="wait_for")
def waiting() -> Callable[..., Any]:
    """Waits until something is true."""
    return wait_for


@pytest.fixture
def starting() -> QueryStatus:
    """The status of a query that waits."""
    return QueryStatus.STARTING
