"""Images are built in clean environments, step by step, and their services work together."""

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker.broker_testing import BrokerProcess
from broker.free_ports import free_port
from tests.deploy.built_images import BuiltImage

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(900)]

SECONDS = 120.0
SERVICES = {"console": "console", "base": "gateway", "gw-1": "gateway", "static": "static"}
"""Image of each service."""
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


@contextlib.contextmanager
def deployed(images: dict[str, BuiltImage], folder: Path, broker: str) -> Iterator[str]:
    """Run the services of images, as docker compose would; yield the console's address."""
    prepare = [*images["site"].command, "--state", str(folder / "state"), "--gateways", "1"]
    prepare[prepare.index("--to") + 1] = str(folder / "site")
    written = images["site"].start(prepare, folder / "prepare.log")
    assert written.wait(SECONDS) == 0, (folder / "prepare.log").read_text()
    port = free_port()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for service, image in SERVICES.items():
            settings = folder / "site" / "run" / f"{service}.json"
            changed(settings, data_dir=str(folder / f"state-{service}"))
            if service == "console":
                changed(settings, port=port, host="127.0.0.1")
            if service == "static":
                changed(settings, use_spark=False, spark_master="")
            command = images[image].command
            command = [*command[: command.index("--config") + 1], str(settings)]
            log = folder / f"{service}.log"
            processes.append(images[image].start(command, log, PANDO_BROKER=broker))
        yield f"http://127.0.0.1:{port}"
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(SECONDS)


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
    images: dict[str, BuiltImage], tmp_path: Path
) -> None:
    with (
        BrokerProcess("embedded", tmp_path) as broker,
        deployed(images, tmp_path, broker.url) as address,
        httpx.Client() as http,
    ):

        def live() -> bool:
            sites = http.get(f"{address}/api/sites").json()
            return {each["site"] for each in sites if each["freshness"] == "live"} >= {
                "base", "gw-1", "static"
            }  # fmt: skip

        wait(live, tmp_path)
        answer = http.post(f"{address}/api/statements", json={"text": QUERY})
        assert answer.is_success, answer.text
        query = answer.json()[0]["query"]["id"]

        def rows() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = http.get(f"{address}/api/queries/{query}/rows").json()[
                "rows"
            ]
            return found

        found = wait(rows, tmp_path)
        assert all(row["name"] for row in found)
