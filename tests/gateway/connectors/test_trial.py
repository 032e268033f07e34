"""Trials run a connector beside the engine: bounded, one at a time, nothing emitted."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest

from gateway.connectors import registry
from gateway.connectors.registry import ConnectorRegistry
from gateway.connectors.trial import SourceTrials, TrialSite
from gateway.connectors.trial_capture import PER_TOPIC
from gateway.testing import until
from gateway.testing_connectors import TELLING, TellingConnector, declared
from streamsql.errors import DeploymentError
from streamsql.wire.source_orders import SourceOrder
from streamsql.wire.trial_messages import MAX_SHOWN, SourceTrial, TrialReport, TrialSample

ENDPOINTS: dict[str, dict[str, Any]] = {
    "home": {"connector": "telling", "password": "hunter2"},
    "wrong": {"connector": "telling", "pasword": "hunter2"},
    "gone": {"connector": "telex"},
}


class Site:
    """Trials at a gateway, and what they have reported."""

    def __init__(self) -> None:
        site = TrialSite("gw-1", ENDPOINTS, ConnectorRegistry(), lambda: 7)
        self.reports: list[TrialReport] = []
        self.trials = SourceTrials(site, self.reports.append)

    def of(self, trial_id: str = "t1") -> list[TrialReport]:
        return [report for report in self.reports if report.id == trial_id]

    @property
    def samples(self) -> list[TrialSample]:
        return [sample for report in self.reports for sample in report.samples]

    def start(self, trial_id: str = "t1", *, endpoint: str = "home", **changes: Any) -> None:
        order = SourceOrder(1, declared(endpoint=endpoint))
        self.trials.start(trial_id, SourceTrial((order,), **{"seconds": 20.0, **changes}))

    async def connector(self) -> TellingConnector:
        await until(lambda: "home" in TellingConnector.running, "it runs")
        return TellingConnector.running["home"]

    async def ended(self, trial_id: str = "t1") -> TrialReport:
        await until(lambda: any(r.done for r in self.of(trial_id)), "the trial has ended")
        return self.of(trial_id)[-1]


@pytest.fixture(autouse=True)
def _telling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "telling", TELLING)
    TellingConnector.forget()
    yield
    TellingConnector.forget()


def run(scenario: Callable[[Site], Awaitable[None]]) -> Site:
    async def bounded() -> Site:
        site = Site()
        async with asyncio.timeout(30):
            await scenario(site)
            await site.trials.close()
        return site

    return asyncio.run(bounded())


def test_payloads_come_as_they_are_with_rows_and_problems() -> None:
    async def scenario(site: Site) -> None:
        site.start()
        connector = await site.connector()
        assert connector.context is not None
        assert connector.context.is_trial
        connector.tell("air", b'{"device": "a", "celsius": 21.5}', room="hall")
        connector.tell("air", b'{"device": "b", "celsius": "warm"}')
        connector.tell("air", b"\xff")
        await until(lambda: len(site.samples) == 3, "they are reported while it runs")
        assert not site.of()[-1].done

    site = run(scenario)
    first, second, third = site.samples
    assert (first.payload, first.rows) == (
        b'{"device": "a", "celsius": 21.5}',
        (("a", 21.5),),
    )
    assert first.facts == {"gateway": "gw-1", "endpoint": "home", "topic": "air", "room": "hall"}
    assert second.rows == (("b", None),)
    assert "'warm' is no number" in second.problems[0]
    assert third.rows == ()
    assert [r.number for r in site.of()] == list(range(len(site.of())))
    assert site.of()[-1].done


def test_it_ends_when_it_has_enough_and_no_topic_hides_the_others() -> None:
    async def scenario(site: Site) -> None:
        site.start(payloads=PER_TOPIC + 2)
        connector = await site.connector()
        for _ in range(50):
            connector.tell("air", b'{"device": "a", "celsius": 1}')
        await asyncio.sleep(0)
        assert connector.context is not None
        source = connector.context.sources[0]
        for topic in ("other/1", "other/2", "other/3"):
            source.read(b"{}", topic=topic)
        await site.ended()

    site = run(scenario)
    topics = [sample.facts["topic"] for sample in site.samples]
    assert topics == ["air"] * PER_TOPIC + ["other/1", "other/2"]
    assert site.of()[-1].dropped == 50 - PER_TOPIC + 1
    assert not TellingConnector.running


def test_payloads_are_cut_unless_they_are_wanted_whole() -> None:
    async def scenario(site: Site) -> None:
        long = b'{"device": "a", "celsius": 1, "x": "' + b"x" * 30_000 + b'"}'
        for trial_id, whole in (("t1", False), ("t2", True)):
            site.start(trial_id, payloads=1, whole=whole)
            (await site.connector()).tell("air", long)
            await site.ended(trial_id)

    site = run(scenario)
    assert [len(sample.payload) for sample in site.samples] == [MAX_SHOWN, 30_038]
    assert [sample.size for sample in site.samples] == [30_038, 30_038]
    assert all(sample.rows == (("a", 1.0),) for sample in site.samples)


def test_records_are_shown_as_json() -> None:
    async def scenario(site: Site) -> None:
        site.start(payloads=1)
        context = (await site.connector()).context
        assert context is not None
        context.sources[0].read_record({"device": "a", "celsius": 2.0, "odd": {1}})
        await site.ended()

    (sample,) = run(scenario).samples
    assert sample.is_record
    assert msgspec.json.decode(sample.payload)["celsius"] in (2.0, "2.0")
    assert sample.rows == (("a", 2.0),)


def test_one_trial_at_a_time_and_it_can_be_stopped() -> None:
    async def scenario(site: Site) -> None:
        site.start("t1")
        await site.connector()
        site.start("t2")
        refused = await site.ended("t2")
        assert "tries another source" in refused.problem
        site.trials.stop("t2")
        assert "home" in TellingConnector.running
        site.trials.stop("t1")
        await site.ended("t1")
        site.start("t3", seconds=0.05)
        await site.ended("t3")

    site = run(scenario)
    assert site.of("t1")[-1].problem == site.of("t3")[-1].problem == ""
    assert not TellingConnector.running


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (
            "nowhere",
            "gateway gw-1: endpoint 'nowhere' is unknown here; there are: gone, home, wrong",
        ),
        ("gone", "endpoint gone is of connector telex here, not telling"),
        ("wrong", "endpoint wrong has no option `pasword`"),
    ],
)
def test_what_cannot_be_tried_is_said(endpoint: str, words: str) -> None:
    async def scenario(site: Site) -> None:
        site.start(endpoint=endpoint)
        assert words in (await site.ended()).problem

    run(scenario)


def test_a_connector_that_fails_is_said_without_secrets() -> None:
    TellingConnector.refusing["home"] = DeploymentError("wrong password hunter2", hint="change it")

    async def scenario(site: Site) -> None:
        site.start()
        report = await site.ended()
        assert "hunter2" not in report.problem
        assert (report.problem[:14], report.hint) == ("wrong password", "change it")

    run(scenario)
