"""Service processes: their log, their end."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.local.service_processes import (
    MAX_LOG_LINE,
    OF_PLANS,
    Death,
    LogLines,
    Service,
    Services,
    ServiceSpec,
    _die_with_parent,
    environment,
    exit_text,
)
from tests.loop_turns import loop_turns
from ui.console_settings import ConsoleSettings

SLEEP = "print('up', flush=True); import time; time.sleep(60)"
STUBBORN = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(child.pid, flush=True); time.sleep(60)"
)


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.something = asyncio.Event()

    def __call__(self, service: str, line: str) -> None:
        self.lines.append((service, line))
        self.something.set()


def spec(program: str, name: str = "gw-1", stop_seconds: float = 5.0) -> ServiceSpec:
    return ServiceSpec(name, (sys.executable, "-c", program), stop_seconds=stop_seconds)


def test_lines_are_labelled_bounded_and_the_last_ones_kept() -> None:
    program = (
        "import sys; print('one'); print('two', file=sys.stderr, flush=True); print();"
        "print('x' * 200_000); sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.write('no end')"
    )

    async def run() -> tuple[Log, Service, int | None]:
        log = Log()
        service = Service(spec(program), log)
        await service.start()
        return log, service, await asyncio.wait_for(service.wait(), 60)

    log, service, status = asyncio.run(run())
    assert status == 0
    assert {name for name, _ in log.lines} == {"gw-1"}
    texts = sorted((text for _, text in log.lines), key=len)
    assert texts[:-1] == ["\ufffd", "one", "two", "no end"]
    assert texts[-1] == "x" * MAX_LOG_LINE + " …"
    assert set(service.last_lines) == set(texts)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a death")
@pytest.mark.parametrize(("alive", "status"), [(True, 0), (False, -signal.SIGTERM)])
def test_a_process_whose_parent_died_while_it_was_started_does_not_begin(
    *, alive: bool, status: int
) -> None:
    parent = os.getpid() if alive else os.getppid()
    begun = subprocess.Popen(
        [sys.executable, "-c", "pass"],
        preexec_fn=lambda: _die_with_parent(parent, 0),  # noqa: PLW1509 - no thread runs here
    )
    assert begun.wait(60) == status


@given(st.binary(max_size=40), st.lists(st.integers(1, 7), min_size=1))
def test_lines_do_not_depend_on_where_chunks_end(output: bytes, sizes: list[int]) -> None:
    whole, cut = LogLines(), LogLines()
    expected = [*whole.feed(output), *whole.end()]
    found: list[str] = []
    position = 0
    while position < len(output):
        size = sizes[position % len(sizes)]
        found.extend(cut.feed(output[position : position + size]))
        position += size
    assert [*found, *cut.end()] == expected


def test_a_service_that_does_not_stop_is_killed_with_its_children() -> None:
    async def run() -> tuple[int, int]:
        log = Log()
        service = Service(spec(STUBBORN, stop_seconds=0.3), log)
        await service.start()
        await asyncio.wait_for(log.something.wait(), 60)
        child = int(log.lines[0][1])
        await asyncio.wait_for(service.stop(), 60)
        assert log.lines[-1] == ("gw-1", "does not stop and is killed")
        assert await service.wait() is None
        return service.pid, child

    service, child = asyncio.run(run())
    assert not psutil.pid_exists(service)
    for _ in range(600):
        if not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie":
            return
        asyncio.run(asyncio.sleep(0.1))
    pytest.fail("the child lives on")


def test_deaths_are_told_once_and_stops_never() -> None:
    async def run() -> None:
        log = Log()
        services = Services(log)
        assert not services
        await services.start(spec(SLEEP, "gw-1"))
        await services.start(spec(SLEEP, "gw-2"))
        await services.start(spec("raise SystemExit(3)", "gw-3"))
        death = await services.next_death(60)
        assert death is not None
        assert str(death) == f"gw-3 (pid {services.pids()['gw-3']}) ended with status 3"
        os.kill(services.pids()["gw-1"], signal.SIGKILL)
        death = await services.next_death(60)
        assert death is not None
        assert (death.name, death.status) == ("gw-1", -signal.SIGKILL)
        assert services.death() is None
        await services.stop()
        assert await services.next_death(0.3) is None
        assert all(not psutil.pid_exists(pid) for pid in services.pids().values())

    asyncio.run(run())


def test_a_restart_of_a_running_service_is_no_death() -> None:
    async def run() -> None:
        services = Services(Log())
        await services.start(spec(SLEEP))
        for _ in range(3):
            before = services.pids()["gw-1"]
            assert (await services.restart("gw-1")).pid != before
            assert not psutil.pid_exists(before)
        assert await services.next_death(0.5) is None
        os.kill(services.pids()["gw-1"], signal.SIGTERM)
        assert await services.next_death(60) is not None
        await services.restart("gw-1")
        assert await services.next_death(0.3) is None
        await services.stop()

    asyncio.run(run())


def test_a_death_does_not_swallow_a_cancellation() -> None:
    async def met_after(turns: int) -> None:
        services = Services(Log())
        waiting = asyncio.create_task(services.next_death(60))
        await loop_turns()
        services._deaths.put_nowait(Death(Service(spec(SLEEP), Log()), 1))
        for _ in range(turns):
            await asyncio.sleep(0)
        came_too_late = waiting.done()
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled() or came_too_late

    for turns in range(6):
        asyncio.run(met_after(turns))


def test_the_broker_is_stopped_last(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    program = (
        "import signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (open({str(ended)!r}, 'a')"
        ".write('{name} '), sys.exit(0)))\n"
        "print('up', flush=True)\n"
        "time.sleep(60)"
    )

    async def run() -> None:
        log = Log()
        services = Services(log)
        for name in ("broker", "gw-1", "base"):
            await services.start(spec(program.replace("{name}", name), name))
        while len(log.lines) < 3:
            log.something.clear()
            await log.something.wait()
        await services.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
    names = ended.read_text().split()
    assert sorted(names[:2]) == ["base", "gw-1"]
    assert names[2] == "broker"


def test_settings_of_plans_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDO_SHARING", "no joins")
    monkeypatch.setenv("PANDO_BROKER", "mqtt://elsewhere:1883")
    kept = {name: value for name, value in environment().items() if name.startswith("PANDO_")}
    assert kept == {"PANDO_SHARING": "no joins"}
    fields = {name.removeprefix("PANDO_").lower() for name in OF_PLANS}
    assert all(hasattr(ConsoleSettings, field) for field in fields), "the console has each"


def test_services_get_neither_our_settings_nor_folders_named_like_our_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gateway.py").write_text("raise SystemExit('the wrong gateway')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PANDO_DATA", "/shared/by/mistake")
    monkeypatch.setenv("PYTHONPATH", "/some/where")
    monkeypatch.setenv("PANDO_SECRET_SHOP", "postgresql://shop.example/shop")
    assert not [name for name in environment() if name.startswith("PANDO_")]
    kept = [name for name in environment(secrets=True) if name.startswith("PANDO_")]
    assert kept == ["PANDO_SECRET_SHOP"]
    assert environment()["PYTHONPATH"].endswith(os.pathsep + "/some/where")
    log = Log()

    async def run() -> int | None:
        command = (sys.executable, "-m", "gateway", "--config", "none.json")
        service = Service(ServiceSpec("gw-1", command), log)
        await service.start()
        return await asyncio.wait_for(service.wait(), 60)

    assert asyncio.run(run()) == 2
    assert "none.json" in json.dumps(log.lines)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0, "ended with status 0"),
        (2, "ended with status 2"),
        (-9, "was killed by SIGKILL"),
        (-15, "was killed by SIGTERM"),
        (-99, "was killed by signal 99"),
    ],
)
def test_what_an_exit_status_means(status: int, text: str) -> None:
    assert exit_text(status) == text
