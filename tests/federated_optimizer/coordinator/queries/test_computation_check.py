"""The computation index in the catalog says what runs, after anything that happens to it."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.network_model import DifferenceKind, IndexReport
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.queries import computation_check
from federated_optimizer.coordinator.rights.statement_roles import NotAllowedError
from federated_optimizer.coordinator.store.schema.computation_tables import computations
from federated_optimizer.coordinator.store.stored_computations import (
    read_rows,
    stored_computations,
)
from streamsql.errors import DeploymentError

PAIRS = "SELECT l.src, l.dst, r.status FROM Link l JOIN RoomSensor r ON l.dst = r.rid"
OPEN = f"{PAIRS} WHERE r.status = 'open'"
NAMES = "SELECT l.src FROM Link l JOIN RoomSensor r ON l.dst = r.rid WHERE r.status = 'open'"
COUNTS = f"SELECT p.status, COUNT(*) AS n FROM ({PAIRS}) p GROUP BY p.status"
HOT = "SELECT mid FROM SeatSensor WHERE weightLevel > 30 OR rid = 'x'"
ALONE = "SELECT rid FROM RoomSensor WITH (shared = 'no')"


def rows(coordinator: Any) -> dict[str, Any]:
    with coordinator._shared.store.writing() as connection:
        return stored_computations(connection)


def change(coordinator: Any, statement: Any) -> None:
    with coordinator._shared.store.writing() as connection:
        connection.execute(statement)


async def is_right(coordinator: Any) -> IndexReport:
    report: IndexReport = await coordinator.check_network()
    assert report.differences == ()
    return report


def test_the_index_follows_the_queries(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        queries = []
        for text in (COUNTS, NAMES, PAIRS, OPEN, HOT, HOT, ALONE):
            queries.append(await harness.start_query(coordinator, text))
            await is_right(coordinator)
        session = await harness.start_query(
            coordinator, "SELECT mid FROM SeatSensor", origin=Origin.SESSION
        )
        found = rows(coordinator)
        assert {*queries} - {queries[5]} < {*found}
        assert not {session, queries[5]} & {*found}
        groups = read_rows(found[queries[0]]["group_keys"]) or []
        assert groups
        assert all(key.startswith("#") for _, key in groups)
        hot = found[queries[4]]
        assert sorted(row[2] for row in read_rows(hot["literals"]) or ()) == ["= 'x'", "> 30"]
        assert len({row[0] for row in read_rows(hot["disjunctions"]) or ()}) == 1
        assert [queries[4][1:], "node", f"{queries[4][1:]}/f1"] in (
            read_rows(hot["topology"]) or []
        )
        assert (await is_right(coordinator)).runs == len(found)
        for query in queries:
            await coordinator.stop(query)
            await is_right(coordinator)
        await harness.until(lambda: not rows(coordinator), "no row is left")

    harness.run(scenario)


def test_it_follows_plans_that_are_made_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        for text in (COUNTS, NAMES, OPEN):
            await harness.start_query(coordinator, text)
        before = rows(coordinator)
        await federation.site("gw-3")
        await harness.until(
            lambda: {r["version"] for r in rows(coordinator).values()} > {1}, "planned again"
        )
        await is_right(coordinator)
        for run, row in rows(coordinator).items():
            assert row["literals"] == before[run]["literals"]

    harness.run(scenario)


@pytest.mark.parametrize("end", ["before the sites know", "orderly"])
def test_it_is_right_after_a_restart(
    harness: Any, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        for text in (COUNTS, NAMES):
            await harness.start_query(coordinator, text)
        if end != "orderly":
            # Stored, and nothing of it at any site: as if it was killed in between.
            monkeypatch.setattr(coordinator._shared.deployment, "publish", lambda *_, **__: None)
        for text in (PAIRS, HOT):
            await harness.start_query(coordinator, text)
        before = rows(coordinator)
        if end == "orderly":
            await coordinator.close()
        again = await federation.coordinator()
        assert (await is_right(again)).runs == len(before)
        assert rows(again) == before

    harness.run(scenario)


def test_what_somebody_has_changed_is_found_and_mended(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        pairs = await harness.start_query(coordinator, OPEN)
        hot = await harness.start_query(coordinator, HOT)
        before = rows(coordinator)
        table, text = computations, before[hot]["literals"]
        of_hot = table.c.run == hot
        row = before[hot] | {"run": "q99"}
        for change_it, kind, relation in (
            (
                table.update().where(of_hot).values(literals=text.replace("> 30", "> 31")),
                DifferenceKind.DIFFERENT,
                "literals",
            ),
            (
                table.update().where(of_hot).values(topology="[]"),
                DifferenceKind.MISSING,
                "topology",
            ),
            (
                table.update().where(of_hot).values(group_keys='[["a","#1"]]'),
                DifferenceKind.SURPLUS,
                "group_keys",
            ),
            (
                table.update().where(of_hot).values(predicate_sets=None),
                DifferenceKind.MISSING,
                "predicate_sets",
            ),
            (
                table.update().where(of_hot).values(inputs="no JSON"),
                DifferenceKind.DIFFERENT,
                "inputs",
            ),
            (table.update().where(of_hot).values(version=7), DifferenceKind.DIFFERENT, "version"),
            (table.delete().where(table.c.run == pairs), DifferenceKind.MISSING, "run"),
            (table.insert().values(**row), DifferenceKind.SURPLUS, "run"),
        ):
            change(coordinator, change_it)
            found = await coordinator.check_network()
            assert {(each.kind, each.relation) for each in found.differences} == {(kind, relation)}
            assert not found.rebuilt
            mended = await coordinator.check_network(rebuild=True)
            assert (mended.differences, mended.rebuilt) == (found.differences, True)
            await is_right(coordinator)
            assert rows(coordinator) == before

    harness.run(scenario)


def test_only_operators_check_and_all_is_in_the_audit(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        analyst = coordinator.on_behalf(Principal("ana", Role.ANALYST))
        with pytest.raises(NotAllowedError):
            await analyst.check_network()
        operator = coordinator.on_behalf(Principal("olga", Role.OPERATOR))
        assert (await operator.check_network(rebuild=True)).differences == ()

    harness.run(scenario)


def test_nothing_is_rebuilt_while_queries_move(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = coordinator._queries.known(await harness.start_query(coordinator, HOT))
        monkeypatch.setattr(coordinator._queries.runs, "tried", lambda: (query,))
        assert (await coordinator.check_network()).moving == 1
        with pytest.raises(DeploymentError, match="on trial"):
            await coordinator.check_network(rebuild=True)

    harness.run(scenario)


def test_a_column_is_there_for_queries_of_older_releases(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, HOT)
        url = coordinator._shared.settings.database
        await coordinator.close()
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE pando_computations"))
            connection.execute(sa.text("ALTER TABLE pando_queries DROP COLUMN run"))
            connection.execute(sa.text("UPDATE pando_schema SET version = version - 1"))
        engine.dispose()
        again = await federation.coordinator()
        found = await again.check_network(rebuild=True)
        assert [(each.run, each.kind) for each in found.differences] == [(query, "missing")]
        await is_right(again)
        await again.stop(query)
        assert not rows(again)

    harness.run(scenario)


def test_queries_come_and_go_while_rows_are_made(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of runs that have changed since are made again; the others are not."""
    is_making, go_on = threading.Event(), threading.Event()
    made: list[set[str]] = []
    make = computation_check._rows_of

    def slow(runs: Mapping[str, Any]) -> Any:
        made.append({*runs})
        if len(made) == 1:
            is_making.set()
            assert go_on.wait(30)
        return make(runs)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        stays = await harness.start_query(coordinator, HOT)
        goes = await harness.start_query(coordinator, ALONE)
        monkeypatch.setattr(computation_check, "_rows_of", slow)
        checking = asyncio.create_task(is_right(coordinator))
        await asyncio.to_thread(is_making.wait, 30)
        await coordinator.stop(goes)
        comes = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        go_on.set()
        report = await checking
        assert report.runs == 2
        assert made == [{stays, goes}, {comes}]

    harness.run(scenario)
