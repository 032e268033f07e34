"""The coordinator as a whole: restarts, takeover, session queries, statements, bad payloads."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from fastapi import HTTPException

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus, ResultKind
from streamsql.algebra.user_functions import INSTALLED
from streamsql.errors import BindingError, DeploymentError, QueryError, UnsupportedError
from streamsql.wire.codec import decode_json, encode_json, encode_packed
from streamsql.wire.messages import DeltaBatch, LinkMessage
from streamsql.wire.site_messages import SiteState
from streamsql.wire.topics import level_of
from tests import user_aggregates
from ui.api.routes import find_query

ROOMS = "SELECT rid, status FROM RoomSensor"


def state_of(federation: Any) -> SiteState:
    message = federation.broker.retained[federation.topics.host_state("coordinator")]
    return decode_json(message.payload, SiteState)


def test_running_queries_survive_a_restart_without_starting_anew(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        query = await harness.start_query(first, ROOMS, name="rooms")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(first, query, [("r1", "open")])
        await harness.until_status(first, query, QueryStatus.RUNNING)
        epoch = state_of(federation).epoch
        await first.close()
        assert not state_of(federation).online
        federation.sites["gw-1"].put("roomsensor", ("r2", "open"))  # while nobody listens
        second = await federation.coordinator()
        await harness.until_rows(second, "rooms", [("r1", "open"), ("r2", "open")])
        await harness.until_status(second, query, QueryStatus.RUNNING)
        await harness.until(lambda: second.query(query).settled, "settled")
        info = second.query(query)
        assert (info.id, info.name, info.version) == (query, "rooms", 1)
        assert federation.sites["base"].engine.queries == {query: 1}
        assert state_of(federation).online
        assert state_of(federation).epoch > epoch
        assert [d.name for d in second.definitions() if d.name == "seatsensor"]
        assert federation.tables() == ("machines", "machinesoftware")

    harness.run(scenario)


def test_a_query_whose_plan_cannot_be_read_fails_alone_and_can_be_dropped(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        damaged = await harness.start_query(first, "SELECT rid FROM RoomSensor", name="damaged")
        is_open = "SELECT rid FROM RoomSensor WHERE status = 'open'"
        await first.execute(f"CREATE ALARM open AS {is_open} SEVERITY 'info'")
        query = await harness.start_query(first, ROOMS)
        equal = await harness.start_query(first, "SELECT rid FROM RoomSensor")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(first, query, [("r1", "open")])
        (alarm,) = [q.id for q in first.queries() if q.origin == "alarm"]
        await first.close()
        with closing(sqlite3.connect(federation.folder / "catalog.db")) as catalog, catalog:
            broken = "UPDATE pando_queries SET bundle = x'c1' WHERE id IN (?, ?)"
            catalog.execute(broken, (damaged, alarm))
        second = await federation.coordinator()
        for known, rows in ((query, [("r1", "open")]), (equal, [("r1",)])):
            await harness.until_rows(second, known, rows)
            await harness.until_status(second, known, QueryStatus.RUNNING)
        for failed in (damaged, alarm):
            info = second.query(failed)
            assert info.status == QueryStatus.FAILED
            assert "its plan in the catalog cannot be read" in info.error
            assert second.explain(failed).text
        await second.execute("DROP QUERY damaged")
        await second.execute("DROP ALARM open")
        assert {q.id for q in second.queries() if q.origin != "session"} == {query, equal}
        await second.close()
        third = await federation.coordinator()
        assert {q.id for q in third.queries()} == {query, equal}

    harness.run(scenario)


def test_a_coordinator_that_leaves_does_not_answer_its_own_goodbye(
    harness: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await coordinator.close()
        # A broker may still deliver it while the connection is being closed.
        coordinator._heard_own_state(state_of(federation))
        assert not state_of(federation).online
        assert "closed" not in caplog.text

    harness.run(scenario)


def test_what_is_left_of_an_unknown_query_is_cleared(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        query = await harness.start_query(first, ROOMS, origin="session")
        await harness.until(lambda: (query, "gw-1") in federation.fragments())
        reader = first.subscribe(query)
        await first.close()
        await federation.coordinator()
        await harness.until(lambda: not federation.fragments(), "fragments cleared")
        await harness.until(lambda: not federation.sites["base"].engine.queries)
        await reader.close()

    harness.run(scenario)


def test_a_broker_that_forgets_everything_is_told_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1", "open")])
        before = federation.fragments()
        federation.broker.stop(forget=True)
        federation.sites["gw-1"].put("roomsensor", ("r2", "open"))
        federation.broker.start()
        await harness.until_rows(coordinator, query, [("r1", "open"), ("r2", "open")])
        assert federation.fragments() == before
        assert federation.tables() == ("machines", "machinesoftware")
        assert coordinator.query(query).version == 1

    harness.run(scenario)


def test_the_newest_coordinator_takes_over(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        older = await federation.standard(gateways=1)
        query = await harness.start_query(older, ROOMS)
        newer = await federation.coordinator()
        await harness.until(lambda: newer.query(query).status == QueryStatus.RUNNING)
        with pytest.raises(DeploymentError, match="another coordinator took over"):
            await older.execute(ROOMS)
        await harness.start_query(newer, "SELECT rid FROM RoomSensor")
        assert state_of(federation).online
        assert state_of(federation).epoch == newer._shared.presence.epoch

    harness.run(scenario)


def test_a_session_query_goes_with_its_last_reader(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS, origin="session")
        one, two = coordinator.subscribe(query), coordinator.subscribe(query)
        await one.close()
        assert coordinator.query(query).origin == "session"
        await two.close()
        await harness.until(lambda: not coordinator.queries(), "the session query is gone")
        await harness.until(lambda: not federation.fragments())
        with pytest.raises(KeyError):
            coordinator.query(query)

    harness.run(scenario)


def test_a_session_query_nobody_ever_reads_goes_too(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator(define_schema=True, unread=0.3)
        await harness.start_query(coordinator, ROOMS, origin="session")
        await harness.until(lambda: not coordinator.queries())

    harness.run(scenario)


def test_a_session_query_that_was_left_is_kept_for_who_is_about_to_read_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator(
            define_schema=True, session_grace=0.4, unread=60.0
        )
        query = await harness.start_query(coordinator, ROOMS, origin="session")
        await coordinator.subscribe(query).close()
        assert coordinator.keep(query).id == query
        left = await harness.start_query(coordinator, ROOMS, origin="session")
        await coordinator.subscribe(left).close()
        # Left later, and nobody keeps it: when it has gone, the grace has passed for both.
        await harness.until(lambda: [q.id for q in coordinator.queries()] == [query])
        reader = coordinator.subscribe(query)
        await reader.close()
        await harness.until(lambda: not coordinator.queries())
        with pytest.raises(KeyError):
            coordinator.keep(query)

    harness.run(scenario)


def test_of_a_query_that_ended_unread_it_is_said_why_it_is_not_there(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator(define_schema=True, unread=0.3)
        query = await harness.start_query(coordinator, ROOMS, origin="session")
        await harness.until(lambda: not coordinator.queries())
        with pytest.raises(HTTPException) as caught:
            find_query(coordinator, query)
        assert caught.value.detail == f"query {query} was stopped: it had no reader for 0.3 s"
        with pytest.raises(HTTPException) as caught:
            find_query(coordinator, "q999")
        assert caught.value.detail == "there is no query 'q999'"

    harness.run(scenario)


def test_stopping_ends_readers_and_withdraws_fragments(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS)
        reader = coordinator.subscribe(query)
        info = await coordinator.stop(query)
        assert info.status == QueryStatus.STOPPED
        batches = [batch async for batch in reader]
        assert batches[-1].status == QueryStatus.STOPPED
        await harness.until(lambda: not federation.fragments())
        await harness.until(lambda: not federation.sites["gw-1"].engine.queries)
        (after,) = await coordinator.execute("SHOW QUERIES")
        assert after.rows == ()
        # Ids are never used again.
        assert await harness.start_query(coordinator, ROOMS) == "q2"

    harness.run(scenario)


def test_a_result_that_is_too_large_stops_the_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        gateway = await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True, max_result_rows=10)
        query = await harness.start_query(coordinator, ROOMS)
        gateway.put("roomsensor", *[(f"r{i}", "open") for i in range(20)])
        await harness.until_status(coordinator, query, QueryStatus.FAILED)
        assert "more than 10 distinct rows" in coordinator.query(query).error
        await harness.until(lambda: not gateway.engine.queries)

    harness.run(scenario)


def test_names_are_unique_and_the_same_statement_is_the_same_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS, name="rooms", origin="map")
        assert await harness.start_query(coordinator, ROOMS, name="rooms") == query
        with pytest.raises(BindingError, match="'rooms' already exists"):
            await coordinator.execute("SELECT rid FROM RoomSensor", name="rooms")
        with pytest.raises(DeploymentError, match="not an id"):
            await coordinator.execute(ROOMS, name="a/b")
        assert [q.id for q in coordinator.queries("map")] == [query]
        assert coordinator.queries("user") == ()

    harness.run(scenario)


def test_a_table_without_a_source_is_one_that_pando_keeps(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        (empty,) = await coordinator.execute("CREATE TABLE t (a INTEGER)")
        assert empty.warnings == ()
        file = "CREATE TABLE u (a INTEGER) WITH (source = 'csv', path = 'u.csv')"
        (read,) = await coordinator.execute(file)
        assert read.warnings == ()

    harness.run(scenario)


def test_definitions_in_use_are_not_dropped(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute("CREATE VIEW open AS SELECT rid FROM RoomSensor")
        query = await harness.start_query(coordinator, "SELECT * FROM open")
        with pytest.raises(BindingError, match="used by query q1, view open"):
            await coordinator.execute("DROP SOURCE RoomSensor")
        with pytest.raises(BindingError, match="used by query q1") as refused:
            await coordinator.execute("DROP VIEW open")
        await coordinator.execute(refused.value.hint.removesuffix(" first"))
        assert query not in {q.id for q in coordinator.queries()}
        with pytest.raises(BindingError, match="used by view open"):
            await coordinator.execute("DROP SOURCE RoomSensor")
        await coordinator.execute("DROP VIEW open; DROP SOURCE RoomSensor")
        with pytest.raises(BindingError, match="there is no source 'roomsensor'"):
            await coordinator.execute("DROP SOURCE RoomSensor")
        (result,) = await coordinator.execute("DROP SOURCE IF EXISTS RoomSensor")
        assert result.message == "there was no source roomsensor"

    harness.run(scenario)


def test_functions_of_the_user(harness: Any) -> None:
    sample = "deploy.samples.readings"
    function = f"CREATE FUNCTION dew(c DOUBLE, h DOUBLE) RETURNS DOUBLE AS '{sample}:dew_point'"
    aggregate = f"CREATE AGGREGATE hm(x DOUBLE) RETURNS DOUBLE AS '{sample}:HarmonicMean'"
    merged = f"CREATE AGGREGATE peak(x DOUBLE) RETURNS DOUBLE MERGED BY MAX AS '{sample}:Peak'"

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        with pytest.raises(DeploymentError, match="PANDO_FUNCTIONS"):
            await coordinator.execute(function)
        INSTALLED.allow([sample])
        await coordinator.execute(f"{function}; {aggregate}")
        (shown,) = await coordinator.execute("SHOW FUNCTIONS")
        assert [row[:2] for row in shown.rows] == [
            ("dew(c DOUBLE, h DOUBLE) RETURNS DOUBLE", "function"),
            ("hm(x DOUBLE) RETURNS DOUBLE", "aggregate"),
        ]
        (described,) = await coordinator.execute("DESCRIBE dew")
        assert described.rows[0] == ("c", "DOUBLE", "parameter")
        await coordinator.execute("CREATE VIEW dry AS SELECT rid, dew(20, 50) AS d FROM RoomSensor")
        with pytest.raises(BindingError, match="function 'dew' is used by view dry"):
            await coordinator.execute("DROP FUNCTION dew")
        with pytest.raises(BindingError, match="there is no function 'hm'"):
            await coordinator.execute("DROP FUNCTION hm")
        INSTALLED.allow([sample, user_aggregates.MODULE])
        zero = f"{user_aggregates.MODULE}:Total"
        with pytest.raises(DeploymentError, match="MERGED BY needs None there"):
            await coordinator.execute(merged.replace(f"{sample}:Peak", zero))
        await coordinator.execute(merged)
        (described,) = await coordinator.execute("DESCRIBE peak")
        assert described.rows[-1] == ("", "DOUBLE", f"result of {sample}:Peak, merged by MAX")
        (shown,) = await coordinator.execute("SHOW FUNCTIONS")
        assert shown.rows[-1][0] == "peak(x DOUBLE) RETURNS DOUBLE MERGED BY MAX"
        await coordinator.execute("DROP VIEW dry; DROP FUNCTION dew; DROP AGGREGATE hm")
        await coordinator.execute("DROP AGGREGATE peak")
        (shown,) = await coordinator.execute("SHOW FUNCTIONS")
        assert shown.rows == ()

    try:
        harness.run(scenario)
    finally:
        INSTALLED.allow([])


def test_library_views_are_there_and_may_be_replaced(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        with pytest.raises(BindingError, match="library view"):
            await coordinator.execute("DROP VIEW reachable")
        await coordinator.execute("CREATE VIEW reachable AS SELECT src FROM Link")
        (described,) = await coordinator.execute("DESCRIBE reachable")
        assert described.rows == (("src", "TEXT", ""),)
        await coordinator.execute("DROP VIEW reachable")
        (described,) = await coordinator.execute("DESCRIBE reachable")
        assert [row[0] for row in described.rows] == ["src", "dst"]

    harness.run(scenario)


def test_statements_that_list(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.until(lambda: len(coordinator.sites()) == 4)
        await harness.until(lambda: coordinator.sites()[1].online and coordinator.sites()[2].online)
        await harness.start_query(coordinator, ROOMS)
        script = "SHOW SOURCES; SHOW TABLES; SHOW VIEWS; SHOW QUERIES; SHOW GATEWAYS"
        sources, tables, views, queries, gateways = await coordinator.execute(script)
        assert {r.kind for r in (sources, tables, views, queries, gateways)} == {ResultKind.ROWS}
        assert sources.rows[0][0] == "seatsensor"
        assert sources.rows[0][sources.columns.index("gateways")] == "gw-1, gw-2"
        assert [row[0] for row in tables.rows][:2] == ["machines", "machinesoftware"]
        assert ("reachable", True) in [row[:2] for row in views.rows]
        assert queries.rows[0][:2] == ("q1", "q1")
        assert [row[:2] for row in gateways.rows] == [
            ("base", "base"),
            ("gw-1", "gateway"),
            ("gw-2", "gateway"),
            ("static", "static"),
        ]
        (described,) = await coordinator.execute("DESCRIBE Machines")
        assert described.rows == (("mid", "TEXT", "key"), ("rid", "TEXT", ""))
        with pytest.raises(BindingError, match="nothing with the name 'nothing'"):
            await coordinator.execute("DESCRIBE nothing")

    harness.run(scenario)


def test_explain_before_and_while_running(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.until(lambda: any(s.site == "gw-2" for s in coordinator.sites()))
        (text,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {ROOMS}")
        assert text.text.startswith("Fragment f0 [BASE: base] -> result")
        assert "GATEWAY x 2: gw-1, gw-2" in text.text
        (data,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED, FORMAT JSON) {ROOMS}")
        assert data.data["version"] == 1
        assert [f["engine"] for f in data.data["fragments"]] == ["base", "gateway"]
        (logical,) = await coordinator.execute(f"EXPLAIN (TYPE LOGICAL) {ROOMS}")
        assert "Scan stream roomsensor" in logical.text
        (valid,) = await coordinator.execute(f"EXPLAIN (TYPE VALIDATE) {ROOMS}")
        assert valid.text == "valid: (rid TEXT, status TEXT)"
        with pytest.raises(
            UnsupportedError, match="EXPLAIN ANALYZE needs a running query, but no query with"
        ):
            await coordinator.execute(f"EXPLAIN ANALYZE {ROOMS}")
        with pytest.raises(
            UnsupportedError, match="only queries, views, alarms and sinks have a plan"
        ):
            await coordinator.execute("EXPLAIN (TYPE FEDERATED) SHOW SOURCES")
        assert federation.fragments() == set()
        sizes: list[int] = []
        observer = federation.broker.client("observer")
        observer.on_messages(lambda burst: sizes.extend(len(m.payload) for m in burst))
        await observer.connect()
        await observer.subscribe(federation.topics.exchange(sender="gw-1"))
        query = await harness.start_query(coordinator, ROOMS)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1", "open")])
        await harness.until(
            lambda: (
                coordinator.explain(query).data["traffic"].get("gw-1", {}).get("bytes")
                == sum(sizes)
                > 0
            )
        )
        running = coordinator.explain(query)
        assert running.data["batches"]["gw-1"] == {"sent": len(sizes), "received": 0}
        assert f"{sum(sizes):,} bytes" in running.text
        await observer.close()
        assert running.text.startswith("Query q1 version 1: 1 rows, 1 changes")
        assert running.data["rows"] == 1
        (analyzed,) = await coordinator.execute(f"EXPLAIN ANALYZE\n{ROOMS}")
        assert analyzed.text.startswith("Query q1 version 1: 1 rows, 1 changes")
        assert analyzed.data is None
        (data,) = await coordinator.execute(f"EXPLAIN ANALYZE (FORMAT JSON) {ROOMS}")
        assert data.data["rows"] == 1

    harness.run(scenario)


def test_statements_that_are_refused_change_nothing(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        before = coordinator.definitions()
        for text, error in [
            ("SELECT nothing FROM RoomSensor", QueryError),
            ("SELEC 1", QueryError),
            ("CREATE SOURCE RoomSensor (a TEXT)", BindingError),
            ("CREATE VIEW v AS SELECT nothing FROM RoomSensor", BindingError),
            ("INSERT INTO RoomSensor VALUES ('r1', 'open')", UnsupportedError),
        ]:
            with pytest.raises(error):
                await coordinator.execute(text)
        with pytest.raises(UnsupportedError) as refusal:
            await coordinator.execute("ADVANCE TIME BY '1 s'")
        assert refusal.value.code == "local_only"
        assert coordinator.definitions() == before
        assert coordinator.queries() == ()
        with pytest.raises(QueryError) as late:
            await coordinator.execute(f"{ROOMS}; SELECT nothing FROM RoomSensor")
        (query,) = coordinator.queries()  # earlier statements stay done
        told = f"line 1: query {query.id} runs; DROP QUERY {query.id} stops it"
        assert late.value.carried_out == (told,)
        with pytest.raises(QueryError) as later:
            await coordinator.execute(f"DROP QUERY {query.id}; SELECT nothing FROM RoomSensor")
        assert later.value.carried_out == (f"line 1: query {query.id} stopped",)
        assert coordinator.queries() == ()

    harness.run(scenario)


def test_validation_says_where(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.coordinator(define_schema=True)
        good = await coordinator.validate(f"CREATE VIEW v AS {ROOMS};\nSELECT rid FROM v")
        assert (good.diagnoses, good.columns) == ((), ("rid",))
        bad = await coordinator.validate(
            "SELECT rid FROM RoomSensor;\nSELECT nothing FROM RoomSensor"
        )
        (diagnosis,) = bad.diagnoses
        assert (diagnosis.line, diagnosis.column, diagnosis.text) == (2, 8, "nothing")
        (syntax,) = (await coordinator.validate("SELEC 1")).diagnoses
        assert (syntax.line, syntax.column) == (1, 1)
        assert all(d.name != "v" for d in coordinator.definitions())

    harness.run(scenario)


@pytest.mark.parametrize(
    "payload", [b"\xff\xfe", b"{", b"[" * 2_000, b'{"online": 1}', encode_json({"a": "x" * 99})]
)
def test_bad_payloads_are_counted_and_set_aside(harness: Any, payload: bytes) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS)
        letters: list[bytes] = []
        stranger = federation.broker.client("stranger")
        await stranger.connect()
        stranger.on_messages(lambda burst: letters.extend(m.payload for m in burst))
        await stranger.subscribe(federation.topics.dead())
        topics = federation.topics
        for topic in (
            topics.state("gw-9"),
            topics.birth("gw-9"),
            topics.link("gw-9", "link", "a", "b"),
            topics.output(query, "base"),
            topics.flow("base"),
            topics.error(query, "base"),
        ):
            stranger.publish(topic, payload)
            stranger.publish(topic, payload)
        await harness.until(lambda: coordinator.figures.bad_payloads == 12)
        await harness.until(lambda: len(letters) >= 6)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1", "open")])
        await stranger.close()

    harness.run(scenario)


LINKS = (("a", "gw-1", 1.0, "link", "gw-1"), ("a", "gw-2", 2.0, "link", "gw-2"))


def test_links_come_change_and_go_with_their_gateway(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        for name, cost in (("gw-1", 1.0), ("gw-2", 2.0)):
            client = federation.sites[name].client
            link = LinkMessage("a", name, cost)
            topic = federation.topics.link(name, "link", "a", name)
            client.publish(topic, encode_json(link), retain=True)
        await harness.until(lambda: coordinator.links() == LINKS)
        second = federation.sites["gw-2"].client
        second.publish(federation.topics.link("gw-2", "link", "a", "gw-2"), b"", retain=True)
        await harness.until(lambda: coordinator.links() == LINKS[:1])
        federation.broker.cut("gw-1")
        await harness.until(lambda: coordinator.links() == ())

    harness.run(scenario)


MAC, V4, V6 = "a0:f3:c1:96:94:06", "172.16.40.24", "fe80::1%wlan0"


def test_links_of_two_sources_of_a_gateway_keep_apart_whatever_their_ends_are(harness: Any) -> None:
    """Also the table sys_links has all of them, and a link without a cost has none."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        (started,) = await coordinator.execute("SELECT * FROM sys_links")
        client = federation.sites["gw-1"].client
        told = [
            ("mesh", MAC, V4, None),
            ("wifi", MAC, V4, 2.0),
            ("mesh", V4, V6, 0.0),
            ("mesh", V6, MAC, None),
        ]
        for relation, source, target, cost in told:
            levels = [level_of(text) for text in (relation, source, target)]
            payload = encode_json(LinkMessage(source, target, cost))
            client.publish(federation.topics.link("gw-1", *levels), payload, retain=True)
        rows = {(s, t, cost, relation, "gw-1") for relation, s, t, cost in told}
        await harness.until(lambda: set(coordinator.links()) == rows)
        await harness.until(lambda: set(coordinator.relation(started.query.id)) == rows)

    harness.run(scenario)


def test_output_of_a_query_nobody_knows_is_stopped_at_its_site(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator()
        client = federation.sites["base"].client
        topic = federation.topics.fragment("q99", "base")
        client.publish(topic, b"anything", retain=True)
        await harness.until(lambda: ("q99", "base") in federation.fragments())
        batch = DeltaBatch(version=1, epoch=1, seq=0, port="f0", reset=True)
        client.publish(federation.topics.output("q99", "base"), encode_packed(batch))
        await harness.until(lambda: ("q99", "base") not in federation.fragments())
        assert coordinator.queries() == ()

    harness.run(scenario)
