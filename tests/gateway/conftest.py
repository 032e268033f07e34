"""Gateway processes on real brokers."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess


@pytest.fixture(params=["embedded", "mosquitto"])
def real_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker process of the test's own, to stop, freeze or restart."""
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    folder = tmp_path / "broker"
    folder.mkdir()
    with BrokerProcess(kind, folder) as process:
        yield process


@pytest.fixture
def embedded_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Our own broker, for what does not depend on the broker."""
    folder = tmp_path / "broker"
    folder.mkdir()
    with BrokerProcess("embedded", folder) as process:
        yield process


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs rights this process does not have")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
