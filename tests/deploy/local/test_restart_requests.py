"""A restart is asked of a running federation, and answered once."""

import asyncio
import sys
from pathlib import Path

import pytest

from deploy.local.claim import Claim
from deploy.local.layout import Layout
from deploy.local.restart_requests import (
    Verb,
    answer_requests,
    discard_requests,
    request,
    wait_for_restart,
)
from deploy.local.restarts import Restarts
from deploy.local.service_processes import Services, ServiceSpec
from streamsql.errors import DeploymentError
from tests.deploy.local.kept_events import KeptEvents

SLEEP = "print('up', flush=True); import time; time.sleep(60)"


def test_a_restart_is_asked_of_a_running_federation_only(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.processes.parent.mkdir(parents=True)
    layout.processes.write_text('{"gw-1": {"pid": 7}, "base": {"pid": 8}}')
    with pytest.raises(DeploymentError, match="no federation runs on data directory"):
        request(layout, "gw-1")
    claim = Claim(layout.lock)
    claim.take()
    assert request(layout, "gw-1") == 7
    assert [path.name for path in layout.restart_requests.iterdir()] == ["gw-1.restart"]
    with pytest.raises(DeploymentError, match="no service 'gw-9'\nhint: one of: base, gw-1"):
        request(layout, "gw-9")
    with pytest.raises(DeploymentError, match=r"no service '\.\./x'"):
        request(layout, "../x")
    claim.release()


def test_requests_are_answered_once_after_the_list_of_processes_has_it(tmp_path: Path) -> None:
    async def run() -> None:
        layout, reporter = Layout(tmp_path), KeptEvents()
        layout.restart_requests.mkdir(parents=True)
        for name in ("gw-1.restart", "nobody.restart", "gw-1", "gw-1.dance"):
            (layout.restart_requests / name).touch()
        services = Services(reporter.log)
        reported: list[tuple[int, list[str]]] = []

        def said() -> list[str]:
            # A process that is ended while it starts may print something.
            return [event["event"] for event in reporter.events if event["event"] != "log"]

        try:
            await services.start(ServiceSpec("gw-1", (sys.executable, "-c", SLEEP)))
            before = services.pids()["gw-1"]
            for _ in range(2):
                await answer_requests(
                    layout,
                    services,
                    reporter,
                    lambda: reported.append((services.pids()["gw-1"], said())),
                    Restarts(),
                )
            after = services.pids()["gw-1"]
        finally:
            await services.stop()
        assert after != before
        assert reported == [(after, [])]
        assert said() == ["restarted", "warning"]
        events = [event for event in reporter.events if event["event"] != "log"]
        assert events[0]["pid"] == after
        assert "asked to restart 'nobody'" in events[1]["message"]

    asyncio.run(run())


@pytest.mark.parametrize("verb", [Verb.STOP, Verb.KILL])
def test_a_service_that_is_stopped_on_request_has_not_died(tmp_path: Path, verb: Verb) -> None:
    async def run() -> None:
        layout, reporter = Layout(tmp_path), KeptEvents()
        layout.restart_requests.mkdir(parents=True)
        (layout.restart_requests / f"gw-1.{verb}").touch()
        services = Services(reporter.log)
        try:
            await services.start(ServiceSpec("gw-1", (sys.executable, "-c", SLEEP)))
            await answer_requests(layout, services, reporter, lambda: None, Restarts())
            assert not services.runs("gw-1")
            assert await services.next_death(0.3) is None
            (event,) = (event for event in reporter.events if event["event"] != "log")
            assert event["event"] == "halted"
            assert "pando gateway restart gw-1" in event["message"]
            await services.restart("gw-1")
            assert services.runs("gw-1")
        finally:
            await services.stop()

    asyncio.run(run())


def test_requests_of_an_ended_federation_are_discarded(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    discard_requests(layout)
    layout.restart_requests.mkdir(parents=True)
    (layout.restart_requests / "gw-1").touch()
    discard_requests(layout)
    assert list(layout.restart_requests.iterdir()) == []


def test_a_restart_is_over_once_another_process_is_ready(tmp_path: Path) -> None:
    layout, asked = Layout(tmp_path), [False, True]
    layout.processes.parent.mkdir(parents=True)
    layout.processes.write_text('{"console": {"pid": 7}}')
    claim = Claim(layout.lock)
    claim.take()
    assert not wait_for_restart(layout, "console", 7, lambda: True, 0.05)
    layout.processes.write_text('{"console": {"pid": 9}}')
    assert wait_for_restart(layout, "console", 7, lambda: asked.pop(0), 30)
    assert asked == []
    assert not wait_for_restart(layout, "console", 7, lambda: False, 0.05)
    claim.release()
