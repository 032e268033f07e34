"""The processes of a federation, each of which can be killed, frozen and lied to about the time."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil

from benchmarks._soak.feed import GATEWAYS, SCHEMA, endpoints, owners
from broker.broker_launch import Preference
from broker.broker_testing import BrokerProcess
from broker.free_ports import free_port
from gateway.gateway_settings import GatewaySettings
from static_engine.static_settings import StaticSettings
from ui.console_settings import ConsoleSettings

ROOT = Path(__file__).resolve().parents[2]
BASE, STATIC, CONSOLE = "base", "static", "console"
FAKED = GATEWAYS[-1]
"""The gateway whose clock can be set."""

DISK = "8m"
GRACE, KEEPALIVE = 3.0, 2
PATIENCE = 90.0
ANSWER_SECONDS = 5.0
"""That the console may take: one that is frozen must not hold the soak up."""


class Service:
    """A process with a settings file and a log."""

    def __init__(self, name: str, package: str, folder: Path, settings: object) -> None:
        self.name = name
        self.environment: dict[str, str] = {}
        path = folder / f"{name}.json"
        path.write_bytes(msgspec.json.encode(settings))
        self._command = [sys.executable, "-m", package, "--config", str(path)]
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns at once."""
        environment = {**os.environ, **self.environment, "PYTHONPATH": str(ROOT)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                self._command, cwd=ROOT, stdout=log, stderr=log, env=environment
            )

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Signal it and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        if number != signal.SIGKILL:
            process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
            raise

    def freeze(self) -> None:
        """Stop it without ending it."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    @property
    def status(self) -> int | None:
        """Exit status of a process that has ended by itself."""
        return None if self._process is None else self._process.poll()

    def log(self) -> str:
        """Return the end of what it has said."""
        return self._log.read_text(errors="replace")[-3_000:] if self._log.exists() else ""


def find_faketime() -> Path | None:
    """Return the library that fakes the time of programs with threads, where it is installed."""
    patterns = ("lib/*/faketime", "lib/faketime", "lib64/faketime", "local/lib/faketime")
    found = (p for each in patterns for p in Path("/usr").glob(f"{each}/libfaketimeMT.so.1"))
    return next(found, None)


class Federation:
    """Broker, base, gateways, static engine and console, in processes of their own.

    Attributes:
        folder: Of everything that is kept.
        has_disks: Whether each engine site writes to a small disk of its own: mounting one needs
            rights.
        has_clock: Whether the time of one gateway can be set.
    """

    def __init__(self, folder: Path, broker: Preference) -> None:
        self.folder = folder
        (folder / "broker").mkdir()
        (folder / "tables").mkdir()
        rows = [f"{mid},{owner}" for mid, owner in owners()]
        (folder / "tables" / "owners.csv").write_text("\n".join(["mid,owner", *rows]) + "\n")
        (folder / "schema.sql").write_text(SCHEMA)
        self.broker = BrokerProcess(broker, folder / "broker")
        self.port = free_port()
        self._mounted: list[Path] = []
        disks = [self._mount(self.data(site)) for site in (*GATEWAYS, BASE)]
        self.has_disks = all(disks)
        self.services = {service.name: service for service in self._services()}
        faketime = find_faketime()
        self.has_clock = faketime is not None
        if faketime is not None:
            self.set_clock(0)
            self.services[FAKED].environment = {
                "LD_PRELOAD": str(faketime),
                "FAKETIME_TIMESTAMP_FILE": str(self._clock_file),
                "FAKETIME_CACHE_DURATION": "1",
                # A machine whose clock is set goes on counting as before.
                "DONT_FAKE_MONOTONIC": "1",
            }
        address = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=address, timeout=ANSWER_SECONDS, trust_env=False)

    def data(self, site: str) -> Path:
        """Return a site's data directory."""
        return self.folder / "state" / site

    def _mount(self, folder: Path) -> bool:
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603
            return False
        self._mounted.append(folder)
        return True

    def _services(self) -> Iterator[Service]:
        broker, folder, tables = self.broker.url, self.folder, str(self.folder / "tables")
        faketime = find_faketime()

        def site(name: str, **more: Any) -> GatewaySettings:
            data = str(self.data(name))
            return GatewaySettings(
                "demo", name, broker, data, grace_seconds=GRACE, keepalive=KEEPALIVE, **more
            )

        yield Service(BASE, "gateway", folder, site(BASE, role="base"))
        console = ConsoleSettings(
            broker,
            str(self.data(CONSOLE)),
            port=self.port,
            schema_file=str(folder / "schema.sql"),
            layers="trace",
            grace_seconds=GRACE,
            base_dir=tables,
        )
        yield Service(CONSOLE, "deploy.console", folder, console)
        static = StaticSettings(broker, str(self.data(STATIC)), base_dir=tables, use_spark=False)
        yield Service(STATIC, "static_engine", folder, static)
        for name in GATEWAYS:
            settings = site(name, endpoints=endpoints(name, folder))
            package = "benchmarks._soak.faked_clock" if name == FAKED and faketime else "gateway"
            yield Service(name, package, folder, settings)

    def start(self, *names: str) -> None:
        """Start services, in this order."""
        for name in names:
            self.services[name].start()

    def set_clock(self, seconds: int) -> None:
        """Set the faked clock so much ahead of the machine's."""
        changed = self._clock_file.with_suffix(".new")
        changed.write_text(f"{seconds:+d}\n")
        changed.rename(self._clock_file)

    @property
    def _clock_file(self) -> Path:
        return self.folder / "clock"

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
                logs = "".join(f"--- {s.name}\n{s.log()}" for s in self.services.values())
                raise RuntimeError(f"not within {seconds:g} s: {what}\n{logs}")
            time.sleep(0.25)

    def get(self, path: str) -> Any:
        """Return what the console answers.

        Raises:
            httpx.HTTPError: It does not.
        """
        return self.http.get(path).raise_for_status().json()

    def run(self, text: str) -> Any:
        """Run a statement; return its outcome."""
        answer = self.http.post("/api/statements", json={"text": text}, timeout=PATIENCE)
        if not answer.is_success:
            raise RuntimeError(f"{text}: {answer.text}")
        return answer.json()[-1]

    def ended(self) -> dict[str, str]:
        """Return the services that have ended by themselves, with their last words."""
        found = {n: s for n, s in self.services.items() if s.status is not None}
        return {name: f"status {s.status}: {s.log()[-500:]}" for name, s in found.items()}

    def memory(self) -> int:
        """Return the bytes of resident memory of all services."""
        family = psutil.Process().children(recursive=True)
        return sum(process.memory_info().rss for process in family if process.is_running())

    def close(self) -> None:
        """End everything and take the disks away."""
        self.http.close()
        for service in reversed(self.services.values()):
            with contextlib.suppress(subprocess.TimeoutExpired):
                service.stop()
        with contextlib.suppress(RuntimeError, OSError):
            self.broker.thaw()
        self.broker.stop()
        for folder in self._mounted:
            subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607


@contextlib.contextmanager
def federation(folder: Path, broker: Preference) -> Iterator[Federation]:
    """Yield broker, console, base and static engine; the gateways are not started yet."""
    running = Federation(folder, broker)
    try:
        running.broker.start()
        running.start(CONSOLE, BASE, STATIC)
        running.until(lambda: running.get("/api/health"), "the console answers")
        yield running
    finally:
        running.close()
