"""`docs/operations.md`, "Enrol a gateway": every step as it stands, on a real Mosquitto.

Folders, host names and ports become those of the test, and what a person types is given on standard
input. Nothing else is changed.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.broker_launch import find_mosquitto, find_plugin
from broker.free_ports import free_port
from tests.docs.markdown import ROOT

pytestmark = [pytest.mark.broker, pytest.mark.end_to_end, pytest.mark.timeout(300)]

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
PASSWORD = "a long password of ann"
PATIENCE = 60.0
SERVICES = ("sh deploy/mosquitto/start.sh", "python -m deploy.console", "python -m gateway")
_BLOCK = re.compile(r"^ +```(\w+)\n(.*?)^ +```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`(/etc/pando/[\w.]+)`")


def section(title: str) -> str:
    """Return the text below a heading."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


class Machine:
    """Machine on which the steps are done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin",
        }
        plugin = find_plugin()
        assert plugin is not None
        self._places = {
            "/etc/pando": str(folder / "etc"),
            "/var/lib/pando": str(folder / "lib"),
            "/usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so": str(plugin),
            '"0.0.0.0"': '"127.0.0.1"',
            "console.example": "localhost",
            "broker.example": "localhost",
            "8420": str(free_port()),
            "8883": str(free_port()),
        }
        self.services: list[subprocess.Popen[bytes]] = []
        self.printed = ""
        self.token = "TOKEN"
        (folder / "etc").mkdir()
        (folder / "lib").mkdir()

    def placed(self, text: str) -> str:
        """Return a text of the page with the places of this machine."""
        for theirs, ours in self._places.items():
            text = text.replace(theirs, ours)
        return text.replace("TOKEN", self.token)

    def write(self, path: str, text: str) -> None:
        """Write a file that the page shows."""
        file = Path(self.placed(path))
        text = self.placed(text)
        if file.suffix == ".json":
            json.loads(text)
        elif os.geteuid() == 0:
            text += "user root\n"  # it would become another user, who may not read the folder
        file.write_text(text, encoding="utf-8")

    def do(self, block: str) -> None:
        """Carry out the commands of a block."""
        for line in self.placed(block).splitlines():
            if line.startswith("export "):
                for name, value in re.findall(r'(\w+)=(?:"([^"]*)"|(?=\S))', line):
                    self.environment[name] = value or line.split(f"{name}=")[1].split()[0]
            elif line.startswith(SERVICES):
                self._start(line)
            else:
                self.run(line)

    def run(self, line: str, status: int = 0) -> str:
        """Run a command and return what it prints."""
        typed = f"{PASSWORD}\n"
        if line.startswith(("pando login", "pando user add")):
            line += " --password-stdin"
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=ROOT,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == status, f"{line}\n{done.stdout}{done.stderr}"
        self.printed = done.stdout + done.stderr
        return self.printed

    def _start(self, line: str) -> None:
        log = self.folder / f"service-{len(self.services)}.log"
        with log.open("wb") as output:
            service = subprocess.Popen(
                ["sh", "-c", f"exec {line}"],
                cwd=ROOT,
                env=self.environment,
                stdout=output,
                stderr=output,
            )
        self.services.append(service)
        if "start.sh" in line or "deploy.console" in line:
            port = self._places["8883" if "start.sh" in line else "8420"]
            self.wait(lambda: _listens(int(port)), f"{line}: {log.read_text()}")

    def log(self, number: int) -> str:
        """Return the log of a service, in the order of their starts."""
        return (self.folder / f"service-{number}.log").read_text(encoding="utf-8")

    def wait(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait for a condition."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(0.05)

    def close(self) -> None:
        """End the services."""
        for service in reversed(self.services):
            with contextlib.suppress(ProcessLookupError):
                service.send_signal(signal.SIGTERM)
        for service in self.services:
            service.wait(PATIENCE)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if find_mosquitto() is None or find_plugin() is None:
        pytest.skip("Mosquitto or its plug-in is not installed")
    made = Machine(tmp_path)
    yield made
    made.close()


def state_of(machine: Machine, gateway: str) -> str:
    """Return whether a gateway is online, by the command line."""
    sites = json.loads(machine.run("pando gateway list --format json"))
    return next(("online" if s["online"] else "offline" for s in sites if s["site"] == gateway), "")


def test_a_gateway_is_enrolled_as_the_page_says(machine: Machine) -> None:
    text = section("Enrol a gateway")
    end = 0
    for match in _BLOCK.finditer(text):
        words, block = text[end : match.start()], textwrap.dedent(match[2])
        end = match.end()
        named = _FILE.findall(words)
        is_file = match[1] == "json" or "listener" in block
        if is_file:
            machine.write(named[0], block)
            continue
        machine.do(block)
        if "provision" in block:
            (machine.token,) = set(re.findall(r"pando1\.[\w-]+", machine.printed))
        elif "gateway join" in block:
            machine.wait(lambda: state_of(machine, "gw-7") == "online", machine.log(3))
        elif "enrolled" in block:
            assert "joined" in machine.printed
        elif "revoke" in block:
            machine.wait(lambda: state_of(machine, "gw-7") == "offline", "it is out", 5)
    assert len(machine.services) == 4
    machine.wait(lambda: "it refuses the connection" in machine.log(3), "the gateway's log")
    machine.wait(lambda: "gw-7" in machine.log(0), "the broker's log")
    url = machine.placed("https://console.example:8420")
    again = machine.run(f"pando gateway join {url} {machine.token} --data {machine.folder}/x", 2)
    assert "this token is not good" in again
    machine.wait(lambda: "a token for gateway gw-7" in machine.log(1), "the console's log")
