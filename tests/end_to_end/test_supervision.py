"""Starting, stopping and dying of the whole federation: always clean, always explained."""

import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.federation import Federation, federation, wait

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(180)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_without_a_trace(tmp_path: Path, number: signal.Signals) -> None:
    with federation(tmp_path / "data", "--no-spark", "--gateways", "1") as up:
        pids = up.pids()
        assert up.stop(number) == 0
        wait(lambda: not any(psutil.pid_exists(pid) for pid in pids), 5)
        assert up.event("stopped") is not None
        assert not (up.data / "console.json").exists()


def test_killing_the_supervisor_leaves_no_orphan(tmp_path: Path) -> None:
    with federation(tmp_path / "data", "--no-spark", "--gateways", "1") as up:
        pids = up.pids()
        up.stop(signal.SIGKILL)
        wait(lambda: not any(psutil.pid_exists(pid) for pid in pids), 15)
    with federation(tmp_path / "data", "--no-spark", "--gateways", "1") as again:
        assert again.sites()["gw-1"]["online"]


@pytest.mark.parametrize("service", ["broker", "base", "console"])
def test_the_death_of_a_vital_service_is_explained(tmp_path: Path, service: str) -> None:
    with federation(tmp_path / "data", "--no-spark", "--gateways", "1") as up:
        pids = up.pids()
        os.kill(up.pid(service), signal.SIGKILL)
        assert up.process.wait(30) == 1
        death = up.event("died", service=service)
        assert death is not None
        assert "SIGKILL" in death["message"]
        wait(lambda: not any(psutil.pid_exists(pid) for pid in pids), 5)


def test_a_second_federation_on_the_same_port_is_refused(tmp_path: Path) -> None:
    with federation(tmp_path / "data", "--no-spark", "--gateways", "1") as up:
        second = up.pando("up", "--port", str(up.port), "--data", str(tmp_path / "other"))
        assert second.returncode == 2
        assert f"port {up.port} is in use" in second.stdout + second.stderr
        third = up.pando("up", "--port", str(up.port + 1), "--data", str(up.data))
        assert third.returncode == 2
        assert "another federation runs" in third.stdout + third.stderr
        assert up.sites()["gw-1"]["online"]


def test_wrong_options_are_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        closed = nobody.getsockname()[1]
        cases = [
            (("--site", str(tmp_path / "none.geojson")), "there is no such file"),
            (("--gateways", "0"), "--gateways 0"),
            (("--broker", f"mqtt://127.0.0.1:{closed}"), "no broker answers"),
            (("--broker", "nonsense"), "no broker address"),
        ]
        for options, message in cases:
            assert message in Federation(tmp_path / "data", "--no-spark", *options).refused()


def test_a_site_file_that_is_wrong_names_the_feature(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.geojson"
    wrong.write_text('{"type": "FeatureCollection", "features": [{"type": "Feature"}]}')
    refused = Federation(tmp_path / "data", "--no-spark", "--site", str(wrong))
    assert "feature" in refused.refused().lower()
