"""`python -m ui`: starts, answers without a broker, stops in good order, explains what is wrong."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker import free_ports as ports
from ui.__main__ import _listen
from ui.console_settings import ConsoleSettings

SECONDS = 100


class Process:
    """A console in a process of its own."""

    def __init__(self, config: Path) -> None:
        command = [sys.executable, "-m", "ui", "--config", str(config)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def finish(self, stop: int | None = None) -> tuple[int, str]:
        """Wait for the end, after a signal if one is given; return status and stderr."""
        if stop is not None:
            self.process.send_signal(stop)
        try:
            _, said = self.process.communicate(timeout=SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, said


@pytest.fixture
def free_port() -> int:
    """A port nobody uses."""
    return ports.free_port()


@pytest.fixture
def config(tmp_path: Path, free_port: int, site_file: Path) -> Path:
    """Settings of a console whose broker does not exist."""
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE SOURCE Seat (mid TEXT, weight DOUBLE, KEY (mid));")
    settings = {
        "broker": "mqtt://127.0.0.1:9",
        "port": free_port,
        "data_dir": str(tmp_path / "data"),
        "site_file": str(site_file),
        "schema_file": str(schema),
    }
    path = tmp_path / "console.json"
    path.write_text(json.dumps(settings))
    return path


@pytest.fixture
def start() -> Iterator[Any]:
    """Starts consoles, and ends those that a test leaves behind."""
    started: list[Process] = []

    def run(config: Path) -> Process:
        started.append(Process(config))
        return started[-1]

    yield run
    for console in started:
        if console.process.poll() is None:
            console.process.kill()
            console.process.communicate()


def change(config: Path, **changes: Any) -> None:
    config.write_text(json.dumps({**json.loads(config.read_text()), **changes}))


def test_it_answers_without_a_broker_and_stops_with_streams_open(
    config: Path, free_port: int, start: Any, wait_for: Any, events: Any
) -> None:
    console = start(config)
    address = f"http://127.0.0.1:{free_port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{address}/api/health", trust_env=False, timeout=60).is_success
        except httpx.HTTPError:
            return False

    wait_for(answers, "the console answers")
    sources = httpx.get(
        f"{address}/api/definitions?kind=source", trust_env=False, timeout=60
    ).json()
    assert [source["name"] for source in sources] == ["seat", "sys_stream", "sys_operators"]
    stream = events(f"{address}/api/map/events")
    stream.wait("sites")
    status, said = console.finish(signal.SIGTERM)
    stream.close()
    assert status == 0
    assert "Traceback" not in said
    assert all(kind != "broken" for kind, _ in stream.seen)


def test_a_busy_port_is_the_operators_to_fix(config: Path, free_port: int, start: Any) -> None:
    with socket.create_server(("127.0.0.1", free_port)):
        status, said = start(config).finish()
    assert status == 2
    assert str(free_port) in said
    assert "choose another port" in said


def test_connections_send_small_writes_at_once(site_file: Path, free_port: int) -> None:
    settings = ConsoleSettings(broker="", data_dir="", site_file=str(site_file), port=free_port)
    with _listen(settings) as listener:
        listener.listen()
        with socket.create_connection(("127.0.0.1", free_port)):
            connection, _ = listener.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"schema_file": "/nowhere/schema.sql"}, "schema"),
        ({"site_file": "/nowhere/site.geojson"}, "site.geojson"),
        ({"data_dir": "/proc/nowhere"}, "/proc/nowhere"),
        ({"port": "many"}, "port"),
        ({"broker": "gopher://x"}, "broker address"),
    ],
)
def test_wrong_settings_are_named(
    config: Path, start: Any, changes: dict[str, Any], word: str
) -> None:
    change(config, **changes)
    status, said = start(config).finish()
    assert (status, word in said, "Traceback" in said) == (2, True, False), said


def test_a_missing_settings_file_is_named(tmp_path: Path, start: Any) -> None:
    status, said = start(tmp_path / "none.json").finish()
    assert status == 2
    assert "none.json" in said
