"""A query that takes too much of a gateway is stopped by name; others go on, after restarts too."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from broker.broker_testing import BrokerProcess
from gateway.gateway_settings import GatewaySettings, StepSettings
from gateway.site.step_guard import StepGuard
from gateway.site.stopped_queries import StoppedQueries
from gateway.testing import SEATS, fill_disk
from host.mqtt import Message
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.errors import StepBudgetError
from streamsql.syntax import CreateFunction, parse_statement
from streamsql.wire.codec import decode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import QueryProblem
from tests.gateway.processes import (
    TOPICS,
    GatewayProcess,
    Listener,
    base,
    replaying,
)
from tests.streamsql.from_text import bound_query

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

SECONDS = 1.0
ROWS = 60
PRODUCT = (
    "SELECT COUNT(*) AS n FROM seatsensor a, seatsensor b, seatsensor c, seatsensor d, "
    "seatsensor e WHERE a.weight + b.weight + c.weight + d.weight + e.weight < 0"
)
"""60**5 rows are 780 million."""
LARGE = (
    "SELECT a.mid || b.mid || c.mid || d.mid AS t "
    "FROM seatsensor a, seatsensor b, seatsensor c, seatsensor d"
)
STALLING = "SELECT STALL(weight) AS x FROM seatsensor"


def bundle_of(query: str, text: str, version: int = 1) -> FragmentBundle:
    catalog = Catalog((SEATS,))
    stall = parse_statement(
        "CREATE FUNCTION stall(weight DOUBLE) RETURNS DOUBLE AS 'tests.gateway.stalling:stall'"
    )
    assert isinstance(stall, CreateFunction)
    catalog.define(define(stall, catalog))
    plan = bound_query(text, catalog).plan
    fragment = Fragment("f0", Engine.GATEWAY, plan, ("gw-1",))
    return FragmentBundle(query, version, (fragment,), plan.schema, text=text)


class World:
    """A gateway, a base site that collects its rows as q1, and what is said of other queries."""

    def __init__(self, broker: BrokerProcess, folder: Path, step: StepSettings) -> None:
        (folder / "gw-1.csv").write_text(
            "ts,mid,weight\n" + "".join(f"{n + 1},m{n:02},{n}.5\n" for n in range(ROWS))
        )
        settings = replaying(
            folder, broker.url, "gw-1", step=step, functions="tests.gateway.stalling"
        )
        self.gateway = GatewayProcess(folder, settings)
        self.base = GatewayProcess(folder, base(folder, broker.url))
        self.listener = Listener(broker.url)
        self.problems: dict[str, QueryProblem] = {}
        self.stopped = Path(settings.data_dir) / "stopped_queries.json"

    async def begin(self) -> None:
        await self.listener.start()
        self.listener.client.on_messages(self._take)
        self.gateway.start()
        self.base.start()
        self.listener.install("gw-1")
        await self.answers()

    def _take(self, burst: list[Message]) -> None:
        self.listener._take(burst)
        for message in burst:
            match TOPICS.parts(message.topic):
                case ["q", query, "error", "gw-1"]:
                    self.problems.pop(query, None)
                    if message.payload:
                        self.problems[query] = decode_json(message.payload, QueryProblem)
                case _:
                    pass

    def install(self, bundle: FragmentBundle | None, query: str) -> None:
        payload = b"" if bundle is None else encode_packed(bundle)
        self.listener.client.publish(TOPICS.fragment(query, "gw-1"), payload, retain=True)

    async def answers(self) -> None:
        """Wait until q1 has all rows, beginning with none."""
        self.listener.out.contents.clear()
        self.listener.ask()
        await self.listener.until(lambda: len(self.listener.rows()) == ROWS, "q1 answers")

    async def told(self, query: str) -> QueryProblem:
        await self.listener.until(lambda: query in self.problems, f"a word on {query}")
        return self.problems[query]

    def cpu(self) -> float:
        assert self.gateway.process is not None
        times = psutil.Process(self.gateway.process.pid).cpu_times()
        return float(times.user + times.system)


def run(
    broker: BrokerProcess,
    folder: Path,
    scenario: Callable[[World], Coroutine[Any, Any, None]],
    step: StepSettings,
) -> None:
    async def whole() -> None:
        world = World(broker, folder, step)
        try:
            async with asyncio.timeout(250):
                await world.begin()
                await scenario(world)
        finally:
            for process in (world.gateway, world.base):
                print(f"--- {process.name}\n{process.log()}")  # noqa: T201
                with contextlib.suppress(AssertionError):
                    process.stop()
            await world.listener.client.close()

    asyncio.run(whole())


def test_a_query_that_works_too_long_is_stopped_and_stays_stopped(
    real_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        world.install(bundle_of("q2", PRODUCT), "q2")
        problem = await world.told("q2")
        assert (problem.code, problem.site) == ("step_budget", "gw-1")
        assert "q2" in problem.message
        assert "1 s of CPU" in problem.message
        assert "window" in problem.hint
        assert not world.gateway.ended()
        await world.answers()

        world.gateway.kill()
        world.problems.clear()
        world.gateway.start()
        assert (await world.told("q2")).code == "step_budget"
        await world.answers()

        world.problems.clear()
        spent = world.cpu()
        world.install(bundle_of("q2", PRODUCT, version=2), "q2")  # as replanning does
        assert (await world.told("q2")).code == "step_budget"
        assert world.cpu() - spent < SECONDS

        world.install(None, "q2")
        await world.listener.until(lambda: b"q2" not in world.stopped.read_bytes(), "q2 forgotten")
        world.problems.clear()
        world.install(bundle_of("q2", "SELECT COUNT(*) AS n FROM seatsensor"), "q2")
        await world.answers()
        assert "q2" not in world.problems

    run(real_broker, tmp_path, scenario, StepSettings(seconds=SECONDS))


def test_a_query_that_takes_too_much_memory_is_stopped(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        world.install(bundle_of("q2", LARGE), "q2")
        problem = await world.told("q2")
        assert problem.code == "step_budget"
        assert "bytes of memory" in problem.message
        await world.answers()

    step = StepSettings(seconds=60.0, max_bytes=200_000_000)
    run(embedded_broker, tmp_path, scenario, step)


def test_a_query_that_never_gives_the_interpreter_back_ends_the_process_once(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        world.install(bundle_of("q2", STALLING), "q2")
        await world.listener.until(world.gateway.ended, "the process ends itself")
        world.gateway.start()  # as its supervisor does
        problem = await world.told("q2")
        assert problem.code == "step_budget"
        assert "one of its operations used more than" in problem.message
        assert "stall" in world.gateway.log()
        await world.answers()

    run(embedded_broker, tmp_path, scenario, StepSettings(seconds=SECONDS))


def test_a_process_that_is_killed_in_a_long_step_twice_runs_the_query_no_more(
    embedded_broker: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario(world: World) -> None:
        world.install(bundle_of("q2", PRODUCT), "q2")
        note = tmp_path / "gw-1" / "in_step"

        def in_long_step(deaths: int) -> bool:
            noted = world.stopped.read_bytes() if world.stopped.exists() else b""
            return (f'"deaths":{deaths}'.encode() in noted or not deaths) and (
                note.exists() and note.read_bytes()[:3] == b"\2q2"
            )

        for deaths in range(2):
            await world.listener.until(partial(in_long_step, deaths), "a long step")
            assert "q2" not in world.problems
            world.gateway.kill()
            world.gateway.start()
        assert "died 2 times" in (await world.told("q2")).message
        await world.answers()

    run(embedded_broker, tmp_path, scenario, StepSettings(seconds=10.0))


def test_what_was_stopped_is_known_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "stopped.json"
    StoppedQueries(path).add("q1", "SELECT 1", StepBudgetError("too much", hint="less"))
    again = StoppedQueries(path)
    refused = again.refusal(FragmentBundle("q1", 7, (), SEATS.schema, text="SELECT 1"))
    assert isinstance(refused, StepBudgetError)
    assert (refused.message, refused.hint) == ("too much", "less")
    # A new catalog counts its queries from q1 on, too.
    assert again.refusal(FragmentBundle("q1", 1, (), SEATS.schema, text="SELECT 2")) is None
    again.discard("q1")
    assert (
        StoppedQueries(path).refusal(FragmentBundle("q1", 7, (), SEATS.schema, text="SELECT 1"))
        is None
    )


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"q1": 3}', b"\xff" * 100])
def test_a_damaged_list_of_stopped_queries_stops_nothing(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "stopped.json"
    path.write_bytes(content)
    stopped = StoppedQueries(path)
    assert stopped.refusal(FragmentBundle("q1", 1, (), SEATS.schema)) is None
    stopped.add("q1", "", StepBudgetError("too much"))
    assert StoppedQueries(path).refusal(FragmentBundle("q1", 1, (), SEATS.schema)) is not None


def test_settings_of_a_step_have_bounds(tmp_path: Path) -> None:
    for wrong in ({"seconds": 0.0}, {"seconds": float("nan")}, {"max_bytes": 1}):
        with pytest.raises(ValueError, match=r"step\."):
            StepSettings(**wrong)
    assert GatewaySettings("s", "g", "mqtt://localhost", str(tmp_path)).step.seconds == 20.0


def test_a_site_begins_on_a_disk_without_room_for_what_the_next_life_should_know(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill_disk(small_disk / "other")
    guard = StepGuard(
        small_disk, StepSettings(), StoppedQueries(small_disk / "stopped_queries.json")
    )
    guard.begin("q1")
    guard.end()
    guard.stop()
    assert "the reason of this stop cannot be recorded for the next start" in caplog.text
