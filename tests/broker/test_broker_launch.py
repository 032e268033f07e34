"""Choosing and configuring a broker."""

import sys
from pathlib import Path

import pytest

from broker import broker_launch as launch
from broker.embedded.limits import Limits
from streamsql.errors import DeploymentError


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_mosquitto", lambda: Path("/usr/sbin/mosquitto"))


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_mosquitto", lambda: None)


@pytest.mark.usefixtures("installed")
def test_mosquitto_is_taken_when_it_is_there(tmp_path: Path) -> None:
    command = launch.broker_command(1884, tmp_path / "new", "auto")
    assert command == ["/usr/sbin/mosquitto", "-c", str(tmp_path / "new" / "mosquitto.conf")]
    lines = (tmp_path / "new" / "mosquitto.conf").read_text().splitlines()
    assert "listener 1884 127.0.0.1" in lines
    assert "set_tcp_nodelay true" in lines
    assert "persistence false" in lines


@pytest.mark.usefixtures("installed")
def test_ours_can_be_asked_for(tmp_path: Path) -> None:
    command = launch.broker_command(1884, tmp_path, "embedded")
    assert command[:3] == [sys.executable, "-m", "broker.embedded"]
    assert command[3:] == ["--port", "1884", "--data", str(tmp_path)]


@pytest.mark.usefixtures("missing")
def test_without_mosquitto(tmp_path: Path) -> None:
    assert "broker.embedded" in launch.broker_command(1884, tmp_path)
    with pytest.raises(DeploymentError, match="not installed") as caught:
        launch.broker_command(1884, tmp_path, "mosquitto")
    assert "apt-get install" in caught.value.hint


@pytest.mark.usefixtures("installed")
def test_a_folder_that_cannot_be_written() -> None:
    with pytest.raises(DeploymentError, match="cannot write"):
        launch.broker_command(1884, Path("/proc/none"))


def test_both_brokers_have_the_same_bounds(tmp_path: Path) -> None:
    lines = launch.mosquitto_configuration(1884, tmp_path).splitlines()
    limits = Limits()
    assert f"max_inflight_messages {limits.max_inflight}" in lines
    assert f"max_queued_messages {limits.max_queued}" in lines
    assert f"message_size_limit {limits.max_packet_size}" in lines
    assert f"persistence_location {tmp_path}/" in lines


def test_sbin_is_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "mosquitto"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(launch, "_EXTRA_FOLDERS", (str(tmp_path),))
    assert launch.find_mosquitto() == program
