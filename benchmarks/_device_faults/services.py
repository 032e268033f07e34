"""The processes under fault: broker, base site, console, a gateway, a device per connector."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from benchmarks._device_faults.kinds import Kind
from benchmarks._device_faults.number_log import Entry, read_log
from benchmarks._device_faults.peers.mqtt import AUTOSAVE, IN_FLIGHT
from benchmarks._device_faults.peers.peer import NOTHING
from benchmarks._soak.federation import ROOT, Service
from broker.broker_launch import Preference, find_mosquitto, mosquitto_configuration
from broker.broker_testing import BrokerProcess
from broker.free_ports import free_port
from gateway.gateway_settings import GatewaySettings
from ui.console_settings import ConsoleSettings

BASE, CONSOLE, GATEWAY = "base", "console", "gw-1"
PATIENCE = 120.0
POLL_SECONDS = 0.25
_KEPT = {
    "max_inflight_messages": IN_FLIGHT,
    "max_queued_messages": 0,  # no bound
    "autosave_on_changes": "true",
    "autosave_interval": AUTOSAVE,
}


class Device:
    """A simulator in a folder of its own; that of mqtt has a Mosquitto of its own, too.

    Attributes:
        count: Numbers that it hands out.
    """

    def __init__(self, kind: Kind, folder: Path, count: int, rate: float) -> None:
        self.kind, self.count = kind, count
        self._folder = folder
        (folder / "data").mkdir(parents=True)
        self.port, other_port = free_port(), free_port()
        numbers = (self.port, other_port, folder, count, rate)
        module = f"benchmarks._device_faults.peers.{kind.name}"
        self._commands = [[sys.executable, "-W", "ignore", "-m", module, *map(str, numbers)]]
        if kind.name == "mqtt":
            self._commands.append(_own_broker(other_port, folder / "data"))
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def endpoint(self) -> dict[str, Any]:
        """Settings of the gateway's endpoint."""
        found = self.kind.endpoint(self.port, self._folder / "data")
        return {"connector": self.kind.name, **found}

    def start(self) -> None:
        """Start its processes; returns at once."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (self._folder / "device.log").open("ab") as log:
            self._processes = [
                subprocess.Popen(  # noqa: S603 - our own programs
                    command, cwd=ROOT, stdout=log, stderr=log, env=environment
                )
                for command in self._commands
            ]

    def kill(self) -> None:
        """End its processes without warning."""
        processes, self._processes = self._processes, []
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(PATIENCE)

    def go(self) -> None:
        """Let it hand out its numbers from now on."""
        (self._folder / "go").touch()

    def entries(self) -> list[Entry]:
        """Return its log."""
        return read_log(self._folder / "numbers.log")

    def said(self) -> str:
        """Return the end of what its processes have written."""
        return (self._folder / "device.log").read_text(errors="replace")[-2_000:]


def _own_broker(port: int, folder: Path) -> list[str]:
    """Return the command of a Mosquitto that keeps sessions and messages on disk.

    Raises:
        RuntimeError: It is not installed.
    """
    program = find_mosquitto()
    if program is None:
        raise RuntimeError("mqtt needs mosquitto: the embedded broker keeps nothing on disk")
    config = folder / "mosquitto.conf"
    lines = mosquitto_configuration(port, folder).splitlines()
    lines = [line for line in lines if line.partition(" ")[0] not in _KEPT]
    config.write_text("\n".join([*lines, *(f"{key} {value}" for key, value in _KEPT.items()), ""]))
    return [str(program), "-c", str(config)]


class Processes:
    """A federation with one gateway, and the devices that it reads."""

    def __init__(self, folder: Path, broker: Preference, devices: Sequence[Device]) -> None:
        (folder / "broker").mkdir()
        self.broker = BrokerProcess(broker, folder / "broker")
        self.devices = devices
        port, url = free_port(), self.broker.url
        endpoints = {device.kind.name: device.endpoint for device in devices}
        settings: dict[str, tuple[str, object]] = {
            CONSOLE: (
                "deploy.console",
                ConsoleSettings(url, str(folder / CONSOLE), port=port, layers="trace"),
            ),
            BASE: ("gateway", GatewaySettings("demo", BASE, url, str(folder / BASE), role="base")),
            GATEWAY: (
                "gateway",
                GatewaySettings("demo", GATEWAY, url, str(folder / GATEWAY), endpoints=endpoints),
            ),
        }
        for name in settings:
            (folder / name).mkdir()
        self.services = {
            name: Service(name, package, folder, given)
            for name, (package, given) in settings.items()
        }
        address = f"http://127.0.0.1:{port}"
        self._http = httpx.Client(base_url=address, timeout=60, trust_env=False)

    def start(self) -> None:
        """Start all; return when the gateway is online.

        Raises:
            RuntimeError: It takes too long.
        """
        self.broker.start()
        for device in self.devices:
            device.start()
        for service in self.services.values():
            service.start()
        sites = {BASE, GATEWAY}
        self.until(lambda: sites <= self._online(), "base site and gateway are online")

    def _online(self) -> set[str]:
        return {site["site"] for site in self.get("/api/sites") if site["online"]}

    def kill(self, victim: str) -> tuple[float, float]:
        """End a process without warning, and start it again; return from when to when it was dead.

        Args:
            victim: "gateway", "broker", or the name of a connector for its device.
        """
        began = time.monotonic()
        if victim == "gateway":
            self.services[GATEWAY].stop(signal.SIGKILL)
            ended = time.monotonic()
            self.services[GATEWAY].start()
        elif victim == "broker":
            self.broker.stop(signal.SIGKILL)
            ended = time.monotonic()
            self.broker.start()
        else:
            device = next(device for device in self.devices if device.kind.name == victim)
            device.kill()
            ended = time.monotonic()
            device.start()
        return began, ended

    def until(self, condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        """Return the first true value of a condition.

        Raises:
            RuntimeError: It takes too long; says what, with the logs.
        """
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if found := condition():
                    return found
            if time.monotonic() > deadline:
                raise RuntimeError(f"not within {seconds:g} s: {what}\n{self.said()}")
            time.sleep(POLL_SECONDS)

    def get(self, path: str) -> Any:
        """Return what the console answers.

        Raises:
            httpx.HTTPError: It does not.
        """
        return self._http.get(path).raise_for_status().json()

    def run(self, text: str) -> Any:
        """Run statements; return the outcome of the last one.

        Raises:
            RuntimeError: The console refuses them.
        """
        answer = self._http.post("/api/statements", json={"text": text})
        if not answer.is_success:
            raise RuntimeError(f"{text}: {answer.text}")
        return answer.json()[-1]

    def count_rows(self, kind: Kind) -> str:
        """Start a query that counts the rows of each number of a device; return its id."""
        counted = f"SELECT n, COUNT(*) AS times FROM {kind.rows()} WHERE n < {NOTHING} GROUP BY n"
        return str(self.run(counted)["query"]["id"])

    def rows(self, query: str) -> dict[int, int]:
        """Return how many rows there are of each number.

        Raises:
            httpx.HTTPError: The console does not answer.
        """
        return {row["n"]: row["times"] for row in self.get(f"/api/queries/{query}/rows")["rows"]}

    def said(self) -> str:
        """Return the ends of all logs."""
        services = [f"--- {name}\n{service.log()}" for name, service in self.services.items()]
        return "\n".join(
            [*services, *(f"--- {each.kind.name}\n{each.said()}" for each in self.devices)]
        )

    def close(self) -> None:
        """End everything."""
        self._http.close()
        for device in self.devices:
            device.kill()
        for service in self.services.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                service.stop()
        self.broker.stop()


@contextlib.contextmanager
def running(folder: Path, broker: Preference, devices: Sequence[Device]) -> Iterator[Processes]:
    """Yield the processes, started."""
    processes = Processes(folder, broker, devices)
    try:
        processes.start()
        yield processes
    finally:
        processes.close()
