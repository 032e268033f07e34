"""Queries over what the federation tells about itself, on a running federation."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.audit_model import Outcome
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.facts import heard_facts, shown_facts
from host.mqtt import Message
from streamsql.errors import BindingError, QuerySyntaxError, UnsupportedError
from streamsql.syntax import parse_script
from streamsql.wire.codec import decode_json, decode_packed, encode_json
from streamsql.wire.messages import DeltaBatch, SystemRows
from streamsql.wire.site_messages import Birth, ConnectorState, SensorDescription, SiteState
from streamsql.wire.site_settings import ReportRequest, SchedulerKind, SiteSettings
from tests.loop_turns import calls

SELECTIVITY = """
SELECT s.site, s.query, s.value FROM sys_stream s
JOIN sys_operators o ON s.site = o.site AND s.query = o.query AND s.entity = o.entity
WHERE s.property = 'selectivity' AND o.operator LIKE 'Filter%celsius%'
"""


def quick(federation: Any) -> None:
    """Let all sites report often."""
    for site in federation.sites.values():
        site.host.reports.seconds = 0.1


def test_the_selectivity_of_a_filter_is_what_the_filter_does(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        quick(federation)
        hot = await harness.start_query(
            coordinator, "SELECT rid FROM temperature WHERE celsius > 30.0"
        )
        watch = await harness.start_query(coordinator, SELECTIVITY)
        await harness.until_status(coordinator, watch, QueryStatus.RUNNING)
        gateway = federation.sites["gw-1"]
        gateway.put("temperature", *((f"r{n}", 40.0 if n < 3 else 20.0) for n in range(12)))

        def told() -> set[float]:
            rows = coordinator.relation(watch)
            assert all(row[:2] != ("base", hot) for row in rows)
            return {row[2] for row in rows if row[:2] == ("gw-1", hot)}

        await harness.until(lambda: 0.25 in told(), "three of twelve")
        assert told() == {0.25}

    harness.run(scenario)


def test_filters_over_reports_run_where_the_reports_are(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        text = "SELECT site, value FROM sys_stream WHERE property = 'selectivity'"
        (plan,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {text}")
        assert "GATEWAY x 3: base, gw-1, gw-2" in plan.text
        assert plan.text.index("GATEWAY x 3") < plan.text.index("'selectivity'")

    harness.run(scenario)


def test_the_list_of_queries_is_a_table_that_follows(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        watch = await harness.start_query(
            coordinator, "SELECT name, status, rows FROM sys_queries", name="watch"
        )
        await harness.until_rows(coordinator, watch, [("watch", "running", 1)])
        await harness.start_query(coordinator, "SELECT rid FROM RoomSensor", name="rooms")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        both = [("watch", "running", 2), ("rooms", "running", 1)]
        await harness.until_rows(coordinator, watch, both)
        await harness.until(lambda: coordinator.query(watch).settled, "it comes to rest")
        before = coordinator.query(watch).changes
        await calls(coordinator._system, "look")
        assert coordinator.query(watch).changes == before
        await coordinator.execute("DROP QUERY rooms")
        await harness.until_rows(coordinator, watch, [("watch", "running", 1)])

    harness.run(scenario)


def test_operators_are_joined_with_every_query_that_reads_their_run(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        quick(federation)
        text = "SELECT rid, status FROM RoomSensor"
        names = ("first", "second", "third")
        first, second, _ = [await harness.start_query(coordinator, text, name=n) for n in names]
        await coordinator.stop(first)  # of whose name the run is
        own = await harness.start_query(coordinator, "SELECT mid FROM SeatSensor", name="own")
        watch = await harness.start_query(
            coordinator,
            "SELECT DISTINCT q.name, s.site FROM sys_queries q "
            "JOIN sys_operators s ON s.query = q.run WHERE s.site = 'gw-1' AND q.name <> 'watch'",
            name="watch",
        )
        await harness.until_rows(
            coordinator, watch, [(name, "gw-1") for name in ("own", "second", "third")]
        )
        for query, run in ((second, first), (own, own)):
            assert coordinator.query(query).run == run
            explained = coordinator.explain(query)
            assert explained.text.splitlines()[1] == f"Run {run}"
            assert explained.data["run"] == run

    harness.run(scenario)


def test_sites_sources_and_links_are_tables(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        sites = await harness.start_query(
            coordinator, "SELECT site, role, online FROM sys_gateways"
        )
        everybody = [
            ("base", "base"),
            ("gw-1", "gateway"),
            ("gw-2", "gateway"),
            ("static", "static"),
        ]
        await harness.until_rows(coordinator, sites, [(*site, True) for site in everybody])
        sources = await harness.start_query(
            coordinator, "SELECT source, site FROM sys_sources WHERE source LIKE '%seat%'"
        )
        owners = [("seatsensor", "gw-1"), ("seatsensor", "gw-2")]
        await harness.until_rows(coordinator, sources, owners)
        joined = await harness.start_query(
            coordinator,
            "SELECT g.site, COUNT(*) AS n FROM sys_gateways g JOIN sys_sources s "
            "ON s.site = g.site WHERE g.role = 'gateway' GROUP BY g.site",
        )
        await harness.until_rows(coordinator, joined, [("gw-1", 4), ("gw-2", 4)])
        federation.broker.cut("gw-2")
        away = [(*site, site[0] != "gw-2") for site in everybody]
        await harness.until_rows(coordinator, sites, away)

    harness.run(scenario)


def test_a_base_site_that_starts_again_is_given_the_tables_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, "SELECT site FROM sys_gateways")
        everybody = [("base",), ("gw-1",), ("gw-2",), ("static",)]
        await harness.until_rows(coordinator, query, everybody)
        await federation.sites["base"].stop()
        await federation.site("base", "base", epoch=2)
        await federation.site("gw-3")
        await harness.until_rows(coordinator, query, [*everybody, ("gw-3",)])

    harness.run(scenario)


def test_nothing_is_sent_for_queries_that_read_no_system_source(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1",)])
        heard: list[str] = []
        ear = federation.broker.client("ear")
        ear.on_messages(lambda burst: heard.extend(message.topic for message in burst))
        await ear.connect()
        await ear.subscribe(f"{federation.topics.root}/#")
        await calls(coordinator._system, "look")
        assert not [t for t in heard if t.endswith("/x/base/coordinator") or "sys_" in t]
        assert [site.host.reports.count for site in federation.sites.values()] == [0] * 4
        watch = await harness.start_query(coordinator, "SELECT site FROM sys_gateways")
        await harness.until_status(coordinator, watch, QueryStatus.RUNNING)
        assert [t for t in heard if t.endswith(f"/q/{watch}/x/base/coordinator")]
        assert [site.host.reports.count for site in federation.sites.values()] == [0] * 4
        await ear.close()

    harness.run(scenario)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE SOURCE sys_stream (a TEXT)", "sys_stream is a system source"),
        ("CREATE VIEW sys_links AS SELECT 1 AS a", "sys_links is a system source"),
        ("DROP SOURCE sys_operators", "sys_operators is a system source"),
        ("DROP TABLE sys_queries", "sys_queries is a system source"),
    ],
)
def test_nobody_changes_system_sources(harness: Any, text: str, words: str) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.coordinator()
        with pytest.raises(BindingError, match=words):
            await coordinator.execute(text)

    harness.run(scenario)


def test_windows_by_count_need_the_site(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        with pytest.raises(UnsupportedError, match="stay at the site that they describe"):
            await coordinator.execute("SELECT value FROM sys_stream [ROWS 10]")
        await coordinator.execute("SELECT value FROM sys_stream [PARTITION BY site ROWS 10]")

    harness.run(scenario)


def test_settings_reach_the_site_and_outlive_coordinator_and_site(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        changed = await coordinator.change_site("gw-1", {"scheduler": "chain", "slice_ms": 5})
        assert coordinator.site_settings("gw-1") == changed
        gateway = federation.sites["gw-1"]
        await harness.until(lambda: gateway.engine.settings == changed, "the site is told")
        assert federation.sites["gw-2"].engine.settings == SiteSettings()
        await coordinator.close()
        federation.coordinators.clear()
        again = await federation.coordinator()
        await gateway.stop()
        gateway = await federation.site("gw-1", epoch=2)
        await harness.until(lambda: gateway.engine.settings == changed, "the next life is told")
        assert again.site_settings("gw-1") == changed
        with pytest.raises(KeyError):
            again.site_settings("static")
        with pytest.raises(BindingError, match="slice_ms is above 0"):
            await again.change_site("gw-1", {"slice_ms": -1})
        assert again.site_settings("gw-1") == changed

    harness.run(scenario)


def test_results_and_jobs_are_told_through_the_base_site(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        asked = federation.topics.reports("static")
        query = await harness.start_query(coordinator, "SELECT rid FROM RoomSensor")
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "open"))
        await harness.until_rows(coordinator, query, [("r1",), ("r2",)])
        assert not getattr(federation.broker.retained.get(asked), "payload", b"")
        watch = await harness.start_query(
            coordinator,
            "SELECT site, query, property, value FROM sys_stream WHERE kind IN ('result', 'job')",
        )
        mine = ("coordinator", query, "rows", 2.0)
        await harness.until(lambda: mine in coordinator.relation(watch), "the result is told")
        await harness.until(lambda: asked in federation.broker.retained, "the engine is asked")
        assert decode_json(federation.broker.retained[asked].payload, ReportRequest).seconds == 1.0
        jobs = SystemRows(7, 0, ((query, "f1", "job", "last_ms", 12.5),))
        topic = federation.topics.observation("static", "sys_stream")
        for _ in range(2):  # the broker may deliver twice
            federation.sites["static"].client.publish(topic, encode_json(jobs))
        told = ("static", query, "last_ms", 12.5)
        await harness.until(lambda: told in coordinator.relation(watch), "the job is told")
        assert coordinator.relation(watch).count(told) == 1
        await coordinator.stop(watch)
        await harness.until(
            lambda: not getattr(federation.broker.retained.get(asked), "payload", b""),
            "the engine may be quiet",
        )

    harness.run(scenario)


def test_a_statement_changes_a_site(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        text = "ALTER SITE gw-1 SET (scheduler = 'chain', slice_ms = 2.5, share_synopses = false)"
        (result,) = await coordinator.execute(text)
        assert ("slice_ms", "2.5") in result.rows
        engine = federation.sites["gw-1"].engine
        chain = SiteSettings(scheduler=SchedulerKind.CHAIN, slice_ms=2.5, share_synopses=False)
        await harness.until(lambda: engine.settings == chain, "the site is told")
        (result,) = await coordinator.execute("ALTER SITE \"gw-1\" SET (slice_ms = 'none')")
        assert {("share_synopses", "off"), ("slice_ms", "none")} < set(result.rows)
        assert coordinator.site_settings("gw-1").slice_ms is None
        for wrong, words in (
            ("ALTER SITE gw-9 SET (slice_ms = 1)", "no gateway or base site 'gw-9'"),
            ("ALTER SITE gw-1 SET (scheduler = 'lottery')", "no scheduler 'lottery'"),
            ("ALTER SITE gw-1 SET (colour = 'red')", "no setting 'colour'"),
            ("ALTER SITE gw-1 SET (queue_rows = 'many')", "invalid setting"),
        ):
            with pytest.raises(BindingError, match=words):
                await coordinator.execute(wrong)
        for wrong in ("ALTER SITE SET (a = 1)", "ALTER SITE gw-1", "ALTER SITE g w SET (a = 1)"):
            with pytest.raises(QuerySyntaxError):
                await coordinator.execute(wrong)

    harness.run(scenario)


PAGE = Path(__file__).resolve().parents[4] / "docs" / "introspection.md"
EXAMPLES = [
    statement.text
    for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for statement in parse_script(block)
]
QUIET = ("HAVING", "NOT online", "sys_links", "sys_facts", "sys_decisions", "resting >")
"""Examples that have nothing to show in a federation where all is well."""


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8


def test_the_examples_of_the_page_run_and_show_something(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        work = "SELECT rid, celsius FROM temperature WHERE celsius > 30.0"
        await harness.start_query(coordinator, work, name="work")
        coordinator.audit.note(None, "sign in", "ann", Outcome.REFUSED)
        watching: dict[str, str] = {}
        for text in EXAMPLES:
            (result,) = await coordinator.execute(text)
            if result.query is not None:
                watching[text] = result.query.id
        shown: set[str] = set()
        missing = list(watching)
        for reading in range(200):
            federation.sites["gw-1"].put("temperature", ("r1", 20.0 + reading % 20))
            await asyncio.sleep(0.1)
            shown |= {text for text, query in watching.items() if coordinator.query(query).rows}
            missing = [t for t in watching if t not in shown and not any(q in t for q in QUIET)]
            if not missing:
                break
        assert not missing
        for text, query in watching.items():
            assert coordinator.query(query).status in {QueryStatus.RUNNING, QueryStatus.STARTING}, (
                text
            )

    harness.run(scenario)


def test_the_audit_is_a_table_that_follows(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        text = "SELECT who, action, target, outcome FROM sys_audit WHERE action = 'sign in'"
        query = await harness.start_query(coordinator, text)
        await harness.until_rows(coordinator, query, [])
        coordinator.audit.note(None, "sign in", "ann", Outcome.REFUSED, "wrong password")
        await harness.until_rows(coordinator, query, [("", "sign in", "ann", "refused")])

    harness.run(scenario)


def test_facts_are_what_sites_have_counted(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_facts, "SHOWN_MICROSECONDS", 0)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        text = "SELECT subject, part, value, confidence > 0.8, origin FROM sys_facts"
        rates = await harness.start_query(
            coordinator, f"{text} WHERE quantity = 'inserts a second'"
        )
        sensors = await harness.start_query(coordinator, f"{text} WHERE quantity = 'sensors'")
        began = time.time_ns() // 1000
        for site, readings in (("gw-1", 900), ("gw-2", 300)):
            connector = ConnectorState("motes", "motes", ("Temperature",), readings=readings)
            times: Any = {"started": began - 600_000_000, "connectors": (connector,)}
            told = SiteState(True, 1, began, **times)
            client, topics = federation.sites[site].client, federation.topics
            client.publish(topics.state(site), encode_json(told), retain=True)
            seats = tuple(SensorDescription(f"s{n}", "seatsensor") for n in range(readings // 100))
            birth = Birth(site, 1, 1, began, sensors=seats, sources=federation.sites[site].sources)
            client.publish(topics.birth(site), encode_json(birth), retain=True)
        counted = "counted at the sites"
        await harness.until_rows(
            coordinator,
            rates,
            [
                ("temperature", site, rate, True, counted)
                for site, rate in (("gw-1", 1.5), ("gw-2", 0.5))
            ],
        )
        announced = "announced by the gateways"
        await harness.until_rows(
            coordinator,
            sensors,
            [
                ("seatsensor", site, n, True, announced)
                for site, n in (("gw-1", 9.0), ("gw-2", 3.0))
            ],
        )
        costs = await harness.start_query(
            coordinator, "SELECT value FROM sys_costs WHERE cost LIKE '%an equality'"
        )
        await harness.until_rows(coordinator, costs, [(0.1,)])
        await harness.until(lambda: coordinator.query(costs).settled, "it comes to rest")
        # The broker keeps the last state, not the first one; who has just started confirms nothing.
        silent = SiteState(True, 1, began, started=began)
        for site in ("gw-1", "gw-2"):
            topic = federation.topics.state(site)
            federation.sites[site].client.publish(topic, encode_json(silent), retain=True)
        await coordinator.close()
        federation.coordinators.clear()
        again = await federation.coordinator()
        await harness.until_rows(
            again,
            rates,
            [
                ("temperature", site, rate, True, counted)
                for site, rate in (("gw-1", 1.5), ("gw-2", 0.5))
            ],
        )

    harness.run(scenario)


def test_the_share_that_passes_a_filter_is_a_fact(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_facts, "SHOWN_MICROSECONDS", 0)
    monkeypatch.setattr(heard_facts, "LOOK_MICROSECONDS", 0)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        text = "SELECT rid FROM temperature WHERE celsius > 30.0 AND rid <> 'r0'"
        await harness.start_query(coordinator, text)
        facts = await harness.start_query(
            coordinator,
            "SELECT subject, part, value, low <= 0.25 AND high >= 0.25 AS within FROM sys_facts "
            "WHERE kind = 'predicate'",
        )
        await harness.until_status(coordinator, facts, QueryStatus.RUNNING)
        for site in ("gw-1", "gw-2"):
            rows = [(f"r{n}", 40.0 if n % 4 == 1 else 20.0) for n in range(200)]
            federation.sites[site].put("temperature", *rows)
        predicate = "celsius > 30.0 AND rid <> 'r0'"
        wanted = [("temperature", predicate, 0.25, True)]
        await harness.until_rows(coordinator, facts, wanted)

    harness.run(scenario)


def test_the_bytes_of_a_row_are_those_on_the_broker(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_facts, "SHOWN_MICROSECONDS", 0)
    monkeypatch.setattr(heard_facts, "LOOK_MICROSECONDS", 0)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        heard: list[Message] = []
        ear = federation.broker.client("ear")
        ear.on_messages(heard.extend)
        await ear.connect()
        await ear.subscribe(f"{federation.topics.root}/#")
        query = await harness.start_query(coordinator, "SELECT celsius FROM temperature")
        topics = [federation.topics.exchange(query, "base", site) for site in ("gw-1", "gw-2")]
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        facts = await harness.start_query(
            coordinator, "SELECT part, value FROM sys_facts WHERE quantity = 'bytes a row'"
        )
        for site in ("gw-1", "gw-2"):
            federation.sites[site].put("temperature", *((f"r{n}", 20.5 + n) for n in range(40)))
        await harness.until(lambda: len(coordinator.relation(query)) == 80, "all rows are there")

        def told() -> float:
            rows = coordinator.relation(facts)
            return float(rows[0][1]) if rows else 0.0

        def sent() -> float:
            sizes = [message.payload for message in heard if message.topic in topics]
            rows = sum(len(decode_packed(payload, DeltaBatch).deltas) for payload in sizes)
            return sum(map(len, sizes)) / rows

        await harness.until(lambda: told() == pytest.approx(sent(), rel=0.005), "as on the broker")
        assert coordinator.relation(facts)[0][0] == "celsius"
        await ear.close()

    harness.run(scenario)
