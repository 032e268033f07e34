"""Queries that are started, redeployed and stopped, in the catalog and at the sites."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import sqlalchemy as sa

from federated_optimizer.coordinator.contract.coordinator_model import (
    ACTING,
    Origin,
    ResultKind,
    StatementResult,
)
from federated_optimizer.coordinator.contract.presentation import check_room_on
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.grants.query_rights import (
    maker_of,
    queries_of,
    refuse_reads,
)
from federated_optimizer.coordinator.queries.planned_queries import Planned
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.runs.network_nodes import stored_node
from federated_optimizer.coordinator.queries.runs.new_nodes import Deployable, NewNodes
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.statements.feeding import Feeding, loses_results
from federated_optimizer.coordinator.statements.preparation import Preparation, Prepared
from federated_optimizer.coordinator.statements.shared_commits import SharedCommits
from federated_optimizer.coordinator.store.grant_store import (
    MadeKind,
    Maker,
    write_maker,
)
from federated_optimizer.coordinator.store.pending_writes import PendingWrite
from federated_optimizer.coordinator.store.stored_runs import RunChanges, StoredQuery, write_runs
from streamsql.errors import BindingError, DeploymentError, FederationError
from streamsql.syntax import Query, Subscribe, parse_statement
from streamsql.syntax.statements import Statement
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.topics import check_id

ORIGINS = (Origin.USER, Origin.MAP, Origin.SESSION)

MOST_PLANNED = 3
"""Times that a new query is planned, where what it reads gets other plans meanwhile."""


class QueryStatements:
    """Starts and stops queries. One at a time."""

    def __init__(self, shared: SharedParts, queries: Queries, preparation: Preparation) -> None:
        self._shared = shared
        self._queries = queries
        self._preparation = preparation
        self._feeding = Feeding(shared, queries, self.redeploy)
        self._commits = SharedCommits(shared.store)
        self._unstored: dict[str, PendingWrite] = {}

    async def start(
        self,
        statement: Query | Subscribe,
        *,
        name: str,
        origin: Origin,
        principal: Principal = LOCAL,
        prepared: Prepared | None = None,
    ) -> StatementResult:
        """Start a continuous query; one of the same name and text is returned as it runs.

        Before anybody is told call `ensure_stored`, after this turn.
        """
        if origin not in ORIGINS:
            raise BindingError(
                f"origin {origin!r} is not one of {', '.join(ORIGINS)}", code="bad_option"
            )
        running = self._of_same_name(statement, name)
        if running is not None:
            refuse_reads(self._shared.rights, principal, running)
            return self._query_result(running, f"query {running.name} already runs")
        running = await self.begin(statement, name, origin, prepared, principal)
        return self._query_result(running, f"query {running.name} started")

    async def start_reading(self, text: str) -> RunningQuery:
        """Start a session query over a leaf whose rows come from the sites that have them."""
        statement = parse_statement(text)
        assert isinstance(statement, Query)  # noqa: S101  (our own text)
        async with self._shared.changing():
            prepared = await self._preparation.query(statement, gathered=False)
            return await self.deploy(statement, "", Origin.SESSION, prepared)

    async def stop_reading(self, query: RunningQuery) -> None:
        """Stop what `start_reading` has started, unless it is stopped."""
        async with self._shared.changing():
            if query.id in self._queries:
                await self.stop(query)

    async def stop_unread(self) -> None:
        """Stop the session queries that nobody reads any more."""
        async with self._shared.changing():
            for query in self._queries.unread.abandoned(self._queries.all(Origin.SESSION)):
                await self.stop(query)

    async def deploy(
        self,
        statement: Query | Subscribe,
        name: str,
        origin: Origin,
        prepared: Prepared | None,
        principal: Principal = LOCAL,
    ) -> RunningQuery:
        """Store and deploy a query; see `begin`."""
        return await self._stored(await self.begin(statement, name, origin, prepared, principal))

    async def begin(
        self,
        statement: Query | Subscribe,
        name: str,
        origin: Origin,
        prepared: Prepared | None,
        principal: Principal = LOCAL,
    ) -> RunningQuery:
        """Deploy a query and have it stored; it is planned again if definitions have changed.

        It is stored when `ensure_stored` returns.
        """
        if prepared is None or not self._preparation.is_current(prepared):
            prepared = await self._preparation.query(
                statement, principal, whole_changes=origin in ACTING
            )
        check_room_on(statement, len(self.shown_on(prepared.display)))
        self._queries.check_room()
        self._check_quota(principal)
        prepared, found = await self._deployable(statement, prepared, principal, origin)
        planned = prepared.planned
        query_id, bundle = found.query, found.bundle
        # Its copy of what it reads may be planned for other sites than there are by now.
        is_read = bundle.query != query_id or not loses_results(planned.bundle, bundle.feeds)
        may_be_read = prepared.gathered and not planned.alone
        stored = StoredQuery(
            *(query_id, name or query_id, statement.text, origin, self._shared.clock(), bundle),
            logical=planned.logical if may_be_read else None,
        )
        maker = maker_of(principal, stored.created)
        self._shared.rights.made((MadeKind.QUERY, query_id), maker)
        try:
            self._queries.deploy_nodes(found.nodes)
            running = self._queries.start(
                replace(planned, bundle=bundle),
                id=query_id,
                text=statement.text,
                name=stored.name,
                origin=origin,
                created=stored.created,
                gathered=prepared.gathered,
                is_current=is_read and self._preparation.is_current(prepared),
                presentation=prepared.presentation,
            )
        except FederationError:
            self._shared.rights.made((MadeKind.QUERY, query_id), None)
            raise
        queries = () if origin == Origin.SESSION else (stored,)
        changes = RunChanges(queries=queries, nodes=found.nodes, are_new=True)
        if changes:
            self._unstored[query_id] = self._shared.store.pending.add(
                partial(self._write, changes, maker)
            )
        return running

    async def _deployable(
        self, statement: Query | Subscribe, prepared: Prepared, principal: Principal, origin: Origin
    ) -> tuple[Prepared, Deployable]:
        """Return a query and what is deployed of it; planned anew if what it reads has changed."""
        new = NewNodes(self._queries.runs, self._next_run, self._shared.clock)
        found = await new.deployable(prepared.planned)
        for _ in range(MOST_PLANNED):
            is_equal = found.bundle.query != found.query
            if is_equal or not loses_results(prepared.planned.bundle, found.bundle.feeds):
                break
            prepared = await self._preparation.query(
                statement, principal, gathered=prepared.gathered, whole_changes=origin in ACTING
            )
            found = await new.deployable(prepared.planned)
        return prepared, found

    async def _next_run(self) -> str:
        store = self._shared.store
        number = store.numbers.take_reserved()
        if number is None:
            number = await asyncio.to_thread(store.next_query_number)
        return f"q{number}"

    def _check_quota(self, principal: Principal) -> None:
        """Refuse one query too many of somebody.

        Raises:
            FederationError: As many run as may.
        """
        if self._shared.quotas.of(principal).max_queries is not None:
            mine = queries_of(self._shared.rights, principal, self._queries.all())
            self._shared.quotas.check_queries(principal, len(mine))

    def _write(self, changes: RunChanges, maker: Maker | None, connection: sa.Connection) -> None:
        write_runs(connection, changes)
        for stored in changes.queries if maker is not None else ():
            write_maker(connection, (MadeKind.QUERY, stored.id), maker)

    def _drop(self, changes: RunChanges) -> None:
        # Their makers go in the same transaction, else a crash would leave these for ever.
        with self._shared.store.writing() as connection:
            write_runs(connection, changes)
            for query_id in changes.dropped:
                write_maker(connection, (MadeKind.QUERY, query_id), None)

    async def ensure_stored(self, query_id: str) -> None:
        """Return once a query that was started is in the catalog.

        It runs already: until the commit only sites and others who watch know of it. Others take
        their turns meanwhile, so that one commit is for several; nobody may hold the lock, then.

        Raises:
            DeploymentError: The catalog cannot be written; the query has been stopped.
        """
        pending = self._unstored.get(query_id)
        if pending is None:
            return
        try:
            await self._commits.ensure(pending)
        except DeploymentError:
            async with self._shared.lock:
                self._withdraw(query_id)
            raise
        self._unstored.pop(query_id, None)

    async def _stored(self, query: RunningQuery) -> RunningQuery:
        """Return a query that is in the catalog, within the turn in which it was started.

        Raises:
            DeploymentError: The catalog cannot be written; the query has been stopped.
        """
        pending = self._unstored.get(query.id)
        try:
            if pending is not None:
                await self._commits.ensure(pending)
        except DeploymentError:
            self._withdraw(query.id)
            raise
        self._unstored.pop(query.id, None)
        return query

    def _withdraw(self, query_id: str) -> None:
        """Stop a query that could not be stored."""
        self._unstored.pop(query_id, None)
        query = self._queries.known(query_id)
        if query is not None:
            self._queries.stop(query)
        self._shared.rights.made((MadeKind.QUERY, query_id), None)

    async def _store_rest(self) -> None:
        """Store queries whose statements nobody waits for any more."""
        for query_id in tuple(self._unstored):
            await self.ensure_stored(query_id)

    def shown_on(self, display: str) -> tuple[RunningQuery, ...]:
        """Return the queries whose answers a display shows, oldest first."""
        shown = self._queries.all(displayed=True)
        return tuple(query for query in shown if query.presentation.display == display)

    async def stop(self, query: RunningQuery) -> StatementResult:
        """Stop and discard a query.

        Raises:
            BindingError: It is an alarm's or a sink's.
        """
        if query.origin in ACTING:
            owner = query.name.partition(" ")[2]
            raise BindingError(
                f"query {query.id} belongs to {query.origin} {owner}",
                hint=f'DROP {query.origin.upper()} "{owner}"',
                code="in_use",
            )
        return await self.discard(query)

    async def discard(self, query: RunningQuery) -> StatementResult:
        """Stop and discard a query, even an alarm's or a sink's."""
        dropped = () if query.origin == Origin.SESSION else (query.id,)
        changes = RunChanges(dropped=dropped, nodes=self._queries.nodes.left_by([query]))
        if changes:
            await asyncio.to_thread(self._drop, changes)
        info = self._queries.stop(query)
        self._shared.rights.made((MadeKind.QUERY, query.id), None)
        await self._end_nodes()
        return StatementResult(ResultKind.DONE, f"query {info.name} stopped", query=info)

    async def redeploy(self, plans: Mapping[str, Planned], run: str | None) -> None:
        """Store other plans of running queries, which compute the same, and deploy them once.

        Args:
            plans: By id of the query.
            run: The run that goes on with the new plan; None: one that computes it already, or a
                new one.
        """
        queries = [q for q in map(self._queries.known, plans) if q is not None]
        planned = next(iter(plans.values()))
        if run is None:
            run = await self._next_run()
            bundle = self._queries.runs.bundle_for(planned, run)
        else:
            bundle = self._queries.runs.named(planned, run)
        await self._store(self._changes(queries, bundle, planned))
        left = {query.id: plans[query.id] for query in queries if query.id in self._queries}
        if left:
            self._queries.redeploy(left, bundle)

    def _changes(
        self, queries: Sequence[RunningQuery], bundle: FragmentBundle, planned: Planned
    ) -> RunChanges:
        """Return what is to be stored so that queries read another bundle."""
        stored = tuple(
            StoredQuery(
                *(query.id, query.name, query.text, query.origin, query.created, bundle),
                logical=planned.logical if query.gathered and not planned.alone else None,
            )
            for query in queries
            if query.origin not in (Origin.SESSION, Origin.NODE)
        )
        nodes = self._queries.nodes
        left = nodes.left_by(query for query in queries if query.run != bundle.query)
        node = nodes.of(bundle.query)
        along = () if node is None else (stored_node(node, bundle),)
        return RunChanges(queries=stored, nodes=(*left, *along))

    async def _store(self, changes: RunChanges) -> None:
        if changes:
            await asyncio.to_thread(self._shared.store.put_runs, changes)

    async def _end_nodes(self) -> None:
        """Withdraw the nodes that nobody reads; the catalog first, so that none comes back."""
        nodes = self._queries.nodes
        ended = nodes.unneeded()
        await self._store(RunChanges(ended=(*nodes.stale, *(node.run for node in ended))))
        nodes.stale = ()
        self._queries.end_nodes(ended)
        left = tuple(nodes.trimmable())
        await self._store(RunChanges(nodes=left))
        nodes.trim(left)

    async def keep(self) -> None:
        """Do what is due: store, feed runs, stop unread queries, withdraw unread nodes."""
        await self._store_rest()
        await self._feeding.feed_again()
        await self.stop_unread()
        nodes = self._queries.nodes
        if nodes.stale or nodes.unneeded() or nodes.trimmable():
            async with self._shared.changing():
                await self._end_nodes()

    def _of_same_name(self, statement: Statement, name: str) -> RunningQuery | None:
        if not name:
            return None
        check_id(name, "query name")
        existing = self._queries.find(name)
        if existing is not None and existing.text != statement.text:
            raise BindingError(
                f"query {name!r} already exists",
                hint=f'DROP QUERY "{name}" or choose another name',
                code="already_exists",
            )
        return existing

    def _query_result(self, query: RunningQuery, message: str) -> StatementResult:
        info = query.info()
        return StatementResult(ResultKind.QUERY, message, query=info, warnings=info.warnings)
