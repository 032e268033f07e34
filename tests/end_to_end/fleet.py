"""A federation with accounts and TLS, made of its parts: broker, console, gateways by token.

Nothing of it is shared with `pando up`: the broker is a real Mosquitto, or ours, with a document
of accounts; each service is a process of its own; gateways join with `python -m gateway.join`.
"""

import contextlib
import datetime as dt
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from broker.access.dynamic_security import (
    Document,
    PasswordHash,
    client_of,
    encode_document,
    role_of,
)
from broker.access.rights import SiteKind, rights_of
from broker.broker_launch import BrokerSecurity, Preference
from broker.broker_testing import BrokerProcess
from broker.free_ports import free_port
from host.certificates.certificate_files import (
    ensure_server_certificate,
    open_or_make_authority,
)

ROOT = Path(__file__).resolve().parents[2]
FEDERATION = "house"
NAMES = ("localhost", "127.0.0.1")
PATIENCE = 60.0
SERVICES = {"coordinator": SiteKind.COORDINATOR, "base": SiteKind.BASE, "viewer": SiteKind.VIEWER}


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> float:
    """Wait for a condition; return the seconds that it took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, f"{what}: not within {seconds:g} s"
        time.sleep(0.02)
    return time.monotonic() - begun


class Service:
    """A process of ours with its log."""

    def __init__(self, log: Path, *words: str) -> None:
        self.log_file = log
        self.words = words
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    @property
    def log(self) -> str:
        """All that it has said."""
        return self.log_file.read_text(encoding="utf-8")

    def stop(self) -> int:
        """End it."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class SecuredFederation:
    """Broker, console, and the gateways that join."""

    def __init__(self, folder: Path, kind: Preference) -> None:
        self.folder = folder
        now = dt.datetime.now(dt.UTC)
        self.authority = open_or_make_authority(folder / "ca", "Pando authority", now)
        self.server = ensure_server_certificate(
            self.authority, folder / "server", "server", NAMES, now
        )
        accounts = folder / "dynamic-security.json"
        accounts.write_bytes(encode_document(self._document()))
        accounts.chmod(0o600)
        security = BrokerSecurity(accounts, self.server.certificate, self.server.key)
        self.broker = BrokerProcess(kind, folder, security)
        self.port = free_port()
        self.address = f"https://localhost:{self.port}"
        self.services: dict[str, Service] = {}
        trusted = ssl.create_default_context(cafile=str(folder / "ca" / "ca.crt"))
        self.http = httpx.Client(
            base_url=self.address, verify=trusted, timeout=PATIENCE, trust_env=False
        )

    @property
    def ca(self) -> Path:
        """The authority's certificate."""
        return self.folder / "ca" / "ca.crt"

    def url(self, user: str) -> str:
        """Address of the broker with the password of a service that was not enrolled."""
        return f"mqtts://{user}:pw-{user}@localhost:{self.broker.port}"

    def _document(self) -> Document:
        return Document(
            clients=tuple(
                client_of(site, PasswordHash.of(f"pw-{site}", site.encode().ljust(12), 101))
                for site in SERVICES
            ),
            roles=tuple(
                role_of(site, rights_of(kind, site, FEDERATION)) for site, kind in SERVICES.items()
            ),
        )

    def start(self) -> None:
        """Start broker, console and base site, and wait until the console answers."""
        self.broker.start()
        settings: dict[str, Any] = {
            "site": FEDERATION,
            "broker": self.url("coordinator"),
            "broker_ca": str(self.ca),
            "data_dir": str(self.folder / "console"),
            "port": self.port,
            "tls_cert": str(self.server.certificate),
            "tls_key": str(self.server.key),
            "authority": str(self.folder / "ca"),
        }
        self.run("console", "ui", settings)
        base = {
            "site": FEDERATION,
            "gateway": "base",
            "role": "base",
            "broker": self.url("base"),
            "broker_ca": str(self.ca),
            "data_dir": str(self.folder / "base"),
        }
        self.run("base", "gateway", base)
        wait_until(self._answers, "the console answers")

    def run(self, name: str, module: str, settings: dict[str, Any]) -> Service:
        """Start a service with settings."""
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(settings), encoding="utf-8")
        return self._started(name, module, "--config", str(file))

    def start_gateway(self, name: str) -> Service:
        """Start a gateway that has joined."""
        return self._started(name, "gateway", "--config", str(self.folder / name / "gateway.json"))

    def _started(self, name: str, *words: str) -> Service:
        self.services[name] = Service(self.folder / f"{name}.log", *words)
        return self.services[name]

    def join(self, name: str, token: str, **changes: str) -> "subprocess.CompletedProcess[str]":
        """Join as another machine would, with a folder of its own."""
        given = {"url": self.address, "data": str(self.folder / name), **changes}
        words = ["gateway.join", given["url"], token, "--data", given["data"]]
        return subprocess.run(
            [sys.executable, "-m", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=PATIENCE,
            check=False,
        )

    def provision(self, name: str) -> str:
        """Return a token."""
        answer = self.http.post("/api/fleet", json={"name": name})
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["token"]
        return token

    def enrol(self, name: str) -> Service:
        """Provision, join, start, and wait until it is live."""
        joined = self.join(name, self.provision(name))
        assert joined.returncode == 0, joined.stderr
        service = self.start_gateway(name)
        wait_until(lambda: self.is_live(name), f"{name} is live")
        return service

    def site(self, name: str) -> dict[str, Any]:
        """Return a site as the Gateways page gets it, or nothing."""
        sites: list[dict[str, Any]] = self.http.get("/api/sites").json()
        return next((each for each in sites if each["site"] == name), {})

    def is_live(self, name: str) -> bool:
        """Whether a site is online and in touch."""
        site = self.site(name)
        return bool(site) and site["online"] and site["freshness"] == "live"

    def enrolment(self, name: str) -> dict[str, Any]:
        """Return an enrolment, or nothing."""
        found: list[dict[str, Any]] = self.http.get("/api/fleet").json()
        return next((each for each in found if each["name"] == name), {})

    def _answers(self) -> bool:
        console = self.services["console"]
        assert console.process.poll() is None, console.log
        try:
            return self.http.get("/api/health").status_code == 200 and self.is_live("base")
        except httpx.TransportError:
            return False

    def close(self) -> None:
        """End all."""
        self.http.close()
        with contextlib.ExitStack() as stack:
            if self.broker.is_running:
                stack.callback(self.broker.stop)
            for service in self.services.values():
                if service.process.poll() is None:
                    stack.callback(service.stop)


@contextlib.contextmanager
def secured_federation(folder: Path, kind: Preference) -> Iterator[SecuredFederation]:
    """Run one until the block ends."""
    federation = SecuredFederation(folder, kind)
    try:
        federation.start()
        yield federation
    finally:
        federation.close()
