"""A connector per endpoint: checked, run, restarted with pauses, replaced, stopped."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from gateway.connectors import running_connectors
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.lost_cancellation import raise_if_cancelled
from gateway.connectors.registry import BuiltIn, ConnectorRegistry
from gateway.connectors.running_connectors import EndpointRunner, RunningConnectors, Runtime
from gateway.connectors.testing.observed_run import Recorder
from gateway.testing import until
from gateway.testing_connectors import TELLING, TellingConnector, declared
from streamsql.data.types import DataType, Value
from streamsql.mapping.mapper import Mapper
from streamsql.wire.site_messages import SensorDescription

PLAIN = {"connector": "telling", "password": "hunter2"}


class Port(Recorder):
    """Keeps what comes, also what is described."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = {"place": 3}

    @override
    def describe(self, sensors: Sequence[SensorDescription], rooms: Sequence[str]) -> None:
        self.described = (tuple(sensors), tuple(rooms))


class Simulated(TellingConnector):
    """Can be told what to do."""

    def command(self, action: str, arguments: dict[str, Value]) -> str:
        if action != "knock":
            raise ValueError(f"unknown action {action!r}")
        return f"{action} at {arguments['door']}"


class Ending(TellingConnector):
    """Comes to its end by itself."""

    async def run(self, context: ConnectorContext) -> None:
        context.note("with password hunter2")


class Grouped(TellingConnector):
    """Loses its connection in a group of tasks; each life asks first whether it is cancelled."""

    async def run(self, context: ConnectorContext) -> None:
        raise_if_cancelled()
        self.started.append(context.endpoint_name)

        async def lose() -> None:
            await asyncio.sleep(0)
            raise ConnectionError("the connection was lost")

        ended: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(lose())
                group.create_task(asyncio.Event().wait())
        except* ConnectionError as errors:
            ended = errors.exceptions[0]
        if ended is not None:
            raise ended from None


class Breaking(TellingConnector):
    """Fails in a group of tasks while it is cancelled, so that the cancellation is lost."""

    async def run(self, context: ConnectorContext) -> None:
        async def fail_at_the_end() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise ConnectionError("the connection was lost")

        async with asyncio.TaskGroup() as group:
            group.create_task(fail_at_the_end())
            await super().run(context)


class Lingering(TellingConnector):
    """Ends some turns after it is cancelled, as one that says goodbye to its device."""

    at_once = 0
    most = 0

    async def run(self, context: ConnectorContext) -> None:
        Lingering.at_once += 1
        Lingering.most = max(Lingering.most, Lingering.at_once)
        try:
            await super().run(context)
        finally:
            for _ in range(50):
                await asyncio.sleep(0)
            Lingering.at_once -= 1


class Cancelled(TellingConnector):
    """Ends as if somebody had cancelled it."""

    async def run(self, context: ConnectorContext) -> None:
        self.started.append(context.endpoint_name)
        raise asyncio.CancelledError


class World:
    """One endpoint."""

    def __init__(self, settings: dict[str, Any], built_in: dict[str, BuiltIn]) -> None:
        self.port = Port()
        self.closed: list[tuple[str, str]] = []
        self.runner = EndpointRunner(
            "home",
            settings,
            Runtime(
                gateway="gw-1",
                clock=lambda: 42,
                registry=ConnectorRegistry(built_in=built_in),
                open_port=lambda *_of: self.port,
                close_port=lambda *of: self.closed.append(of),
                kept=self.kept,
                make_mapper=Mapper,
                correction=lambda: 2,
            ),
        )

    async def kept(self) -> None:
        """At once."""

    async def running(self, life: int = 1) -> TellingConnector:
        await until(lambda: TellingConnector.started.count("home") >= life, "it is started")
        return TellingConnector.running["home"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(running_connectors, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(running_connectors, "RESTART_SECONDS", 0.02)
    TellingConnector.forget()
    yield
    TellingConnector.forget()


def run(
    scenario: Callable[[World], Coroutine[Any, Any, None]],
    settings: dict[str, Any] | None = None,
    built_in: BuiltIn = TELLING,
) -> None:
    async def whole() -> None:
        world = World(settings or PLAIN, {"telling": built_in})
        try:
            async with asyncio.timeout(60):
                await scenario(world)
        finally:
            await world.runner.stop()

    asyncio.run(whole())


def test_it_is_given_its_sources_its_settings_and_its_memory() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared(), declared("noise", topic="sound")])
        context = (await world.running()).context
        assert context is not None
        assert [source.name for source in context.sources] == ["climate", "noise"]
        assert context.endpoint == {"password": "hunter2"}
        assert (context.gateway, context.endpoint_name) == ("gw-1", "home")
        assert context.memory == {"place": 3}

    run(scenario)


def test_a_wrong_source_leaves_the_others_alone() -> None:
    async def scenario(world: World) -> None:
        options = (("topic", "t"), ("interval", "soon"))
        path = msgspec.structs.replace(declared("path").mapping, rows="[[")  # type: ignore[type-var]
        wrong = msgspec.structs.replace(declared("path"), mapping=path)
        world.runner.serve([declared("wrong", options=options), wrong, declared()])
        (await world.running()).tell("air", b'{"device": "k1", "celsius": 20}')
        assert [reading.source for reading in world.port.readings] == ["climate"]
        assert "source wrong: `interval`: 'soon' is not a duration" in world.runner.problem_of(
            "wrong"
        )
        assert world.runner.problem_of("path") != ""
        assert world.runner.problem_of("climate") == ""

    run(scenario)


def test_with_no_source_that_is_right_it_waits_for_others() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared(options=())])
        await until(lambda: world.runner.problem_of("climate") != "", "it is refused")
        assert TellingConnector.started == []
        world.runner.serve([declared(version=2)])
        await world.running()
        assert world.runner.problem_of("climate") == ""

    run(scenario)


def test_wrong_settings_of_the_endpoint_are_its_problem_and_no_value_is_shown() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        await until(lambda: world.runner.problem_of("climate") != "", "it is refused")
        assert world.runner.problem_of("climate") == (
            "endpoint home: `password` has to be a text, not a list (known options: url, password)"
        )

    run(scenario, {"connector": "telling", "password": ["hunter2"]})


def test_a_misspelt_setting_of_the_endpoint_names_it_once() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        await until(lambda: world.runner.problem_of("climate") != "", "it is refused")
        assert world.runner.problem_of("climate") == (
            "endpoint home has no option `pasword` "
            "(did you mean password?; known options: url, password)"
        )

    run(scenario, {"connector": "telling", "pasword": "hunter2"})


def test_a_fault_is_shown_and_tried_again_after_pauses_that_double(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def counted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def scenario(world: World) -> None:
        TellingConnector.refusing["home"] = ConnectionError("no route; password hunter2")
        monkeypatch.setattr(asyncio, "sleep", counted)
        world.runner.serve([declared()])
        for _ in range(10_000):
            if len(TellingConnector.started) >= 14:
                break
            await sleep(0.001)
        monkeypatch.setattr(asyncio, "sleep", sleep)
        problem = world.runner.problem_of("climate")
        assert problem == "endpoint home: ConnectionError: no route; password ***"
        grown = [pause for pause in pauses if pause]
        assert grown[:4] == [0.02, 0.04, 0.08, 0.16]
        assert max(grown) <= running_connectors.RESTART_MOST_SECONDS
        assert not any("hunter2" in fault for fault in world.port.faults)

    run(scenario)


def test_a_problem_is_over_when_readings_come_again() -> None:
    async def scenario(world: World) -> None:
        TellingConnector.refusing["home"] = ConnectionError("no route")
        world.runner.serve([declared()])
        await until(lambda: world.runner.problem != "", "it fails")
        del TellingConnector.refusing["home"]
        await until(lambda: "home" in TellingConnector.running, "it runs")
        assert world.runner.problem != "", "nobody knows yet"
        TellingConnector.running["home"].tell("air", b'{"device": "k1"}')
        assert world.runner.problem_of("climate") == ""

    run(scenario)


def test_a_changed_source_replaces_the_connector_and_counts_go_on() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        former = await world.running()
        former.tell("air", b'{"device": "k1", "celsius": 20}')
        former.tell("air", b"no JSON")
        world.runner.serve([declared(version=2)])
        again = await world.running(2)
        with pytest.raises(asyncio.CancelledError, match="another connector serves the endpoint"):
            former.tell("air", b'{"device": "k2", "celsius": 20}')
        again.tell("air", b'{"device": "k3", "celsius": 20}')
        assert former.context is not None
        former.context.problem("the connection was lost")
        assert world.runner.problem_of("climate") == ""
        assert [r.values["device"] for r in world.port.readings] == ["k1", "k3"]
        source = world.runner.sources["climate"]
        assert (source.rows, source.bad) == (2, 1)
        assert source.last_bad.startswith("payload:")

    run(scenario)


def test_a_fault_of_a_connector_that_is_replaced_is_no_problem_of_the_next_one() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        await world.running()
        world.runner.serve([declared(version=2)])
        world.runner.serve([declared(version=3)])
        await world.running(2)
        await asyncio.sleep(0)
        assert world.port.faults == []
        assert world.runner.problem == ""

    run(scenario, built_in=BuiltIn(__name__, "Breaking"))


def test_however_fast_sources_change_one_connector_ends_before_another_begins() -> None:
    async def scenario(world: World) -> None:
        Lingering.at_once = Lingering.most = 0
        world.runner.serve([declared()])
        await world.running()
        for version in range(2, 6):
            world.runner.serve([declared(version=version)])
            await asyncio.sleep(0)
        await until(lambda: world.runner.sources["climate"].definition.version == 5, "the newest")
        await world.running(2)
        assert Lingering.most == 1
        world.runner.serve([declared(version=6)])
        await asyncio.sleep(0)
        assert await world.runner.stop()
        assert Lingering.at_once == 0

    run(scenario, built_in=BuiltIn(__name__, "Lingering"))


def test_devices_that_start_again_obey_no_command() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        await world.running()
        world.runner.serve([declared(version=2)])
        with pytest.raises(ValueError, match="endpoint home is starting again"):
            world.runner.simulate("knock", {"door": "2"})
        await world.running(2)
        assert world.runner.simulate("knock", {"door": "2"}) == "knock at 2"

    run(scenario, built_in=BuiltIn(__name__, "Simulated"))


def test_the_same_sources_again_change_nothing() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        connector = await world.running()
        world.runner.serve([declared()])
        for _ in range(20):
            await asyncio.sleep(0)
        assert TellingConnector.running["home"] is connector
        assert TellingConnector.started == ["home"]

    run(scenario)


def test_without_sources_it_ends_and_its_port_is_closed() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        await world.running()
        world.runner.serve([])
        await until(lambda: "home" not in TellingConnector.running, "it has ended")
        assert world.closed == [("home", "telling")]

    run(scenario)


def test_one_that_ends_by_itself_is_not_started_again() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        await until(lambda: len(world.port.notes) == 2, "it says so")
        assert world.port.notes == ["with password ***", "its connector has ended"]

    run(scenario, built_in=BuiltIn(__name__, "Ending"))


def test_a_connector_that_is_not_there_is_not_looked_for_again() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        await until(lambda: world.runner.problem != "", "it is missing")
        assert "connector 'satellite' is not installed" in world.runner.problem_of("climate")
        assert len(world.port.faults) == 1

    run(scenario, {"connector": "satellite"})


@pytest.mark.parametrize("connector", ["Grouped", "Cancelled"])
def test_a_cancellation_that_nobody_asked_for_ends_no_later_instance(connector: str) -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        lives = TellingConnector.started
        await until(lambda: lives.count("home") >= 3, "it is started again and again")
        await until(lambda: world.runner.problem_of("climate") != "", "it is told")

    run(scenario, built_in=BuiltIn(__name__, connector))


def test_a_connector_that_is_stopped_is_cancelled_once() -> None:
    async def scenario(world: World) -> None:
        world.runner.serve([declared()])
        await world.running()
        assert await world.runner.stop()
        assert world.port.faults == []

    run(scenario)


def test_times_of_devices_that_go_by_this_machines_clock_are_left_to_intake() -> None:
    async def scenario(world: World) -> None:
        mapping = declared().mapping
        timed = declared(columns=(("device", DataType.TEXT), ("ts", DataType.TIMESTAMP)))
        assert mapping is not None
        world.runner.serve([msgspec.structs.replace(timed, time_column=1)])
        connector = await world.running()
        assert connector.context is not None
        assert connector.context.clock() == 40
        connector.tell("air", b'{"device": "d1"}')
        await until(lambda: bool(world.port.readings))
        assert world.port.readings[0].values["ts"] == 40, "intake adds the correction of 2"

    run(scenario, {**PLAIN, "correct_times": True})


def test_simulated_devices_follow_commands() -> None:
    async def scenario(world: World) -> None:
        assert world.runner.simulate("knock", {"door": "d1"}) is None, "nothing runs"
        world.runner.serve([declared()])
        await world.running()
        assert world.runner.simulate("knock", {"door": "d1"}) == "knock at d1"
        with pytest.raises(ValueError, match="unknown action 'dance'"):
            world.runner.simulate("dance", {})
        world.runner.serve([])
        assert world.runner.simulate("knock", {"door": "d1"}) is None, "nothing is read any more"

    run(scenario, built_in=BuiltIn(__name__, "Simulated"))


def test_a_command_is_for_the_endpoint_that_can_follow_it() -> None:
    async def whole() -> None:
        world = World(PLAIN, {"telling": BuiltIn(__name__, "Simulated")})
        runtime = world.runner._runtime
        connectors = RunningConnectors({"home": PLAIN, "other": PLAIN}, runtime)
        try:
            answer = connectors.simulate({"action": "knock", "door": "d1"})
            assert answer == {"done": False, "message": "nothing is simulated here"}
            connectors.serve({"other": [declared(endpoint="other")]})
            await until(lambda: "other" in TellingConnector.running)
            answer = connectors.simulate({"action": "knock", "door": "d1"})
            assert answer == {"done": True, "message": "knock at d1"}
            answer = connectors.simulate({"action": "dance"})
            assert answer == {"done": False, "message": "unknown action 'dance'"}
        finally:
            await connectors.stop()

    asyncio.run(whole())


def test_the_state_of_a_source_has_its_version_its_counts_and_its_problem() -> None:
    async def whole() -> None:
        runtime = World(PLAIN, {"telling": TELLING}).runner._runtime
        connectors = RunningConnectors({"home": PLAIN}, runtime)
        good, wrong = (
            declared(version=7),
            declared("wrong", options=(("topic", "t"), ("soon", "1"))),
        )
        try:
            connectors.serve({"home": [good, wrong]})
            await until(lambda: "home" in TellingConnector.running, "it is started")
            running = TellingConnector.running["home"]
            running.tell("air", b'{"device": "k1", "celsius": 20}')
            running.tell("air", b"nonsense")
            state = connectors.state_of(good, "home")
            assert (state.name, state.version, state.endpoint) == ("climate", 7, "home")
            assert (state.problem, state.rows, state.bad) == ("", 1, 1)
            assert "JSON" in state.last_bad
            refused = connectors.state_of(wrong, "home")
            assert "soon" in refused.problem
            assert (refused.rows, refused.bad, refused.last_bad) == (0, 0, "")
        finally:
            await connectors.stop()

    asyncio.run(whole())
