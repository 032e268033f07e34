"""Starting, stopping and dying of the whole federation: always clean, always explained."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.end_to_end.federation import PATIENCE, Federation, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

ENDED_SECONDS = 30.0
"""Little enough that a service which only ends by itself, some time later, is noticed."""
SMALL = ("--no-spark", "--gateways", "1")


def ended(processes: list[psutil.Process]) -> bool:
    """Whether none of these processes runs any more."""
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


def traces(data: Path) -> list[str]:
    """Return files that only a running federation has."""
    names = ("lock", "console.json", "run/services.json", "user-state/pando/running/*.json")
    return [name for name in names if any(data.glob(name))]


@pytest.fixture
def _heard() -> Iterator[None]:
    """Let processes started here hear SIGHUP, also where the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everything_without_a_trace(tmp_path: Path, number: signal.Signals) -> None:
    with federation(tmp_path / "data", *SMALL) as up:
        family = up.family()
        assert len(family) >= 5
        assert len(traces(up.data)) == 4
        assert up.stop(number) == 0
        up.until(lambda: ended(family), ENDED_SECONDS)
        up.until(lambda: up.event("stopped"))
        assert traces(up.data) == []


@pytest.mark.parametrize("begun", [None, "broker", "console", "static"])
def test_ctrl_c_while_it_starts_leaves_nothing(tmp_path: Path, begun: str | None) -> None:
    """In every phase: while the site is prepared, and as services come up one after the other."""
    up = Federation(tmp_path / "data", *SMALL)
    try:
        phase = {"kind": "starting", "service": begun} if begun else {"kind": "preparing"}
        up.until(lambda: up.event(**phase))
        family = up.family()
        assert up.stop(signal.SIGINT) == 0, up.said()
        up.until(lambda: ended(family), ENDED_SECONDS)
        assert traces(up.data) == []
    finally:
        up.process.kill()
        up.process.wait(PATIENCE)
        up.close()
    said = [line["event"] for line in up.events]
    assert "ready" not in said[said.index("stopping") :]


def test_after_kill_9_the_next_one_starts_at_once_in_its_place(tmp_path: Path) -> None:
    data = tmp_path / "my data #1"
    folder = tmp_path / "somewhere else"
    (folder / "ui").mkdir(parents=True)
    (folder / "ui" / "__init__.py").write_text("raise SystemExit('not our package')")
    (folder / "gateway.py").write_text("raise SystemExit('not our package')")
    with federation(data, *SMALL, folder=folder) as up:
        family = up.family()
        up.stop(signal.SIGKILL)
        assert len(traces(data)) == 4
        refused = up.pando("gateway", "restart", "gw-1", "--data", str(data))
        assert refused.returncode == 2
        assert "no federation runs" in refused.stderr
        with federation(data, *SMALL, port=up.port, folder=folder) as again:
            assert again.sites()["gw-1"]["online"]
            up.until(lambda: ended(family), ENDED_SECONDS)  # no orphan of the first is left
    assert traces(data) == []


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """A federation whose services are killed."""
    with federation(tmp_path_factory.mktemp("killed") / "data", *SMALL) as running:
        yield running


@pytest.mark.parametrize("service", ["gw-1", "base", "console", "static", "broker"])
def test_a_service_that_dies_is_started_again_and_results_come_back(
    killed: Federation, service: str
) -> None:
    before = killed.pid(service)
    os.kill(before, signal.SIGKILL)
    death = killed.until(lambda: killed.event("died", service=service, pid=before))
    assert "SIGKILL" in death["message"]
    assert "started again in" in death["message"]
    again = killed.until(lambda: killed.event("restarted", service=service))
    assert again["pid"] == killed.pid(service) != before

    def is_well() -> bool:
        try:
            sites = killed.sites()
            queries = killed.http.get("/api/queries").json()
        except httpx.HTTPError:
            return False
        live = all(sites[name]["freshness"] == "live" for name in ("gw-1", "base", "static"))
        return live and {query["status"] for query in queries} == {"running"}

    killed.until(is_well)


def test_a_gateway_that_is_told_to_starts_itself_again(killed: Federation) -> None:
    killed.until(lambda: killed.sites()["gw-1"]["freshness"] == "live")
    pid, before = killed.pid("gw-1"), killed.sites()["gw-1"]
    deaths = len([event for event in killed.events if event["event"] == "died"])
    assert killed.http.post("/api/sites/gw-1/restart").json() == {"site": "gw-1"}

    def is_back() -> bool:
        site = killed.sites()["gw-1"]
        return bool(site["epoch"] > before["epoch"] and site["freshness"] == "live")

    killed.until(is_back)
    assert killed.pid("gw-1") == pid
    assert len([event for event in killed.events if event["event"] == "died"]) == deaths


def test_logs_of_a_service_are_printed(killed: Federation) -> None:
    told = killed.pando("logs", "gw-1", "--lines", "3", "--data", str(killed.data))
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == 3
    unknown = killed.pando("logs", "gw-9", "--data", str(killed.data))
    assert unknown.returncode == 2
    assert "one of: base, broker, console, gw-1, static" in unknown.stderr


def test_without_restarts_the_death_of_a_vital_service_is_the_end(tmp_path: Path) -> None:
    with federation(tmp_path / "data", *SMALL, "--no-restart") as up:
        family = up.family()
        os.kill(up.pid("base"), signal.SIGKILL)
        assert up.process.wait(PATIENCE) == 1
        death = up.until(lambda: up.event("died", service="base"))
        assert "SIGKILL" in death["message"]
        up.until(lambda: ended(family), ENDED_SECONDS)
        assert traces(up.data) == []


def test_two_federations_on_one_machine_are_told_apart(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with (
        federation(tmp_path / "a", *SMALL, state=state) as first,
        federation(tmp_path / "b", *SMALL, state=state) as second,
    ):
        # PANDO_CONSOLE names the first; the second was started last.
        of_second = second.pid("gw-1")
        assert first.pando("gateway", "restart", "gw-1").returncode == 0
        first.until(lambda: first.event("restarted", service="gw-1"))
        named = first.pando("gateway", "restart", "base", "--console", second.address)
        assert named.returncode == 0, named.stderr
        second.until(lambda: second.event("restarted", service="base"))
        assert first.event("restarted", service="base") is None
        assert second.event("restarted", service="gw-1") is None
        assert second.pid("gw-1") == of_second
        del first.environment["PANDO_CONSOLE"]
        for command in (("gateway", "restart", "gw-1"), ("query", "list"), ("run", "-")):
            unnamed = first.pando(*command, stdin="SHOW SOURCES;")
            assert unnamed.returncode == 2
            assert first.address in unnamed.stderr
            assert second.address in unnamed.stderr
        assert second.stop(signal.SIGTERM) == 0
        alone = first.pando("query", "list")
        assert alone.returncode == 0, alone.stderr


def test_wrong_options_are_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    wrong = tmp_path / "wrong.geojson"
    wrong.write_text('{"type": "FeatureCollection", "features": [{"type": "Feature"}]}')
    garbage = tmp_path / "garbage.csv"
    garbage.write_bytes(os.urandom(100))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        closed = nobody.getsockname()[1]
        cases = [
            (("--broker", f"mqtt://127.0.0.1:{closed}"), "no broker answers"),
            (("--broker", "nonsense"), "is not a broker address"),
            (("--site", str(wrong)), "feature"),
            (("--replay", str(garbage)), "garbage.csv"),
            (("--gateways", "0"), "--gateways 0"),
        ]
        started = [
            (Federation(tmp_path / f"data{n}", "--no-spark", *options), message)
            for n, (options, message) in enumerate(cases)
        ]
        started.append((Federation(tmp_path / "file" / "data"), "cannot use data directory"))
        for up, message in started:
            assert message in up.refused().lower()
            assert up.event("starting") is None
            assert traces(up.data) == []


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """A federation to which nothing happens before its pipe closes."""
    with federation(tmp_path_factory.mktemp("supervised") / "data", *SMALL) as running:
        yield running


def test_a_second_federation_is_refused_and_does_no_harm(up: Federation, tmp_path: Path) -> None:
    second = up.pando("up", "--port", str(up.port), "--data", str(tmp_path / "other"))
    assert (second.returncode, second.stdout) == (2, "")
    assert f"port {up.port} is in use by pid {up.pid('console')}" in second.stderr
    assert not (tmp_path / "other").exists()
    third = up.pando("up", "--port", str(up.port), "--data", str(up.data))
    assert (third.returncode, third.stdout) == (2, "")
    assert f"another federation (pid {up.process.pid}) runs" in third.stderr
    assert up.sites()["gw-1"]["online"]
    assert len(traces(up.data)) == 4
    before = up.pid("gw-1")
    assert up.pando("gateway", "restart", "gw-1", "--data", str(up.data)).returncode == 0
    up.until(lambda: up.event("restarted", service="gw-1"))
    assert up.pid("gw-1") != before
    up.until(lambda: up.sites()["gw-1"]["online"])
    assert up.event("died") is None


def test_a_pipe_that_closes_ends_it(up: Federation) -> None:
    family = up.family()
    assert up.process.stdout is not None
    reading = up.process.stdout.fileno()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, reading)  # the last reader of the pipe goes
    os.close(nothing)
    up.pando("gateway", "restart", "gw-1", "--data", str(up.data))  # gives it something to say
    assert up.process.wait(PATIENCE) == 0
    up.until(lambda: ended(family), ENDED_SECONDS)
    assert traces(up.data) == []
