"""The interface the console codes to."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from federated_optimizer.alarm_life_cycle import AlarmRow
from federated_optimizer.coordinator.contract.audit_model import Audit
from federated_optimizer.coordinator.contract.coordinator_model import (
    ALL,
    AlarmInfo,
    ChangeBatch,
    Origin,
    QueryInfo,
    SiteInfo,
    StatementResult,
    Validation,
    Wanted,
)
from federated_optimizer.coordinator.contract.cost_model import CostsApi
from federated_optimizer.coordinator.contract.fleet_model import FleetApi
from federated_optimizer.coordinator.contract.grant_model import GrantsApi
from federated_optimizer.coordinator.contract.history_model import HistoryTrialsApi
from federated_optimizer.coordinator.contract.lake_model import LakeApi
from federated_optimizer.coordinator.contract.network_model import NetworkApi
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.contract.sink_model import SinkApi
from federated_optimizer.coordinator.contract.trial_model import TrialsApi
from host.metrics.families import Sample
from streamsql.catalog.definitions import Definition
from streamsql.data.types import Row, Value
from streamsql.syntax.explain_options import ExplainFormat
from streamsql.wire.site_settings import SiteSettings


class Subscription(Protocol):
    """A reader of a query's changes; iterate, then close.

    Bounded: a reader that falls too far behind gets a fresh snapshot batch instead of the changes
    it missed.
    """

    def __aiter__(self) -> AsyncIterator[ChangeBatch]:
        """Yield a snapshot first, then changes, until the query ends."""
        ...

    async def close(self) -> None:
        """Stop reading; ends a query of origin "session" when it was the last reader."""
        ...


class RowQuestions(Protocol):
    """Why a row is there, and what a deletion would do; the running queries are not touched.

    Answers are of kind TEXT, with `data` as well (`coordinator/explaining/explanation_text.py`).
    """

    async def why_row(
        self, query_id: str, values: Sequence[object], *, limit: int = 10, confidence: str = ""
    ) -> StatementResult:
        """Return what a row of a running query rests on.

        Args:
            query_id: Id or name.
            values: The row, a value per column.
            limit: Most combinations of base rows to list.
            confidence: Column with probabilities of base rows, such as "link.pdr", or empty.

        Raises:
            KeyError: There is no such query.
            FederationError: The question is wrong, base rows do not come, or it takes too much
                work.
        """
        ...

    async def confidence_of_rows(
        self, query_id: str, column: str, *, limit: int | None = None
    ) -> StatementResult:
        """Return how probable the rows of a running query are.

        Args:
            query_id: Id or name.
            column: With probabilities of base rows, such as "link.pdr".
            limit: Most rows to look at.

        Raises:
            KeyError: There is no such query.
            FederationError: The question is wrong, base rows do not come, or it takes too much
                work.
        """
        ...

    async def what_if_deleted(
        self,
        deletions: Sequence[tuple[str, Sequence[object]]],
        *,
        gateways: Sequence[str] = (),
        nodes: Sequence[str | int] = (),
        query_id: str | None = None,
    ) -> StatementResult:
        """Return what would become of a running query, or of all, without base rows.

        Args:
            deletions: Names of sources or tables with values of their key or first columns: all
                such rows are meant.
            gateways: Ids of gateways: all base rows that they own are meant.
            nodes: Rows of streams and links that have one of them in their key are meant.
            query_id: Id or name; None for all of users, alarms and the map that read a source.

        Raises:
            KeyError: There is no such query.
            FederationError: The question is wrong, base rows do not come, or it takes too much
                work.
        """
        ...


class Figures(Protocol):
    """Figures of the coordinator's process for Prometheus, and its health."""

    def samples(self) -> Iterable[Sample]:
        """Return the figures of now, the broker's too."""
        ...

    def problem(self) -> str:
        """Return why the coordinator does not do its work, or empty."""
        ...


class UnknownQueryError(KeyError):
    """No query of a name runs.

    Attributes:
        why: Why it no longer does, in a sentence, where that is known.
    """

    def __init__(self, name: str, why: str = "") -> None:
        super().__init__(name)
        self.why = why


class CoordinatorApi(NetworkApi, Protocol):
    """Everything console, map, REST API and command line use.

    Attributes:
        figures: Of the coordinator itself.
    """

    figures: Figures

    @property
    def rows(self) -> RowQuestions:
        """Answers questions about rows of results."""
        ...

    @property
    def trials(self) -> TrialsApi:
        """Tries sources at gateways."""
        ...

    @property
    def past(self) -> HistoryTrialsApi:
        """Trials of queries on the past."""
        ...

    @property
    def lake(self) -> LakeApi:
        """Readings that are kept, and care of them."""
        ...

    @property
    def costs(self) -> CostsApi:
        """Constants of the optimizer."""
        ...

    @property
    def sinks(self) -> SinkApi:
        """Answers that leave the federation."""
        ...

    def on_behalf(self, principal: Principal) -> "CoordinatorApi":
        """Return the coordinator as somebody may use it; all of it refuses what they may not.

        Refusals are errors with the code `not_allowed`.
        """
        ...

    def follow_accounts(self, account_of: Callable[[str], Account | None]) -> None:
        """Ask for the accounts that grants, views and queries belong to from now on.

        Until then nothing is stopped because an account is not there.

        Args:
            account_of: Returns an account by its name, or None.
        """
        ...

    @property
    def grants(self) -> GrantsApi:
        """Rights to read, and quotas."""
        ...

    @property
    def audit(self) -> Audit:
        """The book of who did what when."""
        ...

    @property
    def fleet(self) -> FleetApi:
        """Gateways that administrators enrol."""
        ...

    async def execute(
        self,
        text: str,
        *,
        name: str = "",
        origin: Origin = Origin.USER,
        principal: Principal | None = None,
    ) -> tuple[StatementResult, ...]:
        """Run a script; a SELECT or SUBSCRIBE starts a continuous query.

        Args:
            text: The script.
            name: Of the query that it starts.
            origin: Of that query.
            principal: Who asks; without it whoever the coordinator speaks for.

        Raises:
            FederationError: The first statement that fails; earlier ones stay done.
        """
        ...

    async def validate(self, text: str, *, principal: Principal | None = None) -> Validation:
        """Parse and bind without running anything."""
        ...

    async def shapes(
        self, names: Sequence[str], *, principal: Principal | None = None
    ) -> dict[str, Validation]:
        """Return the columns of sources, tables and views by name, where they bind."""
        ...

    def queries(self, origin: Origin | None = None, wanted: Wanted = ALL) -> tuple[QueryInfo, ...]:
        """Return all queries, or those that are asked for, newest last."""
        ...

    def query(self, query_id: str) -> QueryInfo:
        """Return a query by id or name.

        Raises:
            KeyError: There is none.
        """
        ...

    def keep(self, query_id: str) -> QueryInfo:
        """Return a query that somebody is about to read; a session query waits for them anew.

        Raises:
            KeyError: There is none.
        """
        ...

    def explain(self, query_id: str) -> StatementResult:
        """Return the fragments of a running query as text and data, with live row counts.

        The caller waits meanwhile; see `explained`.
        """
        ...

    async def explained(
        self, query_id: str, form: ExplainFormat = ExplainFormat.TEXT
    ) -> StatementResult:
        """Return what `explain` does, and the plans that were not taken.

        It is made beside the event loop and charged as planning.

        Args:
            query_id: Of a running query.
            form: As a graph, there is no data.

        Raises:
            KeyError: There is no such query.
            QueryError: Its text does not hold any more for the present catalog.
            FederationError: It took too long, or the account has used its time.
        """
        ...

    async def stop(self, query_id: str) -> QueryInfo:
        """Stop and discard a query.

        Raises:
            KeyError: There is none.
        """
        ...

    def relation(self, query_id: str) -> tuple[Row, ...]:
        """Return the current rows of a query's result, sorted.

        Raises:
            KeyError: There is none.
        """
        ...

    def subscribe(
        self, query_id: str, *, snapshot: bool = True, progress: bool = False
    ) -> Subscription:
        """Start reading a query's changes.

        Args:
            query_id: Id or name.
            snapshot: Begin with the rows there are.
            progress: Tell up to when the answer is complete, now and then.

        Raises:
            KeyError: There is none.
        """
        ...

    def sites(self) -> tuple[SiteInfo, ...]:
        """Return gateways, base sites and the static engine as last heard of."""
        ...

    def site_settings(self, site: str) -> SiteSettings:
        """Return what is set at an engine site; where nothing is, what it says it uses.

        Raises:
            KeyError: There is no such engine site.
        """
        ...

    async def change_site(self, site: str, changes: Mapping[str, Value]) -> SiteSettings:
        """Set something at an engine site while it runs; what is not named stays.

        Raises:
            KeyError: There is no such engine site.
            BindingError: A name or a value is wrong.
        """
        ...

    async def remove_gateway(self, site: str) -> None:
        """Remove a gateway that will not come back: nobody plans with it or waits for it.

        Raises:
            KeyError: There is no such site.
            BindingError: It is no gateway, or it is online.
        """
        ...

    def definitions(self) -> tuple[Definition, ...]:
        """Return all sources, tables and views."""
        ...

    def alarms(self) -> tuple[AlarmInfo, ...]:
        """Return all alarms with their rows, in the order they were made."""
        ...

    def acknowledge(self, number: int) -> AlarmRow:
        """Note that somebody has seen a row that raised an alarm, cleared or not.

        Raises:
            KeyError: No row of this number has been raised.
        """
        ...

    def acknowledge_all(self, alarm: str) -> int:
        """Note that somebody has seen all rows of an alarm; return how many are new.

        Raises:
            KeyError: There is no such alarm.
        """
        ...

    def links(self) -> tuple[tuple[str, str, float | None, str, str], ...]:
        """Return the current links that gateways have published, sorted.

        All callers get the same tuple until a link changes. Each is (source, target, cost, link
        source, gateway); its cost is None if it has none.
        """
        ...

    def command(self, site: str, verb: str, arguments: dict[str, Value]) -> None:
        """Send a command to a site, e.g. simulate; nobody answers here.

        Raises:
            DeploymentError: The site is not online, or not heard from since the broker was away.
        """
        ...

    async def answer_of(
        self, site: str, verb: str, arguments: dict[str, Value]
    ) -> dict[str, Value]:
        """Send a command to a gateway and return what it answers.

        Raises:
            DeploymentError: The gateway is not online, or does not answer in time.
        """
        ...
