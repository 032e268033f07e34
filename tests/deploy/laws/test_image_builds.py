"""Images are built in clean environments, step by step, and their services work together."""

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from broker.free_ports import free_port
from tests.deploy.built_images import BuiltImage
from tests.deploy.laws.test_broker_config import running_broker
from tests.deploy.laws.test_postgres_init import PASSWORDS
from tests.deploy.laws.test_postgres_init import sockets as sockets  # noqa: PLC0414 - a fixture

pytestmark = [
    pytest.mark.broker,
    pytest.mark.postgres,
    pytest.mark.end_to_end,
    pytest.mark.timeout(900),
]

SECONDS = 120.0
SERVICES = {"console": "console", "base": "gateway", "gw-1": "gateway", "static": "static"}
"""Image of each service."""
ACCOUNTS = {"console": "coordinator", "base": "base", "gw-1": "gw-1", "static": "static"}
"""Account at the broker of each service."""
WORD = "a-long-word"
PASSWORD = "correct horse battery staple"
QUERY = "SELECT s.mid, r.name FROM SeatSensor s JOIN Rooms r ON s.rid = r.rid"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BuiltImage]:
    folder = tmp_path_factory.mktemp("images")
    return {
        name: BuiltImage(name, folder / name, folder / "environments")
        for name in ("site", "console", "gateway", "static")
    }


def changed(file: Path, **values: object) -> None:
    """Set values in a file of settings."""
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **values}))


class Deployment:
    """Services of images with real Mosquitto and PostgreSQL, as docker compose would run them."""

    def __init__(self, images: dict[str, BuiltImage], folder: Path, sockets: str) -> None:
        self.images, self.folder = images, folder
        password = quote(PASSWORDS["PANDO_CATALOG_PASSWORD"])
        user = f"postgresql+psycopg://pando_catalog:{password}@"
        url = f"{user}/pando_catalog?host={sockets}"
        self._lake = {"PANDO_LAKE_CATALOG": url}
        self._catalog = {"PANDO_CATALOG_URL": url, **self._lake}
        self.address = ""
        self._site = folder / "site"

    def settings(self, service: str) -> Path:
        """Return the settings file of a service."""
        return self._site / "run" / f"{service}.json"

    def prepare(self) -> None:
        """Run the job that writes the site, settings and certificates."""
        folders = {
            "--to": self._site,
            "--authority": self.folder / "authority",
            "--broker": self.folder / "mosquitto" / "certificates",
        }
        command = self.images["site"].command[:3]
        command += [word for name, path in folders.items() for word in (name, str(path))]
        self._finish("site", [*command, "--gateways", "1"])

    def add_administrator(self) -> None:
        """Make the account that the console does not start without."""
        command = ["python", "-m", "deploy.cli.entry", "user", "add", "ann"]
        command += ["--role", "administrator", "--password-stdin"]
        command += ["--config", str(self.settings("console"))]
        self._finish("console", command, given=PASSWORD)

    def _finish(self, image: str, command: list[str], given: str = "") -> None:
        variables = self._catalog if image == "console" else {}
        done = self.images[image].run(command, given, **variables)
        assert done.returncode == 0, done.stdout + done.stderr

    @contextlib.contextmanager
    def running(self, broker_port: int) -> Iterator[None]:
        """Run all services until the block ends."""
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for service, image in SERVICES.items():
                broker = f"mqtts://{ACCOUNTS[service]}:{WORD}@localhost:{broker_port}"
                command = self.images[image].command
                command = [*command[: command.index("--config") + 1], str(self.settings(service))]
                log = self.folder / f"{service}.log"
                variables = {"PANDO_BROKER": broker}
                if service in ("console", "static"):
                    variables |= self._catalog if service == "console" else self._lake
                processes.append(self.images[image].start(command, log, **variables))
            yield
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(SECONDS)

    def place(self) -> None:
        """Set what differs where all is one machine: ports, folders, no Spark cluster."""
        for service in SERVICES:
            changed(
                self.settings(service),
                data_dir=str(self.folder / f"state-{service}"),
                metrics_port=free_port(),
                metrics_host="127.0.0.1",
            )
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        changed(self.settings("console"), port=port, host="127.0.0.1")
        changed(self.settings("static"), use_spark=False, spark_master="")
        for service in ("static", "console"):
            self._place_lake(service)

    def _place_lake(self, service: str) -> None:
        lake = json.loads(self.settings(service).read_text(encoding="utf-8"))["lake"]
        changed(self.settings(service), lake={**lake, "warehouse": str(self.folder / "lake")})


def wait(condition: Callable[[], Any], folder: Path) -> Any:
    deadline = time.monotonic() + SECONDS
    while True:
        with contextlib.suppress(httpx.HTTPError):
            if found := condition():
                return found
        logs = "".join(f"--- {log.name}\n{log.read_text()}" for log in folder.glob("*.log"))
        assert time.monotonic() < deadline, logs[-8_000:]
        time.sleep(0.2)


def test_services_of_images_answer_a_query_over_devices_and_tables(
    images: dict[str, BuiltImage], sockets: str, tmp_path: Path
) -> None:
    deployment = Deployment(images, tmp_path, sockets)
    deployment.prepare()
    deployment.place()
    deployment.add_administrator()
    ports = {1883: free_port(), 8883: free_port()}
    accounts = dict.fromkeys(ACCOUNTS.values(), WORD)
    with (
        running_broker(tmp_path / "mosquitto", ports, passwords=accounts, federation="demo"),
        deployment.running(ports[8883]),
        httpx.Client(base_url=deployment.address) as http,
    ):
        wait(lambda: http.get("/api/health").is_success, tmp_path)
        assert http.get("/api/sites").status_code == 401
        signed_in = http.post("/api/sign-in", json={"name": "ann", "password": PASSWORD})
        assert signed_in.is_success, signed_in.text

        def live() -> bool:
            sites = http.get("/api/sites").json()
            found = {each["site"] for each in sites if each["freshness"] == "live"}
            return found >= {"base", "gw-1", "static"}

        wait(live, tmp_path)
        answer = http.post("/api/statements", json={"text": QUERY})
        assert answer.is_success, answer.text
        query = answer.json()[0]["query"]["id"]
        found = wait(lambda: http.get(f"/api/queries/{query}/rows").json()["rows"], tmp_path)
        assert all(row["name"] for row in found)
