"""Why a row is there and what a deletion would do, over real engine sites and real messages."""

import asyncio
from typing import Any

import pytest

from deploy.explainer import EngineExplainer
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus, ResultKind
from federated_optimizer.coordinator.explaining.known_base_rows import leaf_query
from streamsql.algebra.row_explanations import leaves_of
from streamsql.errors import BindingError, DeploymentError, UnsupportedError
from streamsql.syntax import parse_statement
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import QueryProblem
from tests.streamsql.from_text import bound_query

LINKS = (("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 3.0), ("c", "d", 2.0))


async def linked(federation: Any) -> Any:
    """Return a coordinator with an engine over two gateways that know links."""
    await federation.site("base", "base")
    static = await federation.site("static", "static", sources=("machines", "machinesoftware"))
    static.put("machines", ("m1", "r1"), ("m2", "r2"))
    for number, links in ((1, LINKS[:2]), (2, LINKS[2:])):
        site = await federation.site(f"gw-{number}")
        site.put("link", *links)
    return await federation.coordinator(define_schema=True, explainer=EngineExplainer())


def supports(result: Any) -> list[set[tuple[str, str]]]:
    return [{(b["row"]["src"], b["row"]["dst"]) for b in s} for s in result.data["supports"]]


def test_why_reads_the_base_rows_of_all_gateways(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        query = await harness.start_query(coordinator, "SELECT src, dst FROM reachable")
        await harness.until(lambda: len(coordinator.relation(query)) == 6)
        result = await coordinator.rows.why_row(query, ["a", "d"])
        assert result.kind == ResultKind.TEXT
        assert supports(result) == [
            {("a", "c"), ("c", "d")},
            {("a", "b"), ("b", "c"), ("c", "d")},
        ]
        assert result.data["complete"]
        assert "link('a', 'c', 3.0) AND link('c', 'd', 2.0)" in result.text
        assert "These 2 are all minimal combinations." in result.text
        # Nothing is left of the helpers, and the query still runs.
        assert [q.id for q in coordinator.queries()] == [query]
        await harness.until(lambda: {q for q, _ in federation.fragments()} == {query})

    harness.run(scenario)


def test_what_if_names_what_goes_and_what_comes_of_every_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        text = "SELECT src, dst, cost FROM cheapest_path"
        cheapest = await harness.start_query(coordinator, text, name="cheapest")
        await harness.start_query(coordinator, "SELECT src FROM Link", name="ends")
        await harness.start_query(coordinator, "SELECT rid FROM RoomSensor", name="rooms")
        await harness.until(lambda: len(coordinator.relation(cheapest)) == 6)
        result = await coordinator.rows.what_if_deleted([("Link", ["a", "b"])])
        by_name = {query["query"]: query for query in result.data["queries"]}
        assert set(by_name) == {"cheapest", "ends"}
        assert by_name["cheapest"]["gone"] == [
            {"src": "a", "dst": "b", "cost": 1.0},
            {"src": "a", "dst": "c", "cost": 2.0},
            {"src": "a", "dst": "d", "cost": 4.0},
        ]
        assert by_name["cheapest"]["come"] == [
            {"src": "a", "dst": "c", "cost": 3.0},
            {"src": "a", "dst": "d", "cost": 5.0},
        ]
        assert by_name["ends"]["gone"] == [{"src": "a"}]
        assert result.text.startswith("Without link('a', 'b', 1.0):\nquery cheapest: 3 of 6 rows")
        one = await coordinator.rows.what_if_deleted([("link", ["a", "b"])], query_id="ends")
        assert [query["query"] for query in one.data["queries"]] == ["ends"]
        assert len(coordinator.relation(cheapest)) == 6

    harness.run(scenario)


def test_the_statement_asks_of_all_running_queries_or_of_one_by_its_name(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        (none,) = await coordinator.execute("EXPLAIN WHAT IF DELETE link('a', 'b')")
        assert none.text.startswith("no running query reads it; add FOR (query)")
        text = "SELECT src, dst, cost FROM cheapest_path"
        cheapest = await harness.start_query(coordinator, text, name="cheapest")
        ends = await harness.start_query(coordinator, "SELECT src FROM Link", name="ends")
        await harness.start_query(coordinator, "SELECT rid FROM RoomSensor", name="rooms")
        await harness.until(lambda: len(coordinator.relation(cheapest)) == 6)
        (both,) = await coordinator.execute("EXPLAIN WHAT IF DELETE link('a', 'b');")
        assert [query["query"] for query in both.data["queries"]] == ["cheapest", "ends"]
        assert both.text.startswith("Without link('a', 'b', 1.0):\nquery cheapest: 3 of 6 rows")
        (data,) = await coordinator.execute("EXPLAIN (FORMAT JSON) WHAT IF DELETE link('a', 'b')")
        assert (data.text, data.data) == ("", both.data)
        for name in ("ends", ends):
            (one,) = await coordinator.execute(f"EXPLAIN WHAT IF DELETE link('a', 'b') FOR {name}")
            assert [query["query"] for query in one.data["queries"]] == ["ends"]
        with pytest.raises(BindingError, match="the query does not read link"):
            await coordinator.execute("EXPLAIN WHAT IF DELETE link('a', 'b') FOR rooms")
        with pytest.raises(BindingError, match="no source, table or view 'nothing'"):
            await coordinator.execute("EXPLAIN WHAT IF DELETE link('a', 'b') FOR nothing")
        with pytest.raises(
            BindingError, match="no base row has these values, so nothing would change"
        ):
            await coordinator.execute("EXPLAIN WHAT IF DELETE link('z')")
        fine = ("EXPLAIN WHAT IF DELETE link('a')", "EXPLAIN WHAT IF DELETE link('a') FOR ends")
        assert [(await coordinator.validate(text)).diagnoses for text in fine] == [()] * len(fine)
        assert (await coordinator.validate("EXPLAIN WHAT IF DELETE lnk('a')")).diagnoses != ()

    harness.run(scenario)


def test_what_if_a_gateway_dies_tells_what_its_death_does(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        federation.sites["gw-1"].put("link", ("c", "d", 2.0), ("x", "y", 1.0))  # both have c-d
        text = "SELECT src, dst, cost FROM cheapest_path"
        cheapest = await harness.start_query(coordinator, text, name="cheapest")
        await harness.until(lambda: len(coordinator.relation(cheapest)) == 7)
        before = sorted(coordinator.relation(cheapest))
        (told,) = await coordinator.execute("EXPLAIN WHAT IF DELETE GATEWAY 'gw-2'")
        assert told.text.startswith("Without gateway gw-2 (2 base rows):\nquery cheapest: ")
        (query,) = told.data["queries"]
        gone = [tuple(row.values()) for row in query["gone"]]
        come = [tuple(row.values()) for row in query["come"]]
        (other,) = await coordinator.execute("EXPLAIN WHAT IF DELETE GATEWAY 'gw-1' FOR cheapest")
        assert other.data["queries"][0]["come"] == [
            {"src": "a", "dst": "c", "cost": 3.0},
            {"src": "a", "dst": "d", "cost": 5.0},
        ]
        await federation.sites["gw-2"].stop()
        wanted = sorted([row for row in before if row not in gone] + come)
        await harness.until(lambda: sorted(coordinator.relation(cheapest)) == wanted)
        with pytest.raises(BindingError, match="no gateway 'gw-22'") as caught:
            await coordinator.execute("EXPLAIN WHAT IF DELETE GATEWAY 'gw-22'")
        assert caught.value.hint == "did you mean gw-2?"

    harness.run(scenario)


def test_what_if_a_node_dies_takes_all_its_links(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        reach = await harness.start_query(coordinator, "SELECT src, dst FROM reachable", name="r")
        await harness.until(lambda: len(coordinator.relation(reach)) == 6)
        (told,) = await coordinator.execute("EXPLAIN WHAT IF DELETE NODE 'b', link('a', 'c')")
        assert told.text.splitlines()[0] == "Without node b and rows of link (3 base rows):"
        assert told.data["deleted_count"] == 3
        (query,) = told.data["queries"]
        assert (query["gone_count"], query["come_count"]) == (5, 0)

    harness.run(scenario)


def test_what_if_is_about_alarms_and_the_map_too(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        for origin in ("map", "user", "session"):
            text = "SELECT src, dst FROM Link"
            await coordinator.execute(text, name=f"of-{origin}", origin=origin)
        await coordinator.execute("CREATE ALARM cut AS SELECT src FROM Link SEVERITY 'warning'")
        (told,) = await coordinator.execute("EXPLAIN WHAT IF DELETE link('a', 'b')")
        named = [query["query"] for query in told.data["queries"]]
        assert (named[0], named[-1], len(named)) == ("of-user", "of-map", 3)

    harness.run(scenario)


def test_what_if_passes_over_queries_that_have_failed(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        reach = await harness.start_query(coordinator, "SELECT src, dst FROM reachable", name="r")
        failed = await harness.start_query(coordinator, "SELECT src FROM Link", name="failed")
        await harness.until(lambda: len(coordinator.relation(reach)) == 6)
        problem = QueryProblem("recursion_limit", "too many rows", "", 0, "base")
        topic = federation.topics.error(failed, "base")
        federation.sites["base"].client.publish(topic, encode_json(problem), retain=True)
        await harness.until_status(coordinator, failed, QueryStatus.FAILED)
        result = await coordinator.rows.what_if_deleted([("Link", ["a", "b"])])
        assert [query["query"] for query in result.data["queries"]] == ["r"]

    harness.run(scenario)


def test_confidence_comes_from_a_column(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        gateway = federation.sites["gw-1"]
        await coordinator.execute(
            "CREATE VIEW pairs (src, dst) AS SELECT l.src, r.dst FROM Link l, Link r "
            "WHERE l.dst = r.src"
        )
        gateway.put("link", ("x", "y", 0.5), ("y", "z", 0.5), ("x", "w", 0.25), ("w", "z", 1.0))
        query = await harness.start_query(coordinator, "SELECT src, dst FROM pairs")
        await harness.until(lambda: ("x", "z") in coordinator.relation(query))
        result = await coordinator.rows.why_row(query, ["x", "z"], confidence="link.cost")
        assert result.data["confidence"]["exact"]
        assert result.data["confidence"]["probability"] == pytest.approx(0.4375)
        assert "Probability by link.cost: 0.4375" in result.text
        with pytest.raises(BindingError, match=r"link\.cost is 3\.0 in link\('a', 'c', 3\.0\)"):
            await coordinator.rows.why_row(query, ["a", "d"], confidence="link.cost")
        with pytest.raises(BindingError, match="is not a column of a source that the query reads"):
            await coordinator.rows.why_row(query, ["x", "z"], confidence="rooms.pdr")
        with pytest.raises(BindingError, match="no numeric column"):
            await coordinator.rows.why_row(query, ["x", "z"], confidence="link.src")

    harness.run(scenario)


def test_statements_ask_about_any_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        text = """
        EXPLAIN WHY (SELECT src, dst FROM reachable) ROW ('a', 'd') WITH (limit = 1);
        EXPLAIN WHAT IF DELETE link('c', 'd'), link('b') FOR (SELECT src, dst FROM reachable);
        EXPLAIN (FORMAT JSON) CONFIDENCE (SELECT src, dst FROM Link WHERE cost < 2.0)
          USING link.cost LIMIT 1;
        """
        why, what_if, sure = await coordinator.execute(text)
        assert supports(why) == [{("a", "c"), ("c", "d")}]
        assert not why.data["complete"]
        assert "Cut off" in why.text
        (query,) = what_if.data["queries"]
        assert query["gone_count"] == 4
        assert what_if.text.startswith("Without link('b', 'c', 1.0) and link('c', 'd', 2.0):")
        assert sure.text == ""
        assert sure.data["total"] == 2
        assert sure.data["rows"][0]["row"] == {"src": "a", "dst": "b"}
        assert sure.data["rows"][0]["confidence"]["probability"] == 1.0
        assert coordinator.queries() == ()
        wrong = (await coordinator.validate("EXPLAIN WHY reachable ROW ('a')")).diagnoses
        assert [d.message for d in wrong] == ["1 values for a row of 2 columns"]

    harness.run(scenario)


def test_wrong_questions_are_refused_with_the_reason(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await linked(federation)
        query = await harness.start_query(coordinator, "SELECT src, dst FROM reachable")
        rows = coordinator.rows
        with pytest.raises(BindingError, match="not a row of the result: 1 values for 2 columns"):
            await rows.why_row(query, ["a"])
        with pytest.raises(BindingError, match="limit is a whole number"):
            await rows.why_row(query, ["a", "b"], limit=0)
        with pytest.raises(KeyError):
            await rows.why_row("nothing", ["a", "b"])
        with pytest.raises(BindingError, match="there is no source or table 'nothing'"):
            await rows.what_if_deleted([("nothing", ["a"])])
        with pytest.raises(
            BindingError, match="no base row has these values, so nothing would change"
        ):
            await rows.what_if_deleted([("link", ["a", "zzz"])])
        with pytest.raises(BindingError, match="does not read roomsensor"):
            await rows.what_if_deleted([("RoomSensor", ["r1"])], query_id=query)
        absent = await rows.why_row(query, ["d", "a"])
        assert not absent.data["holds"]
        assert absent.text == "('d', 'a') is not in the result."
        assert [q.id for q in coordinator.queries()] == [query]

    harness.run(scenario)


def test_a_console_without_an_engine_says_so(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        with pytest.raises(DeploymentError, match="this console has no engine that explains rows"):
            await coordinator.rows.why_row(query, ["r1"])

    harness.run(scenario)


def test_silent_sites_end_the_question(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator(
            define_schema=True, explainer=EngineExplainer(), base_seconds=1.0
        )
        machines = await harness.start_query(coordinator, "SELECT mid FROM Machines")
        with pytest.raises(DeploymentError, match=r"waiting for .*static"):
            await coordinator.rows.why_row(machines, ["m1"])
        assert len(coordinator.queries()) == 1

    harness.run(scenario)


def test_large_sources_end_the_question(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        gateway = await federation.site("gw-1")
        gateway.put("link", *((f"n{i}", f"n{i + 1}", 1.0) for i in range(30)))
        coordinator = await federation.coordinator(
            define_schema=True, explainer=EngineExplainer(), base_seconds=60, max_base_rows=20
        )
        reach = await harness.start_query(coordinator, "SELECT src FROM Link")
        with pytest.raises(UnsupportedError, match="more than 20 rows"):
            await coordinator.rows.why_row(reach, ["n1"])
        assert len(coordinator.queries()) == 1

    harness.run(scenario)


def test_questions_do_not_hold_up_other_statements(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        coordinator = await federation.coordinator(
            define_schema=True, explainer=EngineExplainer(), base_seconds=600
        )
        machines = await harness.start_query(coordinator, "SELECT mid FROM Machines")
        asked = asyncio.create_task(coordinator.rows.why_row(machines, ["m1"]))
        await harness.until(lambda: len(coordinator.queries()) == 2)
        await coordinator.execute("CREATE VIEW one AS SELECT rid FROM RoomSensor")
        assert not asked.done()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert [query.id for query in coordinator.queries()] == [machines]

    harness.run(scenario)


@pytest.mark.parametrize(
    "text",
    [
        "Link",
        "Temperature [RANGE 90 SECONDS]",
        "Temperature [RANGE 1.5 SECONDS SLIDE 500 MILLISECONDS]",
        "Temperature [ROWS 5]",
        "Temperature [PARTITION BY rid ROWS 5]",
        "Temperature [NOW]",
        "Machines",
    ],
)
def test_leaf_queries_read_just_that_leaf(harness: Any, text: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.coordinator(define_schema=True)
        planner = coordinator._planner
        (leaf,) = leaves_of(planner.bind(parse_statement(f"SELECT * FROM {text}")).plan)
        assert leaves_of(bound_query(leaf_query(leaf), coordinator._shared.catalog).plan) == (leaf,)

    harness.run(scenario)
