"""Many gateway processes, a base site and a coordinator on one broker, for tests and benchmarks.

The links of a network are spread over the gateways by their source; queries go through the
coordinator as users' do, and every fault that a process can have can be made to happen.
"""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from federated_optimizer.coordinator.contract.coordinator_model import Freshness, QueryInfo
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.coordinator_service import Coordinator, open_coordinator
from gateway.gateway_settings import GatewaySettings
from gateway.testing_links import READY
from host.clocks import wall_clock
from host.mqtt import MessageClient, Will, open_client
from streamsql.data.types import Row
from streamsql.wire.site_messages import SiteRole

ROOT = Path(__file__).resolve().parent.parent
LINK_SOURCE = (
    "CREATE LINK SOURCE Link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst)) "
    "WITH (connector = 'links', endpoint = 'held')"
)
SITE = "fleet"
PAUSE = 0.02

Link = tuple[str, str, float]


class SiteProcess:
    """A gateway or base site as its own process; its log is kept."""

    def __init__(self, folder: Path, settings: GatewaySettings) -> None:
        self.name = settings.gateway
        self.config = folder / f"{self.name}.json"
        self.config.write_bytes(msgspec.json.encode(settings))
        self.log_file = folder / f"{self.name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns at once."""
        command = [sys.executable, "-m", "gateway.testing_links", "--config", str(self.config)]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command, cwd=ROOT, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        """Process id."""
        if self.process is None:
            raise RuntimeError(f"{self.name} has not been started")
        return self.process.pid

    def signal(self, number: int) -> None:
        """Send it a signal: SIGSTOP, SIGCONT, SIGKILL."""
        psutil.Process(self.pid).send_signal(number)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)

    def stop(self) -> None:
        """End it, whatever state it is in."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def memory(self) -> int:
        """Return its private memory in bytes (USS): what it costs to have one more of them."""
        return int(psutil.Process(self.pid).memory_full_info().uss)


class Fleet:
    """A base site, gateways with links, and a coordinator in this process.

    Args:
        folder: For settings, data and logs.
        broker: Address.
        hosts: Node to gateway; a link is at the gateway of its source.
        changes: Settings of the coordinator.
    """

    def __init__(self, folder: Path, broker: str, hosts: Mapping[str, str], **changes: Any) -> None:
        self.folder = folder
        self.broker = broker
        self.hosts = hosts
        self.links: set[Link] = set()
        self.gateways = tuple(sorted(set(hosts.values())))
        self.sites = {name: self._process(name) for name in ("base", *self.gateways)}
        self._settings = CoordinatorSettings(
            site=SITE, database=f"sqlite:///{folder}/catalog.db", **changes
        )
        self._coordinator: Coordinator | None = None

    @property
    def coordinator(self) -> Coordinator:
        """The coordinator, once `start` has opened it."""
        if self._coordinator is None:
            raise RuntimeError("the fleet has not started")
        return self._coordinator

    def _client(self, will: Will) -> MessageClient:
        return open_client(self.broker, "coordinator", will=will, keepalive=5)

    def _process(self, name: str) -> SiteProcess:
        plain: dict[str, Any] = {
            "site": SITE,
            "gateway": name,
            "broker": self.broker,
            "data_dir": str(self.folder / name),
            "grace_seconds": 1.0,
            "keepalive": 2,
        }
        if name == "base":
            return SiteProcess(self.folder, GatewaySettings(**plain, role=SiteRole.BASE))
        held = {"connector": "links", "links": str(self._held(name))}
        settings = GatewaySettings(**plain, endpoints={"held": held})
        return SiteProcess(self.folder, settings)

    def _held(self, name: str) -> Path:
        return self.folder / f"{name}-links.json"

    async def start(self, links: Sequence[Link] = (), seconds: float = 60.0) -> None:
        """Start everything with these links and wait until all sites are there.

        Raises:
            TimeoutError: They are not.
        """
        self.links = set(links)
        for name in self.gateways:
            held = [link for link in links if self.hosts[link[0]] == name]
            self._held(name).write_text(json.dumps(held))
        for process in self.sites.values():
            process.start()
        self._coordinator = await open_coordinator(self._settings, self._client, wall_clock)
        await self.coordinator.execute(LINK_SOURCE)
        await self.until(self.all_live, f"{len(self.sites)} sites are online", seconds)

    def live(self) -> set[str]:
        """Return the sites that are online, and were heard since the broker was away, if it was.

        Gateways follow commands then.
        """
        known = {
            site.site
            for site in self.coordinator.sites()
            if site.freshness == Freshness.LIVE and (site.site == "base" or READY in site.rooms)
        }
        return known & self.sites.keys()

    def all_live(self) -> bool:
        """Whether all sites are."""
        return self.live() == self.sites.keys()

    async def stop(self) -> None:
        """Stop everything that was started."""
        for process in self.sites.values():
            process.stop()
        if self._coordinator is not None:
            await self._coordinator.close()

    async def query(self, text: str) -> str:
        """Start a query; return its id."""
        (result,) = await self.coordinator.execute(text)
        if result.query is None:
            raise TypeError(f"{text!r} is no query")
        return result.query.id

    def info(self, query: str) -> QueryInfo:
        """Return how a query is doing."""
        return self.coordinator.query(query)

    def rows(self, query: str) -> set[Row]:
        """Return a query's relation."""
        return set(self.coordinator.relation(query))

    def change(self, up: Sequence[Link] = (), down: Sequence[Link] = ()) -> None:
        """Let links come and go, each at its gateway; returns at once.

        The gateways must run: one that does not hears nothing. See `edit`.
        """
        self.links = (self.links - set(down)) | set(up)
        for name in self.gateways:
            mine_up = [link for link in up if self.hosts[link[0]] == name]
            mine_down = [link for link in down if self.hosts[link[0]] == name]
            if mine_up or mine_down:
                arguments = {
                    "action": "links",
                    "up": json.dumps(mine_up),
                    "down": json.dumps(mine_down),
                }
                self.coordinator.command(name, "simulate", dict(arguments))

    def edit(self, name: str, down: Sequence[Link]) -> None:
        """Take links from a gateway that does not run; it starts without them."""
        self.links -= set(down)
        held = [link for link in sorted(self.links) if self.hosts[link[0]] == name]
        self._held(name).write_text(json.dumps(held))

    async def until(
        self, condition: Callable[[], bool], what: str, seconds: float = 120.0
    ) -> float:
        """Wait until something is so; return the seconds it took.

        Raises:
            TimeoutError: It is not; says what, and what the sites have logged.
        """
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"not within {seconds:g} s: {what}\n{self.logs()}")
            await asyncio.sleep(PAUSE)
        return time.monotonic() - began

    def logs(self, lines: int = 5) -> str:
        """Return the last lines that every site has logged."""
        parts = []
        for process in self.sites.values():
            if process.log_file.exists():
                last = process.log_file.read_text().splitlines()[-lines:]
                parts.append("\n".join([f"--- {process.name}", *last]))
        return "\n".join(parts)

    def memory(self) -> dict[str, int]:
        """Return the private memory of every site process in bytes."""
        return {name: process.memory() for name, process in self.sites.items()}


class ResultWatch:
    """Follows a query's result change by change, and knows the moment when it is as expected."""

    def __init__(self, fleet: Fleet, query: str) -> None:
        self._subscription = fleet.coordinator.subscribe(query)
        self._rows: dict[Row, int] = {}
        self._wanted: set[Row] = set()
        self._wrong: set[Row] = set()
        self._reached = asyncio.Event()
        self._at = 0.0
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop following."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._subscription.close()

    def expect(self, rows: set[Row]) -> None:
        """Wait for these rows from now on."""
        self._wanted = rows
        self._look_again()

    async def reached(self, seconds: float) -> float:
        """Return the `time.perf_counter` at which the rows were as expected.

        Raises:
            TimeoutError: They are not within the time.
        """
        async with asyncio.timeout(seconds):
            await self._reached.wait()
        return self._at

    def _look_again(self) -> None:
        present = {row for row, count in self._rows.items() if count}
        twice = {row for row, count in self._rows.items() if count not in (0, 1)}
        self._wrong = (present ^ self._wanted) | twice
        self._note()

    def _note(self) -> None:
        if self._wrong:
            self._reached.clear()
        elif not self._reached.is_set():
            self._at = time.perf_counter()
            self._reached.set()

    async def _follow(self) -> None:
        async for batch in self._subscription:
            if batch.snapshot:
                self._rows = {}
            for change in batch.changes:
                row, count = change.row, self._rows.get(change.row, 0) + change.diff
                self._rows[row] = count
                if count == (row in self._wanted):
                    self._wrong.discard(row)
                else:
                    self._wrong.add(row)
            if batch.snapshot:
                self._look_again()
            self._note()


def broker_bytes(port: int) -> int:
    """Return the bytes that all present connections have sent to a broker, as the kernel counts.

    TCP payload of every client, MQTT's own bytes included. Clients that have reconnected count
    from then on.

    Raises:
        OSError: The program `ss` is missing.
    """
    output = subprocess.run(  # noqa: S603 - fixed program, a number as argument
        ["/usr/bin/env", "ss", "-tinH", f"sport = :{port}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    words = output.split()
    return sum(int(w.removeprefix("bytes_received:")) for w in words if "bytes_received:" in w)
