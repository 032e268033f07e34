"""Sites report on themselves while a query reads it, and only then."""

import time

import pytest

from gateway.testing import until
from streamsql.algebra.operators import RemoteSource
from streamsql.catalog.system import SYS_OPERATORS, SYS_STREAM
from streamsql.data.types import Value
from streamsql.wire.codec import decode_compressed_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import FlowReport
from streamsql.wire.site_messages import SiteFlows
from streamsql.wire.site_settings import SchedulerKind, SiteSettings
from tests.gateway.site.federation import TOPICS, Federation, collecting, run
from tests.loop_turns import calls

SITES = ("base", "gw-1", "gw-2")


def watching(source: str = "sys_stream", query: str = "q1", version: int = 1) -> FragmentBundle:
    """Return the plan that collects what all sites tell, at the base site."""
    definition = SYS_STREAM if source == "sys_stream" else SYS_OPERATORS
    schema = definition.schema
    return FragmentBundle(
        query,
        version,
        (
            Fragment("f0", Engine.GATEWAY, definition.scan(), SITES, "f1", ("base",)),
            Fragment("f1", Engine.BASE, RemoteSource("f0", schema), ("base",)),
        ),
        schema,
    )


def figure(value: Value) -> float:
    """Return the value of a row."""
    assert isinstance(value, float)
    return value


async def three_sites(federation: Federation) -> None:
    """Start a base site and two gateways that report often."""
    await federation.begin(f"{TOPICS.root}/#")
    for name in SITES:
        site = await federation.site(name)
        site.host.reports.seconds = 0.1


def test_every_site_tells_of_its_operators() -> None:
    async def scenario(federation: Federation) -> None:
        await three_sites(federation)
        federation.install(collecting(query="q2"))
        federation.install(watching())
        await until(lambda: {row[1] for row in federation.rows()} == set(SITES), "all report")
        for _ in range(7):
            federation.sites["gw-1"].put("m1")
            federation.sites["gw-1"].put("m2")

        def counted() -> float:
            """The greatest number of rows that a site has told for the scan of seats."""
            return max(
                figure(row[6])
                for row in federation.rows()
                if row[1:4] == ("gw-1", "q2", "f0/0") and row[5] == "rows_out"
            )

        truth = federation.sites["gw-1"].engine.statistics
        await until(
            lambda: (
                counted()
                == next(
                    e.operators[0].rows_out
                    for e in truth()
                    if (e.query, e.fragment) == ("q2", "f0")
                )
                >= 2
            ),
            "the report tells what the engine has counted",
        )

    run(scenario)


def test_an_answer_about_sites_is_not_settled_before_a_period_was_measured() -> None:
    async def scenario(federation: Federation) -> None:
        await three_sites(federation)
        federation.sites["gw-1"].host.reports.seconds = 3600.0  # who is new does not wait so long
        federation.install(watching())
        reports = federation.sites["gw-1"].host.reports
        await until(lambda: bool(flows(federation, "gw-1")), "the first count")
        await until(lambda: not flows(federation, "gw-1")[-1].busy, "the count at rest")
        assert reports.count == 2
        assert all(flow.busy for flow in flows(federation, "gw-1")[:-1])
        federation.install(watching(query="q2"))
        await until(lambda: bool(flows(federation, "gw-1", "q2")), "a second reader")
        await until(lambda: not flows(federation, "gw-1", "q2")[-1].busy, "it is at rest, too")
        assert reports.count == 4
        assert not any(flow.busy for flow in flows(federation, "gw-1")[-1:])

    def flows(federation: Federation, site: str, query: str = "q1") -> list[FlowReport]:
        """Return what a site has told of its channels, oldest first."""
        told = [m.payload for m in federation.heard if m.topic == TOPICS.flow(site)]
        reports = [decode_compressed_packed(payload, SiteFlows).reports for payload in told]
        return [each[query] for each in reports if query in each]

    run(scenario)


def test_nothing_is_measured_or_sent_while_nobody_reads() -> None:
    async def scenario(federation: Federation) -> None:
        await three_sites(federation)
        federation.install(collecting())
        federation.sites["gw-1"].put("m1")
        await federation.until_rows(lambda: federation.expected("gw-1"))
        assert [site.host.reports.next_due() for site in federation.sites.values()] == [None] * 3
        assert [site.host.reports.count for site in federation.sites.values()] == [0, 0, 0]
        assert not [m for m in federation.heard if "sys_" in m.topic]
        federation.install(watching(query="q9"))
        await until(lambda: len(federation.told("/q/q9/out")) > 2, "reports come")
        federation.withdraw("q9", *SITES)
        await until(
            lambda: all(s.host.reports.next_due() is None for s in federation.sites.values()),
            "withdrawn",
        )
        await federation.broker.settle()
        counts = [site.host.reports.count for site in federation.sites.values()]
        messages = len(federation.told("/q/q9/"))
        for name, site in federation.sites.items():
            site.put(name)
            await calls(site.host, "_step", 1)
        await federation.broker.settle()
        assert [site.host.reports.count for site in federation.sites.values()] == counts
        assert len(federation.told("/q/q9/")) == messages

    run(scenario)


def test_a_query_that_reads_reports_does_not_cause_them() -> None:
    async def scenario(federation: Federation) -> None:
        await three_sites(federation)
        for site in federation.sites.values():
            site.host.reports.seconds = 0.3
        federation.install(watching())
        await until(lambda: len(federation.rows()) > 0, "the first report")
        reports, began = federation.sites["base"].host.reports, time.monotonic()
        before = reports.count
        await until(lambda: reports.count - before >= 3, "more reports")
        assert reports.count - before <= (time.monotonic() - began) / 0.3 + 1

    run(scenario)


def test_operators_come_and_go_with_their_queries() -> None:
    async def scenario(federation: Federation) -> None:
        await three_sites(federation)
        federation.install(watching("sys_operators"))

        def operators(query: str) -> set[tuple[object, ...]]:
            return {row[1:4] for row in federation.rows() if row[2] == query}

        own = {(site, "q1", "f0/0") for site in SITES} | {("base", "q1", "f1/0")}
        await until(lambda: operators("q1") == own, "the query sees itself")
        federation.install(collecting(query="q2"))
        seats = {("gw-1", "q2", "f0/0"), ("gw-2", "q2", "f0/0"), ("base", "q2", "f1/0")}
        await until(lambda: operators("q2") == seats, "a new query is told of")
        told = next(row for row in federation.rows() if row[1:3] == ("base", "q2"))
        assert told[5] == "f0"
        federation.withdraw("q2", *SITES)
        await until(lambda: operators("q2") == set(), "one that is stopped goes")

    run(scenario)


def test_an_operator_changes_how_a_site_works() -> None:
    async def scenario(federation: Federation) -> None:
        await three_sites(federation)
        engine = federation.sites["gw-1"].engine
        assert engine.settings == SiteSettings()
        federation.settings("gw-1", SiteSettings(scheduler=SchedulerKind.CHAIN, slice_ms=5))
        await until(lambda: engine.settings.scheduler == SchedulerKind.CHAIN, "it is told")
        assert federation.sites["gw-2"].engine.settings == SiteSettings()

    run(scenario)


def test_settings_come_back_with_a_restart_and_go_when_they_are_withdrawn() -> None:
    async def scenario(federation: Federation) -> None:
        await federation.begin()
        await federation.site("gw-1", settings=SiteSettings(queue_rows=7))
        engine = federation.sites["gw-1"].engine
        assert engine.settings.queue_rows == 7
        federation.settings("gw-1", SiteSettings(slice_ms=2.5, report_seconds=0.25))
        await until(lambda: engine.settings.slice_ms == 2.5, "it is told")
        await federation.sites["gw-1"].stop()
        again = await federation.site("gw-1", 2, settings=SiteSettings(queue_rows=7))
        await until(lambda: again.engine.settings.slice_ms == 2.5, "the next life is told")
        assert again.host.reports.seconds == 0.25
        federation.settings("gw-1", None)
        await until(lambda: again.engine.settings == SiteSettings(queue_rows=7), "withdrawn")

    run(scenario)


@pytest.mark.parametrize(
    "payload", [b"{", b'{"scheduler": "lottery"}', b'{"slice_ms": 0}', b'{"report_seconds": "x"}']
)
def test_settings_that_make_no_sense_are_dead_letters(payload: bytes) -> None:
    async def scenario(federation: Federation) -> None:
        await federation.begin(TOPICS.dead())
        site = await federation.site("gw-1")
        federation.console.publish(TOPICS.settings("gw-1"), payload, retain=True)
        await until(lambda: site.host.dead_letters.count == 1, "it is set aside")
        assert site.engine.settings == SiteSettings()
        await until(lambda: len(federation.told("/dead/gw-1")) == 1, "it is kept")

    run(scenario)


def test_channels_tell_batches_rows_and_bytes() -> None:
    async def scenario(federation: Federation) -> None:
        await three_sites(federation)
        federation.install(collecting(query="q2"))
        federation.install(watching())
        for number in range(5):
            federation.sites["gw-1"].put(f"m{number}")

        def sent() -> dict[str, float]:
            """What gw-1 has told last of its channel of q2."""
            mine = ("gw-1", "q2", "to base", "channel")
            told = sorted(row for row in federation.rows() if row[1:5] == mine)
            return {
                str(row[5]): figure(row[6])
                for row in told
                if row[5] in {"batches", "rows", "bytes", "rows_held"}
            }

        await until(lambda: len(sent()) == 4, "the channel is told")
        counts = federation.sites["gw-1"].host.traffic.to["q2", "base"]
        await until(lambda: sent()["rows"] == counts.rows >= 5, "it is what was sent")
        assert sent()["bytes"] == counts.bytes > 0
        assert sent()["rows_held"] == 5
        heard = ("base", "q2", "from gw-1", "channel", "rows")
        await until(
            lambda: counts.rows in [row[6] for row in federation.rows() if row[1:6] == heard],
            "the receiver has counted as many",
        )

    run(scenario)
