"""A real console process with accounts, and everybody who may ask it something."""

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

from broker.free_ports import free_port
from federated_optimizer.coordinator.contract.principal import Role
from tests.end_to_end.federation import PATIENCE, ROOT, wait

BROKER_PASSWORD = "broker-secret-5f2a"
SINK_SECRET = "sink-secret-9c1b"
DATABASE_PASSWORD = "database-secret-4e8d"
PASSWORDS = {role: f"correct-horse-{role}-7d3e" for role in Role}
SETTINGS = {
    "broker": f"mqtt://coordinator:{BROKER_PASSWORD}@127.0.0.1:9",
    "site": "house",
    "request_seconds": 4.0,
    "statement_seconds": 4.0,
    "endpoints": {
        "plant": {
            "connector": "mqtt",
            "address": "mqtt://127.0.0.1:9",
            "username": "plant",
            "password": SINK_SECRET,
        }
    },
}
SCRIPT = f"""
CREATE SOURCE readings (mid TEXT, room TEXT, level INTEGER, KEY (mid))
WITH (connector = 'http_push', endpoint = 'hooks', path = '/r');
CREATE TABLE people (name TEXT) WITH (source = 'sql', url = 'secret:people', table = 'people');
CREATE TABLE salaries (name TEXT)
WITH (source = 'sql', url = 'postgresql://u:{DATABASE_PASSWORD}@127.0.0.1:9/d', table = 's');
CREATE VIEW high AS SELECT mid, level FROM readings WHERE level > 50
"""
NO_ONE = (
    "nobody",
    "a made-up token",
    "an expired token",
    "a revoked token",
    "a disabled account",
    "a token of a disabled account",
    "a removed account",
    "a made-up cookie",
)
"""Askers whom the console must not know."""


@dataclass
class Desk:
    """The console.

    Attributes:
        askers: Clients by name: those of `NO_ONE`, each role, and an administrator's token that may
            do what a viewer may.
        secrets: Texts that no answer may hold; whoever may know one was told it already.
    """

    folder: Path
    port: int = field(default_factory=free_port)
    askers: dict[str, httpx.Client] = field(default_factory=dict)
    secrets: set[str] = field(
        default_factory=lambda: {BROKER_PASSWORD, SINK_SECRET, DATABASE_PASSWORD, "$argon2"}
    )

    def start(self) -> None:
        """Start it; make accounts, sessions and tokens, some of which are void again."""
        file = self.folder / "console.json"
        given: dict[str, Any] = {"port": self.port, "data_dir": str(self.folder / "data")}
        given["base_dir"] = str(self.folder)
        file.write_text(json.dumps(SETTINGS | given))
        self._log = (self.folder / "console.log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "deploy.console", "--config", str(file)],
            cwd=ROOT,
            stdout=self._log,
            stderr=self._log,
        )
        wait(self.answers)
        self._make_accounts()
        admin = self.askers[Role.ADMINISTRATOR]
        admin.post("/api/statements", json={"text": SCRIPT}).raise_for_status()
        query = {"text": "SELECT mid, level FROM readings", "name": "levels"}
        admin.post("/api/statements", json=query).raise_for_status()
        self._memory = self._resident()

    def client(self, token: str = "", cookie: str = "") -> httpx.Client:
        """Return a client that shows a token or a cookie."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if cookie:
            headers["Cookie"] = cookie
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            timeout=PATIENCE,
            trust_env=False,
            headers=headers,
        )

    def _make_accounts(self) -> None:
        with self.client() as local:
            for role in (Role.ADMINISTRATOR, *(r for r in Role if r != Role.ADMINISTRATOR)):
                asker = self.askers.get(Role.ADMINISTRATOR, local)
                self._add(asker, f"{role}y", role)
                self.askers[role] = self._signed_in(f"{role}y", PASSWORDS[role])
        admin = self.askers[Role.ADMINISTRATOR]
        for name in ("gone", "off"):
            self._add(admin, name, Role.ADMINISTRATOR)
        void = PASSWORDS[Role.ADMINISTRATOR]
        self.askers["a removed account"] = self._signed_in("gone", void)
        self.askers["a disabled account"] = self._signed_in("off", void)
        self.askers["a token of a disabled account"] = self.client(self._token(admin, "off")[1])
        admin.delete("/api/accounts/gone").raise_for_status()
        admin.patch("/api/accounts/off", json={"disabled": True}).raise_for_status()
        self.askers["an expired token"] = self.client(self._token(admin, days=1e-6)[1])
        number, secret = self._token(admin)
        self.askers["a revoked token"] = self.client(secret)
        admin.delete(f"/api/tokens/{number}").raise_for_status()
        self.askers["a viewer's token"] = self.client(self._token(admin, role=Role.VIEWER)[1])
        self.askers["nobody"] = self.client()
        self.askers["a made-up token"] = self.client("pando_" + "x" * 43)
        name = next(cookie.name for cookie in self.askers[Role.VIEWER].cookies.jar)
        self.askers["a made-up cookie"] = self.client(cookie=f"{name}={'x' * 43}")

    def _add(self, asker: httpx.Client, name: str, role: Role) -> None:
        body = {"name": name, "role": role, "password": PASSWORDS[role]}
        answer = asker.post("/api/accounts", json=body)
        assert answer.is_success, answer.text

    def _signed_in(self, name: str, password: str) -> httpx.Client:
        client = self.client()
        answer = client.post("/api/sign-in", json={"name": name, "password": password})
        assert answer.is_success, answer.text
        self.secrets |= {password, *(cookie.value or "-" for cookie in client.cookies.jar)}
        return client

    def _token(
        self,
        admin: httpx.Client,
        account: str = "administratory",
        role: Role = Role.ADMINISTRATOR,
        days: float = 1.0,
    ) -> tuple[str, str]:
        body = {"account": account, "label": "test", "role": role, "days": days}
        answer = admin.post("/api/tokens", json=body)
        assert answer.is_success, answer.text
        told = answer.json()
        self.secrets.add(told["secret"])
        return told["id"], told["secret"]

    def answers(self) -> bool:
        """Whether it runs and serves somebody who behaves."""
        assert self.process.poll() is None, self.log()[-3_000:]
        with contextlib.suppress(httpx.HTTPError):
            address = f"http://127.0.0.1:{self.port}/api/health"
            return httpx.get(address, trust_env=False, timeout=PATIENCE).is_success
        return False

    def leaks(self, text: str) -> list[str]:
        """Return what in a text nobody should read there."""
        found = [secret for secret in self.secrets if secret in text]
        return found + [mark for mark in ("Traceback (most", "site-packages") if mark in text]

    def growth(self) -> dict[str, int]:
        """Return by how many bytes it has grown since it started."""
        return {"before": self._memory, "after": self._resident()}

    def _resident(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def descriptors(self) -> int:
        """Return how many files and sockets it has open."""
        return int(psutil.Process(self.process.pid).num_fds())

    def state(self, path: str, key: str) -> list[str]:
        """Return the names in a list, as an administrator sees them."""
        answer = self.askers[Role.ADMINISTRATOR].get(path)
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()
        return sorted(str(each[key]) for each in found)

    def log(self) -> str:
        """Return what it has said."""
        return (self.folder / "console.log").read_text("utf-8", "replace")

    def stop(self) -> None:
        """End it."""
        for client in self.askers.values():
            client.close()
        self.process.terminate()
        self.process.wait(PATIENCE)
        self._log.close()


@contextlib.contextmanager
def desk(folder: Path) -> Iterator[Desk]:
    """Yield a console with accounts."""
    made = Desk(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
