"""Trials at the coordinator: asked of gateways, bounded, forgotten; silent gateways are said."""

import asyncio
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Freshness, SiteInfo
from federated_optimizer.coordinator.planning_processes import OnTheLoop
from federated_optimizer.coordinator.trials import source_trials
from federated_optimizer.coordinator.trials.source_trials import MAX_KEPT, SourceTrials
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from streamsql.mapping.offers import MAX_RECORDS, OfferedRecord, OfferedValue
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import EndpointState, SiteRole, SiteState
from streamsql.wire.trial_messages import TRIAL, SourceTrial, TrialReport, TrialSample


def site(name: str, *endpoints: EndpointState, online: bool = True) -> SiteInfo:
    state = SiteState(online=True, epoch=1, ts=0, role=SiteRole.GATEWAY, endpoints=endpoints)
    return SiteInfo(
        name,
        SiteRole.GATEWAY,
        online=online,
        freshness=Freshness.LIVE,
        epoch=1,
        since=0,
        state=state,
        figures=state,
    )


SITES = (
    site("away", EndpointState("home", "mqtt", listens=True), online=False),
    site("east", EndpointState("strips", "http", listens=True)),
    site(
        "west",
        EndpointState("home", "mqtt", listens=True),
        EndpointState("plant", "sql", browses=True),
        EndpointState("meter", "modbus"),
    ),
)


class World:
    """Trials, and the commands that they send."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Command]] = []
        self.trials = SourceTrials(self.send, lambda: SITES, lambda: ["climate"], OnTheLoop())

    def send(self, site: str, verb: str, command: Command) -> None:
        self.sent.append((site, verb, command))

    def listen(self, **more: Any) -> str:
        return self.trials.listen("", "home", {"topic": "#"}, **more).id


def heard(payload: bytes, **more: Any) -> TrialSample:
    return TrialSample(1, "listening", payload, len(payload), facts={"topic": "a/b"}, **more)


def test_the_gateway_that_has_the_endpoint_and_is_online_is_asked() -> None:
    world = World()
    trial = world.trials.listen("", "home", {"topic": "tele/#"}, seconds=3.0, payloads=7)
    ((place, verb, command),) = world.sent
    assert (place, verb, command.id) == ("west", "sample", trial.id)
    asked = decode_json(str(command.arguments[TRIAL]).encode(), SourceTrial)
    assert (asked.seconds, asked.payloads, asked.whole) == (3.0, 7, False)
    mapping = asked.orders[0].definition.mapping
    assert mapping is not None
    assert (mapping.connector, mapping.options) == ("mqtt", (("topic", "tele/#"),))


def test_reports_count_once_and_in_any_order() -> None:
    world = World()
    trial = world.listen()
    assert world.trials.waits_for("west", trial)
    assert not world.trials.waits_for("east", trial)
    for number, payload in ((0, b"1"), (1, b"2"), (0, b"1")):
        world.trials.heard(trial, TrialReport(trial, number, (heard(payload),)))
    assert [sample.payload for sample in world.trials.info(trial).samples] == [b"1", b"2"]
    world.trials.heard(trial, TrialReport(trial, 2, problem="lost", hint="look", done=True))
    info = world.trials.info(trial)
    assert (info.problem, info.hint, info.done) == ("lost", "look", True)
    assert not world.trials.waits_for("west", trial)


def test_a_gateway_that_keeps_silent_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr(source_trials, "ANSWER_SECONDS", -60.0)
    info = world.trials.info(world.listen())
    assert info.done
    assert info.problem == "gateway west does not answer"


def test_what_a_gateway_reports_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_trials, "MAX_WHOLE_BYTES", 10)
    world = World()
    trial = world.listen()
    world.trials.heard(trial, TrialReport(trial, 0, (heard(b"x" * 15),)))
    world.trials.heard(trial, TrialReport(trial, 1, (heard(b"x" * 15),)))
    info = world.trials.info(trial)
    assert (len(info.samples), info.done) == (1, True)


def test_old_trials_are_forgotten() -> None:
    world = World()
    first = world.listen()
    for _ in range(MAX_KEPT):
        world.listen()
    with pytest.raises(KeyError):
        world.trials.info(first)


def test_a_gateway_that_is_away_leaves_no_trial_behind() -> None:
    world = World()

    def refuse(*_: object) -> None:
        raise DeploymentError("site west is not online")

    trials = SourceTrials(refuse, lambda: SITES, list, OnTheLoop())
    with pytest.raises(DeploymentError, match="not online"):
        trials.listen("", "home", {"topic": "#"})
    with pytest.raises(DeploymentError, match="takes up to 30 s"):
        world.listen(seconds=31.0)


def test_records_and_cut_payloads_are_mapped_or_said() -> None:
    text = (
        "CREATE SOURCE m (power DOUBLE FROM 'input:12', KEY (power)) "
        "WITH (connector = 'modbus', endpoint = 'home', unit = '1')"
    )

    async def scenario() -> None:
        world = World()
        trial = (await world.trials.try_statement("west", text)).id
        record = heard(b'{"input:12": 3.5}', is_record=True)
        cut = TrialSample(1, "m", b'{"inp', 90_000, is_record=True)
        broken = heard(b"{", is_record=True)
        world.trials.heard(trial, TrialReport(trial, 0, (record, cut, broken)))
        mapped = await world.trials.map(trial, text)
        first, second, third = mapped.samples
        assert first.rows == ((3.5,),)
        assert second.problems == ("90,000 bytes are too many to be tried here",)
        assert third.problems
        assert await world.trials.propose(trial) == ()

    asyncio.run(scenario())


def test_proposals_avoid_names_of_the_catalog() -> None:
    async def scenario() -> None:
        world = World()
        trial = world.listen()
        sample = TrialSample(1, "listening", b'{"t": 1}', 8, facts={"topic": "hall/climate"})
        world.trials.heard(trial, TrialReport(trial, 0, (sample,)))
        (proposal,) = await world.trials.propose(trial)
        assert proposal.name == "climate_2"

    asyncio.run(scenario())


def offered(name: str, *values: OfferedValue) -> OfferedRecord:
    return OfferedRecord(name, values, {"table": name, "watermark": "id"})


READING = offered("reading", OfferedValue("id", "id", DataType.INTEGER, sample=7))
LOG = offered("log", OfferedValue("line", "line", DataType.TEXT, sample="ok"))


def test_a_device_that_can_tell_is_asked_what_it_offers() -> None:
    world = World()
    trial = world.trials.listen("", "plant", {}).id
    asked = decode_json(str(world.sent[0][2].arguments[TRIAL]).encode(), SourceTrial)
    assert asked.browse
    records = (
        TrialSample(1, "listening", b'{"id": 7}', 9, is_record=True),
        TrialSample(1, "listening", b'{"line": "ok"}', 14, is_record=True),
    )
    report = TrialReport(trial, 0, records, offers=(READING, LOG), done=True)
    world.trials.heard(trial, report)
    found = asyncio.run(world.trials.propose(trial))
    assert [proposal.name for proposal in found] == ["reading", "log"]
    (log,) = asyncio.run(world.trials.propose(trial, chosen={"log": ["line"]}))
    mapped = asyncio.run(world.trials.map(trial, log.text))
    assert [(sample.rows, sample.ignored) for sample in mapped.samples] == [
        ((), True),
        ((("ok",),), False),
    ]


def test_offers_beyond_the_bound_end_the_trial() -> None:
    world = World()
    trial = world.trials.listen("", "plant", {}).id
    for number in range(3):
        report = TrialReport(trial, number, offers=(READING,) * MAX_RECORDS)
        world.trials.heard(trial, report)
    info = world.trials.info(trial)
    assert (len(info.offers), info.done) == (2 * MAX_RECORDS, True)


def test_devices_that_can_tell_nothing_are_said() -> None:
    with pytest.raises(DeploymentError, match="cannot list what there is"):
        World().trials.listen("", "meter", {})
