"""GRANT and REVOKE over a running coordinator: who is refused what, by name, and what stops."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.audit_model import Outcome
from federated_optimizer.coordinator.contract.coordinator_model import Origin, QueryStatus
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.planning_processes import InProcesses
from streamsql.errors import BindingError, FederationError
from streamsql.wire.codec import decode_json, decode_packed
from streamsql.wire.messages import TableSet
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder

ANN = Principal("ann", Role.ANALYST, address="10.0.0.7")
BEN = Principal("ben", Role.ANALYST)
VERA = Principal("vera", Role.VIEWER)
OLA = Principal("ola", Role.OPERATOR)
ADA = Principal("ada", Role.ADMINISTRATOR)
PEOPLE = {p.name: Account(p.name, p.role) for p in (ANN, BEN, VERA, OLA, ADA)}


class World:
    """A federation with people."""

    def __init__(self, federation: Any, coordinator: Any) -> None:
        self.federation = federation
        self.whole = coordinator
        self.people = dict(PEOPLE)
        coordinator.follow_accounts(self.people.get)

    async def run(self, who: Principal, text: str, **more: Any) -> Any:
        (result,) = await self.whole.on_behalf(who).execute(text, **more)
        return result

    async def start(self, who: Principal, text: str, **more: Any) -> str:
        query: str = (await self.run(who, text, **more)).query.id
        return query

    async def refused(self, who: Principal, text: str, **more: Any) -> FederationError:
        with pytest.raises(FederationError) as found:
            await self.run(who, text, **more)
        assert found.value.code == "not_allowed", found.value
        return found.value


def living(harness: Any, scenario: Callable[[World], Any]) -> None:
    async def whole(federation: Any) -> None:
        await scenario(World(federation, await federation.standard(gateways=1)))

    harness.run(whole)


READ = "SELECT rid FROM Temperature"
GRANT = "GRANT SELECT ON SOURCE temperature TO USER ann"
REVOKE = "REVOKE SELECT ON SOURCE temperature FROM USER ann"


def test_an_analyst_reads_what_is_granted_and_is_refused_the_rest_by_name(harness: Any) -> None:
    async def scenario(world: World) -> None:
        error = await world.refused(ANN, READ)
        assert isinstance(error, BindingError)
        assert error.message == "analyst ann may not read source temperature"
        assert error.hint == (
            "ask an administrator for GRANT SELECT ON SOURCE temperature TO USER ann"
        )
        assert error.span is not None
        assert error.span.text == "Temperature"
        await world.run(ADA, GRANT)
        query = await world.start(ANN, READ)
        await harness.until_status(world.whole, query, QueryStatus.RUNNING)
        world.federation.sites["gw-1"].put("temperature", ("r1", 20.0))
        await harness.until_rows(world.whole.on_behalf(ANN), query, [("r1",)])
        await world.refused(BEN, READ)
        await world.refused(
            ANN, "SELECT t.rid FROM Temperature t JOIN RoomSensor r ON r.rid = t.rid"
        )
        for by in (ANN, OLA):
            error = await world.refused(by, "GRANT SELECT ON SOURCE roomsensor TO USER ann")
            assert "administrators" in error.message

    living(harness, scenario)


@pytest.mark.parametrize("to", ["ROLE viewer", "ROLE analyst", "EVERYBODY"])
def test_grants_to_roles_count_for_the_roles_above(harness: Any, to: str) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, f"GRANT SELECT ON SOURCE temperature TO {to}")
        await world.start(ANN, READ)
        if to == "ROLE analyst":
            await world.refused(VERA, READ, origin=Origin.SESSION)
        else:
            await world.start(VERA, READ, origin=Origin.SESSION)
        error = await world.refused(VERA, READ)
        assert error.message == "viewer vera may not run SELECT: it is for analysts and above"

    living(harness, scenario)


def test_revoke_stops_what_rests_on_the_right_and_says_so(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, GRANT)
        await world.run(ADA, "GRANT SELECT ON SOURCE temperature TO USER ben")
        mine = await world.start(ANN, READ, name="mine")
        other = await world.start(BEN, READ, name="other")
        await world.run(ANN, "CREATE ALARM hot AS SELECT rid FROM Temperature SEVERITY 'info'")
        result = await world.run(ADA, REVOKE)
        assert result.warnings == ("queries that rested on it were stopped: mine, alarm hot",)
        info = world.whole.query(mine)
        assert info.status == QueryStatus.FAILED
        assert "analyst ann may not read source temperature" in info.error
        assert world.whole.query(other).status != QueryStatus.FAILED
        with pytest.raises(FederationError, match="which query mine reads"):
            world.whole.on_behalf(ANN).relation(mine)
        assert world.whole.on_behalf(ANN).queries() == ()
        assert world.whole.on_behalf(ANN).alarms() == ()

    living(harness, scenario)


def test_a_reader_of_another_query_gets_nothing_after_a_revoke(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, GRANT)
        query = await world.start(OLA, READ)
        reader = world.whole.on_behalf(ANN).subscribe(query)
        changes = aiter(reader)
        await harness.next_batch(changes)
        await world.run(ADA, REVOKE)
        world.federation.sites["gw-1"].put("temperature", ("r9", 20.0))

        async def go_on() -> None:
            async for _ in changes:
                pass

        with pytest.raises(FederationError, match="may not read source temperature"):
            await asyncio.wait_for(go_on(), 60)
        await reader.close()
        assert world.whole.query(query).status != QueryStatus.FAILED

    living(harness, scenario)


def test_a_view_is_read_without_its_sources_and_with_its_makers_rights(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.refused(ANN, f"CREATE VIEW warm AS {READ}")
        await world.run(ADA, GRANT)
        await world.run(ANN, f"CREATE VIEW warm AS {READ}")
        await world.refused(BEN, "SELECT * FROM warm")
        await world.run(ADA, "GRANT SELECT ON VIEW warm TO USER ben")
        query = await world.start(BEN, "SELECT * FROM warm")
        await world.refused(BEN, READ)
        # Its rows are read, not what they rest on.
        with pytest.raises(FederationError, match="on which rows of query"):
            await world.whole.on_behalf(BEN).rows.why_row(query, ["r1"])
        await world.refused(BEN, "EXPLAIN WHY (SELECT rid FROM warm) ROW ('r1')")
        await world.run(ADA, REVOKE)
        assert world.whole.query(query).status == QueryStatus.FAILED
        error = await world.refused(BEN, "SELECT * FROM warm")
        assert "in view 'warm': analyst ann may not read source temperature" in error.message
        await world.run(ADA, GRANT)
        await world.start(BEN, "SELECT * FROM warm")
        world.people["ann"] = Account("ann", Role.VIEWER)
        await world.start(BEN, "SELECT * FROM warm")
        del world.people["ann"]
        await harness.until(
            lambda: all(
                q.status == QueryStatus.FAILED for q in world.whole.queries() if "warm" in q.text
            )
        )
        error = await world.refused(BEN, "SELECT * FROM warm")
        assert "who has no account any more" in error.message

    living(harness, scenario)


def test_an_account_of_a_former_name_inherits_nothing(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, GRANT)
        await world.run(ANN, f"CREATE VIEW warm AS {READ}")
        await world.start(ANN, READ)
        later = world.whole._shared.clock() + 1
        world.people["ann"] = Account("ann", Role.ANALYST, created=later)
        await world.refused(ANN, READ)
        await world.refused(ANN, "SELECT * FROM warm")
        await world.refused(ANN, "DROP VIEW warm")
        assert world.whole.on_behalf(ANN).queries() == ()

    living(harness, scenario)


def test_grants_end_with_their_relation_and_survive_a_restart(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, "GRANT SELECT ON TABLE machines TO USER ann")
        await world.run(ADA, GRANT)
        await world.run(ANN, f"CREATE VIEW warm AS {READ}")
        kept = await world.start(ANN, READ, name="kept")
        await world.run(OLA, "DROP TABLE machines")
        await world.run(OLA, "CREATE TABLE Machines (mid TEXT) WITH (source = 'csv', path = 'm')")
        await world.refused(ANN, "SELECT mid FROM machines")
        await world.whole.close()
        again = World(world.federation, await world.federation.coordinator())
        await again.start(ANN, READ)
        await again.run(ANN, "SELECT * FROM warm")
        await again.refused(BEN, "DROP QUERY kept")
        shown = await again.run(ADA, "SHOW GRANTS")
        assert [row[:4] for row in shown.rows] == [("source", "temperature", "user", "ann")]
        await again.run(ADA, REVOKE)
        assert again.whole.query(kept).status == QueryStatus.FAILED
        await again.run(ANN, "DROP QUERY kept")

    living(harness, scenario)


def test_lists_have_only_what_may_be_read(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, GRANT)
        await world.start(OLA, "SELECT rid FROM RoomSensor", name="rooms")
        await world.start(OLA, READ, name="degrees")
        ann = world.whole.on_behalf(ANN)
        assert [q.name for q in ann.queries()] == ["degrees"]
        assert (await world.run(ANN, "SHOW SOURCES")).rows[0][0] == "temperature"
        assert len((await world.run(ANN, "SHOW SOURCES")).rows) == 1
        assert (await world.run(ANN, "SHOW TABLES")).rows == ()
        assert len((await world.run(ANN, "SHOW QUERIES")).rows) == 1
        assert (await world.run(ANN, "DESCRIBE temperature")).rows
        await world.refused(ANN, "DESCRIBE roomsensor")
        with pytest.raises(BindingError, match="there is nothing with the name"):
            await world.run(ANN, "DESCRIBE rooms")
        names = {d.name for d in ann.definitions()}
        assert "temperature" in names
        assert not names & {"roomsensor", "machines", "sys_stream"}
        found = await ann.validate("SELECT celsius FROM temperature; SELECT status FROM roomsensor")
        assert [d.code for d in found.diagnoses] == ["not_allowed"]
        await world.refused(ANN, "EXPLAIN SELECT status FROM roomsensor")
        for text in ("SELECT * FROM sys_queries", "SELECT * FROM sys_audit"):
            await world.refused(ANN, text)
        for text in ("SELECT * FROM sys_queries", "SELECT * FROM sys_audit"):
            await world.run(OLA, text)
        assert world.whole.on_behalf(OLA).audit.entries()
        with pytest.raises(FederationError, match="may not read the audit"):
            ann.audit.entries()

    living(harness, scenario)


def test_others_may_not_change_what_somebody_made(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, "GRANT SELECT ON SOURCE temperature TO ROLE viewer")
        await world.run(ANN, f"CREATE VIEW warm AS {READ}")
        query = await world.start(ANN, READ, name="mine")
        await world.run(ANN, "CREATE DISPLAY door WITH (floor = 1, x = 1.0, y = 2.0)")
        for text in ("DROP VIEW warm", "DROP DISPLAY door", "DROP QUERY mine"):
            await world.refused(BEN, text)
        with pytest.raises(FederationError, match="somebody else started it"):
            await world.whole.on_behalf(BEN).stop(query)
        for text in (
            "CREATE SOURCE x (a TEXT)",
            "DROP SOURCE temperature",
            "INSERT INTO t VALUES (1)",
        ):
            await world.refused(ANN, text)
        error = await world.refused(ANN, "CREATE VIEW reachable AS SELECT rid FROM temperature")
        assert "library view" in error.message
        await world.run(ANN, "DROP VIEW warm")
        await world.run(OLA, "DROP QUERY mine")
        notes = [
            (e.who, e.action, e.target, e.outcome)
            for e in world.whole.audit.entries()
            if e.who in ("ann", "ben", "ola")
        ]
        assert ("ben", "DROP VIEW", "warm", Outcome.REFUSED) in notes
        assert ("ben", "stop query", "mine", Outcome.REFUSED) in notes
        assert ("ola", "DROP QUERY", "mine", Outcome.DONE) in notes
        assert ("ann", "CREATE VIEW", "warm", Outcome.DONE) in notes

    living(harness, scenario)


def test_a_token_reads_only_its_sources(harness: Any) -> None:
    async def scenario(world: World) -> None:
        token = Principal("ada", Role.ADMINISTRATOR, token="cron", sources=("temperature",))
        await world.start(token, READ)
        error = await world.refused(token, "SELECT rid FROM roomsensor")
        assert error.message == "API token cron of ada may not read source roomsensor"
        await world.run(token, GRANT)
        await world.refused(token, "GRANT SELECT ON SOURCE temperature, roomsensor TO EVERYBODY")
        assert [grant.relation for grant in world.whole.grants.grants()] == ["temperature"]

    living(harness, scenario)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GRANT SELECT ON SOURCE nothing TO USER ann", "there is no source 'nothing'"),
        ("GRANT SELECT ON SOURCE machines TO USER ann", "machines is a table, not a source"),
        ("GRANT SELECT ON SOURCE temperature TO USER nobody", "there is no account 'nobody'"),
        ("GRANT SELECT ON SOURCE temperature TO ROLE chief", "there is no role 'chief'"),
        ("GRANT SELECT ON TABLE sys_queries TO USER ann", "sys_queries is a table of the system"),
        ("GRANT SELECT ON VIEW reachable TO USER ann", "reachable is a library view"),
        ("ALTER USER ann SET (max_apples = 3)", "there is no quota 'max_apples'"),
        ("ALTER USER ann SET (max_queries = -3)", "max_queries = '-3' is no amount"),
        ("ALTER USER ann SET (max_queries = 'nan')", "max_queries = 'nan' is no amount"),
        ("ALTER USER ann SET (planning_seconds = 'nan')", "planning_seconds = 'nan' is no amount"),
    ],
)
def test_wrong_names_are_refused_with_a_place(harness: Any, text: str, message: str) -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(BindingError) as found:
            await world.run(ADA, text)
        assert found.value.message.startswith(message)
        assert found.value.span is not None
        assert found.value.hint

    living(harness, scenario)


def test_quotas_bound_what_one_account_uses(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, "GRANT SELECT ON SOURCE temperature TO EVERYBODY")
        await world.run(ADA, "ALTER USER ann SET (max_queries = 2, max_result_rows = 3)")
        first = await world.start(ANN, READ)
        await world.start(ANN, READ)
        with pytest.raises(FederationError) as found:
            await world.start(ANN, READ)
        assert found.value.code == "quota_exceeded"
        assert found.value.message == "analyst ann has 2 running queries, and 2 at most"
        other = await world.start(BEN, READ)
        for query in (first, other):
            await harness.until_status(world.whole, query, QueryStatus.RUNNING)
        world.federation.sites["gw-1"].put("temperature", *((f"r{n}", 1.0) for n in range(4)))
        await harness.until(lambda: world.whole.query(first).status == QueryStatus.FAILED)
        assert "a result of analyst ann may have 3 rows" in world.whole.query(first).error
        await harness.until(lambda: world.whole.query(other).rows == 4)
        usage = world.whole.on_behalf(ANN).grants.usage("ann")
        assert (usage.queries, usage.result_rows) == (2, 4)
        await world.run(ADA, "ALTER USER ann SET (max_queries = 'none', planning_seconds = 0)")
        assert world.whole.grants.quotas("ann").max_queries == 50
        with pytest.raises(FederationError, match="has planned for 0 s in the last minute"):
            await world.start(ANN, READ)
        await world.start(BEN, READ)
        with pytest.raises(FederationError, match="may not handle quotas"):
            world.whole.on_behalf(BEN).grants.usage("ann")

    living(harness, scenario)


def test_a_grant_that_goes_while_a_statement_is_planned_counts(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, GRANT)
        real = world.whole._turns._statements.preparation.of

        async def slow(*given: Any) -> Any:
            prepared = await real(*given)
            await asyncio.shield(world.run(ADA, REVOKE)) if given[1] == ANN else None
            return prepared

        world.whole._turns._statements.preparation.of = slow
        await world.refused(ANN, READ)

    living(harness, scenario)


def test_rows_that_sites_keep_are_bounded_for_an_account(harness: Any) -> None:
    async def scenario(world: World) -> None:
        await world.run(ADA, "GRANT SELECT ON SOURCE temperature TO EVERYBODY")
        await world.run(ADA, "ALTER USER ann SET (max_state_rows = 1000)")
        text = "SELECT rid, COUNT(*) AS n FROM Temperature GROUP BY rid"
        mine, other = await world.start(ANN, text), await world.start(BEN, text)
        for query in (mine, other):
            await harness.until_status(world.whole, query, QueryStatus.RUNNING)
        gateway = world.federation.sites["gw-1"]
        gateway.put("temperature", *((f"r{n}", 1.0) for n in range(1_500)))

        def stopped() -> bool:
            gateway.put("temperature", ("again", 1.0))  # its changes carry the counts
            return bool(world.whole.query(mine).status == QueryStatus.FAILED)

        await harness.until(stopped)
        assert (
            "may keep 1000 rows at the sites, and this one keeps" in world.whole.query(mine).error
        )
        assert world.whole.query(other).status == QueryStatus.RUNNING

        def reported() -> bool:
            gateway.put("temperature", ("again", 1.0))
            return bool(world.whole.grants.usage("ben").state_rows >= 1_500)

        await harness.until(reported)

    living(harness, scenario)


def test_rights_hold_in_processes_that_plan(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        whole = await federation.coordinator(define_schema=True, beside=InProcesses(20.0))
        world = World(federation, whole)
        await world.refused(ANN, READ)
        await world.run(ADA, GRANT)
        await world.start(ANN, READ)
        await world.run(ANN, f"CREATE VIEW warm AS {READ}")
        await world.refused(BEN, "EXPLAIN SELECT * FROM warm")
        shown = await whole.on_behalf(BEN).validate(READ)
        assert [d.code for d in shown.diagnoses] == ["not_allowed"]
        assert whole.grants.usage("ann").planning_seconds > 0
        await world.run(ADA, REVOKE)
        await world.refused(ANN, "SELECT * FROM warm")

    harness.run(scenario)


def test_a_running_query_is_explained_in_a_process_on_account_of_who_asks(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        whole = await federation.coordinator(define_schema=True, beside=InProcesses(20.0))
        world = World(federation, whole)
        await world.run(ADA, GRANT)
        query = await world.start(ANN, READ)
        asks, before = whole.on_behalf(ANN), whole.grants.usage("ann").planning_seconds
        found = await asks.explained(query)
        shown = asks.explain(query).text
        assert found.text.startswith(f"{shown}\nPlan ")
        assert whole.grants.usage("ann").planning_seconds > before
        with pytest.raises(KeyError):
            await whole.explained("nothing")

    harness.run(scenario)


def test_one_account_cannot_plan_in_every_process(harness: Any) -> None:
    async def scenario(world: World) -> None:
        quotas = world.whole._shared.quotas
        async with contextlib.AsyncExitStack() as busy:
            for _ in range(4):
                await busy.enter_async_context(quotas.planning(ANN))
            waiting = [asyncio.create_task(world.run(ANN, "SHOW SOURCES")) for _ in range(100)]
            await asyncio.sleep(0)
            await world.run(BEN, "SHOW SOURCES")
            assert not any(task.done() for task in waiting)
            with pytest.raises(FederationError, match="has 104 statements that wait"):
                await world.run(ANN, "SHOW SOURCES")
        await asyncio.gather(*waiting)
        await world.run(ANN, "SHOW SOURCES")

    living(harness, scenario)


def test_a_view_is_refreshed_only_while_its_maker_may_read(harness: Any) -> None:
    async def scenario(world: World) -> None:
        def orders() -> list[bool]:
            message = world.federation.broker.retained[world.federation.topics.tables()]
            refreshed = decode_json(message.payload, TableSet).refreshed
            return [decode_packed(o, RefreshOrder).plan is not None for o in refreshed]

        await world.run(ADA, "GRANT SELECT ON TABLE machines TO USER ann")
        text = "CREATE MATERIALIZED VIEW mine REFRESH AT ('14:00') AS SELECT mid FROM machines"
        await world.run(ANN, text)
        await harness.until(lambda: orders() == [True])
        await world.run(ADA, "REVOKE SELECT ON TABLE machines FROM USER ann")
        await harness.until(lambda: orders() == [False])
        world.people["ann"] = Account("ann", Role.OPERATOR)
        await harness.until(lambda: orders() == [True])
        del world.people["ann"]
        await harness.until(lambda: orders() == [False])

    living(harness, scenario)


def test_an_operator_of_before_does_not_read_the_sources_they_made(harness: Any) -> None:
    async def scenario(world: World) -> None:
        world.people["ann"] = Account("ann", Role.OPERATOR)
        await world.run(Principal("ann", Role.OPERATOR), "CREATE SOURCE own (a TEXT)")
        await world.refused(ANN, "SELECT a FROM own")

    living(harness, scenario)


@pytest.mark.parametrize("origin", [Origin.SESSION, Origin.MAP])
def test_a_change_is_in_the_audit_whatever_it_says_of_its_origin(
    harness: Any, origin: Origin
) -> None:
    async def scenario(world: World) -> None:
        view = f"CREATE VIEW warm AS {READ}"
        for who, text in ((ADA, GRANT), (ANN, view), (ANN, "DROP VIEW warm"), (ADA, REVOKE)):
            await world.run(who, text, origin=origin)
        with pytest.raises(FederationError):
            await world.run(ADA, "DROP SOURCE nothing", origin=origin)
        await world.run(OLA, READ, origin=origin)  # of a page that somebody looks at
        noted = [
            (e.action, str(e.outcome)) for e in world.whole.audit.entries() if e.who != "local"
        ]
        assert noted == [
            ("GRANT", "done"),
            ("CREATE VIEW", "done"),
            ("DROP VIEW", "done"),
            ("REVOKE", "done"),
            ("DROP SOURCE", "failed"),
        ]

    living(harness, scenario)
