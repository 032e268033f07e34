"""A package of somebody else with connectors: installed beside the wheel, run, and tried."""

import asyncio
import subprocess
import sys
import sysconfig
from pathlib import Path

import msgspec
import pytest

from broker.broker_testing import BrokerProcess
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.coordinator_service import open_coordinator
from gateway.gateway_settings import GatewaySettings
from gateway.testing import until
from host.clocks import wall_clock
from host.mqtt import MessageClient, Will, open_client
from streamsql.wire.site_messages import DeclaredState
from tests.deploy.laws.test_wheel import Installed
from tests.docs.markdown import ROOT, blocks
from tests.gateway.connectors.testing.lines_peer import PASSAGE, LinesPeer

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "door-devices"
version = "1.0"

[project.entry-points."pando.connectors"]
lines = "door_devices.lines:LinesConnector"
dials = "door_devices.dials:DialsConnector"

[tool.hatch.build.targets.wheel]
packages = ["door_devices"]
"""

DIALS = '''
"""Dials that are read by their numbers."""

import asyncio

import msgspec

from gateway.connectors.connector import ConnectorContext


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """None."""


class DialsConnector:
    """Reads dials."""

    kind = "dials"
    endpoint_options = Options
    source_options = Options
    hands_over_records = True

    async def run(self, context: ConnectorContext) -> None:
        """Emit what the dials show, again and again."""
        while True:
            for source in context.sources:
                values = {address: len(address) for _, address in source.addresses()}
                context.emit(source.read_record(values))
            await context.kept()
            await asyncio.sleep(0.1)
'''

TRIED = """
import asyncio

import gateway
from door_devices.lines import LinesConnector
from door_devices.peer import LinesPeer
from gateway.connectors.testing.checks import CHECKS, name_of, run_check


async def every_check():
    applied = await asyncio.gather(
        *(run_check(check, LinesConnector, LinesPeer()) for check in CHECKS)
    )
    return [name_of(check) for check, applies in zip(CHECKS, applied) if applies]


print(gateway.__file__)
print(*asyncio.run(every_check()))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, and beside it a distribution made of what the page shows."""
    made = Installed(tmp_path_factory.mktemp("wheel"))
    project = tmp_path_factory.mktemp("door-devices")
    package = project / "door_devices"
    package.mkdir()
    shown = [block.text for block in blocks(ROOT / "docs" / "connectors.md", "python")]
    (peer,) = [text for text in shown if "class LinesPeer" in text]
    (project / "pyproject.toml").write_text(PROJECT)
    (package / "__init__.py").write_text("")
    (package / "lines.py").write_text(shown[0])
    (package / "peer.py").write_text(peer)
    (package / "dials.py").write_text(DIALS)
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(project))
    subprocess.run(build, cwd=project, check=True, capture_output=True)
    (wheel,) = project.glob("door_devices-*.whl")
    install = ("-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
    subprocess.run([made.python, *install], check=True, env=made.environment)
    return made


def environment(installed: Installed) -> dict[str, str]:
    """Return that of a process which has the libraries of this one, and nothing of its source."""
    return {**installed.environment, "PYTHONPATH": sysconfig.get_path("purelib")}


def test_a_gateway_runs_the_connectors_of_a_package(installed: Installed, tmp_path: Path) -> None:
    async def scenario(broker: BrokerProcess) -> None:
        peer = LinesPeer()
        await peer.start()
        endpoint = {**peer.endpoint, "connector": "lines"}
        settings = GatewaySettings(
            "demo",
            "gw-1",
            broker.url,
            str(tmp_path / "gw-1"),
            endpoints={"trial": endpoint, "wall": {"connector": "dials"}},
        )
        config = tmp_path / "gw-1.json"
        config.write_bytes(msgspec.json.encode(settings))

        def client(will: Will) -> MessageClient:
            return open_client(broker.url, "coordinator", will=will)

        database = CoordinatorSettings(database=f"sqlite:///{tmp_path}/catalog.db")
        coordinator = await open_coordinator(database, client, wall_clock)

        def state_of(source: str) -> DeclaredState | None:
            states = [
                each
                for site in coordinator.sites()
                if site.figures is not None
                for each in site.figures.declared
                if each.name == source
            ]
            return states[0] if states else None

        def has_rows(source: str) -> bool:
            state = state_of(source)
            return state is not None and state.rows > 0 and not state.problem

        await coordinator.execute(PASSAGE)
        await coordinator.execute(
            "CREATE SOURCE wall (low INTEGER FROM 'dial 7', high INTEGER FROM 'dial nr. 12') "
            "WITH (connector = 'dials', endpoint = 'wall')"
        )
        with (tmp_path / "gateway.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: ASYNC220  (it starts in the background)
                [installed.python, "-m", "gateway", "--config", str(config)],
                cwd=installed.folder, env=environment(installed), stdout=log, stderr=log,
            )  # fmt: skip
        try:
            await peer.send(7)
            await until(lambda: 7 in peer.acknowledged(), "the line is kept and acknowledged")
            await until(lambda: has_rows("passage"), "lines are rows")
            await until(lambda: has_rows("wall"), "dials are rows, without a format")
        finally:
            process.terminate()
            process.wait(60)
            await coordinator.close()
            await peer.stop()

    with BrokerProcess("embedded", tmp_path) as broker:
        asyncio.run(scenario(broker))


def test_its_tests_run_the_kit_of_the_installed_package(installed: Installed) -> None:
    done = subprocess.run(
        [installed.python, "-c", TRIED],
        cwd=installed.folder,
        env=environment(installed),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    where, applied = done.stdout.splitlines()
    assert where.startswith(str(installed.folder))
    assert len(applied.split()) == 12
