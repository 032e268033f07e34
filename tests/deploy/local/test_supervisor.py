"""What the supervisor decides when services die, are asked for again, or nobody listens.

The services are sleepers; the real ones run in tests/end_to_end.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.free_ports import free_port
from deploy.local import supervisor
from deploy.local.restart_requests import request
from deploy.local.restarts import FIRST_PAUSE, MOST_VITAL_DEATHS, Restarts
from deploy.local.service_logs import last_lines
from deploy.local.service_processes import ServiceSpec
from deploy.local.supervisor import Federation, _VitalDeathError, up
from deploy.local.up_options import UpOptions
from streamsql.errors import InternalError
from tests.deploy.local.kept_events import KeptEvents
from tests.loop_turns import calls

SLEEP = "print('up', flush=True); import time; time.sleep(60)"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user"))


@contextlib.asynccontextmanager
async def sleepers(tmp_path: Path, *names: str, restart: bool = True) -> AsyncIterator[Federation]:
    options = UpOptions(data=tmp_path / "data", port=free_port(), restart=restart)
    federation = Federation(options, KeptEvents())
    federation._claim.take()
    try:
        for name in names:
            vital = name in ("broker", "base", "console")
            command = (sys.executable, "-c", SLEEP)
            await federation._start_service(ServiceSpec(name, command, vital))
        yield federation
    finally:
        await federation._stop_all()


async def heard(federation: Federation, kind: str, count: int = 1) -> list[dict[str, Any]]:
    reporter = federation.reporter
    assert isinstance(reporter, KeptEvents)
    for _ in range(1_200):
        if len(reporter.of(kind)) >= count:
            return reporter.of(kind)
        await asyncio.sleep(0.05)
    raise AssertionError(reporter.events)


@pytest.mark.parametrize("name", ["gw-1", "static", "base", "broker", "console"])
def test_a_service_that_dies_is_started_again(tmp_path: Path, name: str) -> None:
    async def run() -> None:
        async with sleepers(tmp_path, "gw-2", name) as federation:
            before = federation.services.pids()
            serving = asyncio.create_task(federation._serve())
            os.kill(before[name], signal.SIGKILL)
            (told,) = await heard(federation, "died")
            assert (told["service"], told["status"]) == (name, -signal.SIGKILL)
            assert f"It is started again in {FIRST_PAUSE:g} s" in told["message"]
            (again,) = await heard(federation, "restarted")
            assert again["pid"] == federation.services.pids()[name] != before[name]
            listed = json.loads(federation.layout.processes.read_text())
            assert listed[name]["pid"] == again["pid"]
            assert federation.services.pids()["gw-2"] == before["gw-2"]
            assert not serving.done()
            serving.cancel()

    asyncio.run(run())


def test_without_restarts_a_gateways_death_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with sleepers(tmp_path, "base", "gw-1", "static", restart=False) as federation:
            pids = federation.services.pids()
            serving = asyncio.create_task(federation._serve())
            os.kill(pids["gw-1"], signal.SIGKILL)
            (told,) = await heard(federation, "died")
            assert "leave every result" in told["message"]
            assert "pando gateway restart gw-1" in told["message"]
            os.kill(pids["static"], signal.SIGKILL)
            _, told = await heard(federation, "died", 2)
            assert "static tables are not refreshed" in told["message"]
            assert not serving.done()
            serving.cancel()

    asyncio.run(run())


@pytest.mark.parametrize("restart", [False, True])
def test_a_vital_service_that_does_not_stay_up_is_the_end(tmp_path: Path, restart: bool) -> None:
    async def run() -> None:
        async with sleepers(tmp_path, "broker", "gw-1", restart=restart) as federation:
            federation._restarts = Restarts(lambda: float("inf"))  # every pause is over
            serving = asyncio.create_task(federation._serve())
            for number in range(MOST_VITAL_DEATHS * restart):
                os.kill(federation.services.pids()["broker"], signal.SIGKILL)
                await heard(federation, "restarted", number + 1)
            os.kill(federation.services.pids()["broker"], signal.SIGKILL)
            with pytest.raises(_VitalDeathError) as caught:
                await asyncio.wait_for(serving, 60)
            assert "broker" in str(caught.value)
            federation._explain(caught.value.death)
            told = (await heard(federation, "died"))[-1]
            assert "the federation cannot run without it" in told["message"]

    asyncio.run(run())


def test_the_logs_of_services_are_kept(tmp_path: Path) -> None:
    async def run() -> Federation:
        async with sleepers(tmp_path, "gw-1", "base") as federation:
            await heard(federation, "log", 2)
            return federation

    layout = asyncio.run(run()).layout
    assert last_lines(layout.logs, "gw-1", 5) == ["up"]
    assert last_lines(layout.logs, "base", 5) == ["up"]


def test_a_requested_restart_is_done_once_and_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with sleepers(tmp_path, "base", "gw-1") as federation:
            before = federation.services.pids()["gw-1"]
            request(federation.layout, "gw-1")
            (federation.layout.restart_requests / "nobody.restart").touch()
            serving = asyncio.create_task(federation._serve())
            (told,) = await heard(federation, "restarted")
            assert told["pid"] == federation.services.pids()["gw-1"] != before
            (warned,) = await heard(federation, "warning")
            assert "'nobody'" in warned["message"]
            listed = json.loads(federation.layout.processes.read_text())
            assert listed["gw-1"]["pid"] == told["pid"]
            await calls(supervisor, "answer_requests")
            assert len(await heard(federation, "restarted")) == 1
            assert federation.services.death() is None
            serving.cancel()

    asyncio.run(run())


def test_it_stops_when_nobody_reads_any_more(tmp_path: Path) -> None:
    async def run() -> None:
        async with sleepers(tmp_path, "gw-1") as federation:
            federation.reporter.gone = True
            await asyncio.wait_for(federation._serve(), 60)

    asyncio.run(run())


def test_while_starting_only_the_static_engine_may_die(tmp_path: Path) -> None:
    async def never() -> bool:
        return False

    async def run() -> None:
        async with sleepers(tmp_path, "gw-1", "static") as federation:
            waiting = asyncio.create_task(federation._until(never, "nobody", "come"))
            os.kill(federation.services.pids()["static"], signal.SIGKILL)
            await heard(federation, "died")
            assert not waiting.done()
            os.kill(federation.services.pids()["gw-1"], signal.SIGKILL)
            with pytest.raises(_VitalDeathError, match="gw-1"):
                await asyncio.wait_for(waiting, 60)

    asyncio.run(run())


def test_only_the_static_engine_is_given_the_addresses_of_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[ServiceSpec] = []

    async def begin(_: Federation, spec: ServiceSpec) -> None:
        begun.append(spec)

    async def there(_: Federation, *_condition: object) -> None:
        pass

    monkeypatch.setattr(Federation, "_start_service", begin)
    monkeypatch.setattr(Federation, "_until", there)
    federation = Federation(UpOptions(data=tmp_path, port=free_port()), KeptEvents())
    asyncio.run(federation._start())
    assert {"broker", "lander", "gw-1", "console", "base", "static"} <= {s.name for s in begun}
    assert [spec.name for spec in begun if spec.secrets] == ["static"]


def test_what_never_comes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.local.supervisor.START_SECONDS", 0.2)

    async def never() -> bool:
        return False

    federation = Federation(UpOptions(data=tmp_path), KeptEvents())
    with pytest.raises(InternalError, match="the sites did not come online within 0 s"):
        asyncio.run(federation._until(never, "the sites", "come online"))


def test_ending_leaves_no_file_but_data(tmp_path: Path) -> None:
    async def run() -> Federation:
        async with sleepers(tmp_path, "gw-1") as federation:
            federation._write_address()
            request(federation.layout, "gw-1")
            assert federation.layout.console.exists()
            return federation

    federation = asyncio.run(run())
    left = {p.name for p in (tmp_path / "data").rglob("*") if p.is_file()}
    assert left <= {"gw-1.log"}
    assert not list((tmp_path / "user").rglob("*.json"))
    assert isinstance(federation.reporter, KeptEvents)
    assert federation.reporter.events[-1]["event"] == "stopped"


def test_a_refused_federation_touches_nothing_of_the_running_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with sleepers(tmp_path, "gw-1") as first:
            first._write_address()
            options = UpOptions(data=tmp_path / "data", port=first.options.port)
            second = KeptEvents()
            assert await up(options, second) == 2
            (told,) = second.of("error")
            assert f"another federation (pid {os.getpid()}) runs" in told["message"]
            assert first.layout.processes.exists()
            assert first.layout.console.exists()
            assert first.layout.lock.exists()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("broker", "said"),
    [
        ("mqtt://127.0.0.1:{closed}", "no broker answers at 127.0.0.1:"),
        ("nonsense", "is not a broker address"),
        ("http://127.0.0.1", "is not a broker address"),
        ("mqtt://127.0.0.1:port", "is not a broker address"),
        ("mqtt://", "is not a broker address"),
    ],
)
def test_a_broker_that_is_none_is_the_users_error(tmp_path: Path, broker: str, said: str) -> None:
    reporter = KeptEvents()
    given = broker.format(closed=free_port())
    options = UpOptions(data=tmp_path / "data", port=free_port(), broker=given)
    assert asyncio.run(up(options, reporter)) == 2
    (told,) = reporter.of("error")
    assert said in told["message"]
    assert not reporter.of("starting")
