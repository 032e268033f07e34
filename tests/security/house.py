"""A federation of real processes whose broker knows accounts, with three running queries.

What the gateway has read is known, so that the answers are known without the engines.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from broker.access.dynamic_security import (
    Document,
    PasswordHash,
    client_of,
    encode_document,
    role_of,
)
from broker.access.rights import Mode, Right, rights_of
from broker.broker_launch import BrokerSecurity, Preference
from broker.broker_testing import BrokerProcess, RawClient
from broker.free_ports import free_port
from tests.broker.laws.secured import FEDERATION, SITES
from tests.end_to_end.federation import PATIENCE, ROOT, wait

ATTACKER = "gw-2"
"""Gateway whose account the attacker has."""
INSIDER = "insider"
"""Account that may publish and read everything: messages in anybody's name."""
TOKEN = "a-token-of-the-device"
ROOMS = {"r1": 2, "r2": 40, "r3": 7}
LAST = 3
"""Readings in the window."""
SCRIPT = """
CREATE SOURCE readings (mid TEXT, room TEXT, level INTEGER, KEY (mid))
WITH (connector = 'http_push', endpoint = 'hooks', path = '/r');
CREATE TABLE rooms (room TEXT, seats INTEGER) WITH (source = 'csv', path = 'rooms.csv')
"""
QUERIES = {
    "joined": "SELECT s.mid, s.level, r.seats FROM readings s, rooms r WHERE s.room = r.room",
    "totals": "SELECT room, COUNT(*) AS n, SUM(level) AS total FROM readings GROUP BY room",
    "newest": f"SELECT mid, level FROM readings [ROWS {LAST}]",
}
SERVICES = ("gw-1", "base", "static", "console")
MORE_MEMORY = 120_000_000
"""Bytes by which a service may grow."""

Rows = list[tuple[Any, ...]]


def write_accounts(file: Path) -> None:
    """Write accounts of the federation's sites and of the insider."""
    whole = tuple(Right(mode, f"pando/v1/{FEDERATION}/#") for mode in Mode)
    rights = {site: rights_of(kind, site, FEDERATION) for site, kind in SITES.items()}
    rights[INSIDER] = whole
    document = Document(
        clients=tuple(
            client_of(name, PasswordHash.of(f"pw-{name}", name.encode().ljust(12), 101))
            for name in rights
        ),
        roles=tuple(role_of(name, allowed) for name, allowed in rights.items()),
    )
    file.write_bytes(encode_document(document))
    file.chmod(0o600)


@dataclass
class House:
    """The running federation.

    Attributes:
        fed: Readings so far, in order: device, room, level.
    """

    folder: Path
    broker: BrokerProcess
    port: int = field(default_factory=free_port)
    push: int = field(default_factory=free_port)
    fed: list[tuple[str, str, int]] = field(default_factory=list)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE, trust_env=False
        )

    def address(self, user: str) -> str:
        """Return the broker's address for a user."""
        return f"mqtt://{user}:pw-{user}@127.0.0.1:{self.broker.port}"

    def start(self) -> None:
        """Start all services and queries, and wait until they answer."""
        rooms = "".join(f"{room},{seats}\n" for room, seats in ROOMS.items())
        (self.folder / "rooms.csv").write_text("room,seats\n" + rooms)
        hooks = {"connector": "http_push", "port": self.push, "token": TOKEN}
        engine = {"site": FEDERATION, "grace_seconds": 5.0}
        base_dir = str(self.folder)
        self._run(
            "gw-1", "gateway", {**engine, "gateway": "gw-1", "endpoints": {"hooks": hooks}}, "gw-1"
        )
        self._run("base", "gateway", {**engine, "gateway": "base", "role": "base"}, "base")
        static = {"use_spark": False, "base_dir": base_dir, "poll_seconds": 0.5}
        self._run("static", "static_engine", {"site": FEDERATION, **static}, "static")
        console = {
            "site": FEDERATION,
            "port": self.port,
            "base_dir": base_dir,
            "base_sites": ["base"],
        }
        self._run("console", "deploy.console", console, "coordinator")
        wait(self._is_up, explain=self.said)
        self.execute(SCRIPT)
        for name, text in QUERIES.items():
            self.execute(text, name)
        self.feed(4)
        wait(self.answers_are_right, explain=self.said)
        self.memory = self.resident()

    def _run(self, name: str, module: str, settings: dict[str, Any], user: str) -> None:
        file = self.folder / f"{name}.json"
        common = {"broker": self.address(user), "data_dir": str(self.folder / "data" / name)}
        file.write_text(json.dumps({**common, **settings}))
        file.chmod(0o600)
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", module, "--config", str(file)],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    def _is_up(self) -> bool:
        self.check_alive()
        with contextlib.suppress(httpx.HTTPError):
            sites = {site["site"]: site for site in self.http.get("/api/sites").json()}
            return all(sites.get(s, {}).get("online") for s in ("gw-1", "base", "static"))
        return False

    def execute(self, text: str, name: str = "") -> None:
        """Execute statements at the console."""
        answer = self.http.post("/api/statements", json={"text": text, "name": name})
        assert answer.is_success, answer.text

    def feed(self, number: int) -> None:
        """Send readings to the gateway; each is on its disk when this returns."""
        rooms = sorted(ROOMS)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for _ in range(number):
            count = len(self.fed)
            reading = (f"m{count % 7}", rooms[count % 3], count * 13 % 101)
            body = dict(zip(("mid", "room", "level"), reading, strict=True))

            def is_taken(body: dict[str, Any] = body) -> bool:
                self.check_alive()
                try:
                    address = f"http://127.0.0.1:{self.push}/r"
                    answer = self.http.post(address, json=body, headers=headers)
                except httpx.ConnectError:
                    return False  # the source is not declared there yet
                assert answer.status_code in {202, 404, 429, 503}, answer.text
                return answer.status_code == 202

            wait(is_taken, explain=self.said)
            self.fed.append(reading)

    def expected(self) -> dict[str, Rows]:
        """Return what the queries have to answer, from what was fed."""
        newest = {mid: (room, level) for mid, room, level in self.fed}
        totals: dict[str, list[int]] = {}
        for room, level in newest.values():
            totals.setdefault(room, []).append(level)
        return {
            "joined": sorted((m, level, ROOMS[room]) for m, (room, level) in newest.items()),
            "totals": sorted((room, len(each), sum(each)) for room, each in totals.items()),
            "newest": sorted((mid, level) for mid, _, level in self.fed[-LAST:]),
        }

    def rows(self) -> dict[str, Rows]:
        """Return what the queries answer."""
        return {name: self.rows_of(name) for name in QUERIES}

    def rows_of(self, query: str) -> Rows:
        """Return what a query answers, in order."""
        shown = self.http.get(f"/api/queries/{query}/rows").json()
        return sorted(tuple(row.values()) for row in shown.get("rows", ()))

    def answers_are_right(self) -> bool:
        """Whether all queries run without a problem and answer what they have to.

        A gateway may say that it serves a source, though another definition of it: its rows are
        left out, and queries name it in a warning.
        """
        self.check_alive()
        told = [self.http.get(f"/api/queries/{name}").json() for name in QUERIES]
        return self.rows() == self.expected() and all(
            each["status"] in {"running", "degraded"}
            and not each["error"]
            and all(warning.startswith(ATTACKER) for warning in each["warnings"])
            for each in told
        )

    def check_alive(self) -> None:
        """Fail if a service has ended."""
        ended = {n: p.returncode for n, p in self.processes.items() if p.poll() is not None}
        assert not ended, f"ended: {ended}\n{self.said()}"

    def resident(self) -> dict[str, int]:
        """Return the bytes in memory of each service."""
        return {n: psutil.Process(p.pid).memory_info().rss for n, p in self.processes.items()}

    def client(self, user: str) -> RawClient:
        """Connect to the broker as somebody."""
        client = RawClient(self.broker.port, user, 5)
        assert client.open(user=user, password=f"pw-{user}".encode())[1] == 0
        return client

    def contents(self) -> dict[str, bytes]:
        """Return the files below the folder; those that services rewrite have no content here."""
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        ours = {path.relative_to(self.folder): path for path in found}
        return {
            str(name): path.read_bytes() if name.suffix in {".csv", ".json", ".conf"} else b""
            for name, path in ours.items()
            if name.parent.name != "state" and not name.name.endswith(("-wal", "-shm"))
        }

    def known(self) -> dict[str, list[str]]:
        """Return what the console knows by name: sites, queries, definitions."""
        names = {"/api/sites": "site", "/api/queries": "id", "/api/definitions": "name"}
        return {
            path: sorted(each[key] for each in self.http.get(path).json())
            for path, key in names.items()
        }

    def said(self) -> str:
        """Return the last lines of the services' logs, and the answers."""
        lines = []
        with contextlib.suppress(httpx.HTTPError, KeyError, ValueError):
            lines += [f"expected {self.expected()}", f"found    {self.rows()}"]
            lines += [self.http.get(f"/api/queries/{name}").text[:600] for name in QUERIES]
        for name in self.processes:
            log = (self.folder / f"{name}.log").read_text("utf-8", "replace")
            lines += [f"--- {name}", *log.splitlines()[-8:]]
        return "\n".join(lines)

    def stop(self) -> None:
        """End all services."""
        self.http.close()
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(PATIENCE)


@contextlib.contextmanager
def house(folder: Path, kind: Preference = "auto") -> Iterator[House]:
    """Yield a federation whose queries answer."""
    accounts = folder / "broker" / "dynamic-security.json"
    accounts.parent.mkdir()
    write_accounts(accounts)
    with BrokerProcess(kind, accounts.parent, BrokerSecurity(accounts)) as broker:
        made = House(folder, broker)
        try:
            made.start()
            yield made
        finally:
            made.stop()
