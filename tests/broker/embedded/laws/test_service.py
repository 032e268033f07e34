"""The embedded broker's process: arguments, exit statuses, its file, passwords, statistics."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker.broker_testing import PATIENCE, BrokerProcess, RawClient
from broker.embedded.__main__ import main
from broker.embedded.embedded_broker import Broker
from broker.embedded.packets.packets import Message
from broker.embedded.server import Server
from broker.embedded.session_presence import port_is_taken
from broker.free_ports import free_port


def test_who_comes_first_finds_the_figures() -> None:
    async def begin() -> Message | None:
        server = Server(Broker())
        await server.start("127.0.0.1", 0)
        found = server.broker.retained.get("$SYS/broker/version")
        await server.stop()
        return found

    assert asyncio.run(begin()) is not None


def test_a_taken_port_says_who_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert main(["--port", str(port)]) == 2
    message = capsys.readouterr().err
    assert f"port {port} is taken by process" in message
    assert "--port" in message


def test_other_reasons_not_to_listen() -> None:
    assert "above 1023" in port_is_taken("127.0.0.1", 80, PermissionError(13, "denied"))
    assert "cannot listen" in port_is_taken("::1", 80, OSError(99, "no such address"))


@pytest.mark.parametrize(
    "arguments", [["--passwords", "/none"], ["--acl", "/none"], ["--data", "/proc/none"]]
)
def test_unusable_files(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", "0", *arguments]) == 2
    assert "none" in capsys.readouterr().err


@pytest.mark.broker
def test_it_tells_where_it_is_and_leaves_no_trace(tmp_path: Path) -> None:
    with BrokerProcess("embedded", tmp_path) as broker:
        deadline = time.monotonic() + PATIENCE  # it listens first and tells then
        while not (tmp_path / "broker.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        told = json.loads((tmp_path / "broker.json").read_text())
        assert told == {"pid": broker.pid, "url": broker.url}
        with RawClient(broker.port, "reader") as reader:
            reader.open()
            reader.subscribe(("$SYS/#", 0))
            topics = {m.topic for m in reader.wait_for(11)}
            assert "$SYS/broker/publish/messages/dropped" in topics
        assert broker.stop() == 0
    assert not (tmp_path / "broker.json").exists()
    assert "Traceback" not in broker.log()


@pytest.mark.broker
def test_passwords_and_rules_of_a_running_broker(tmp_path: Path) -> None:
    (tmp_path / "passwords").write_text(
        # user gw1, password secret
        "gw1:$7$101$MTIzNDU2Nzg5MDEy$"
        "h3OGTDkrPBc1IDrkvFUXjghw4dN9103fBdTZDvDSOC4EJPkNbHi3fY2BTXXd"
        "1fmFkTQ4lpBRhpsAUEy+yj0eSQ==\n"
    )
    (tmp_path / "acl").write_text("pattern readwrite site/%c/#\n")
    port = free_port()
    command = [sys.executable, "-m", "broker.embedded", "--port", str(port)]
    command += ["--passwords", str(tmp_path / "passwords"), "--acl", str(tmp_path / "acl")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"listening" in process.stderr.readline()
        try:
            for version, codes in ((4, (4, 5)), (5, (0x86, 0x87))):
                with RawClient(port, "gw1", version) as client:
                    assert client.open() == (False, codes[0])
                with RawClient(port, "gw1", version) as client:
                    assert client.open(
                        user="gw1", password=b"secret", will=("site/gw2/a", b"", 0, False)
                    ) == (False, codes[1])
                with RawClient(port, "gw1", version) as client:
                    assert client.open(user="gw1", password=b"secret") == (False, 0)
                    granted = client.subscribe(("site/gw1/#", 1), ("site/#", 1))
                    assert granted == [1, 0x80 if version == 4 else 0x87]
                    client.publish("site/gw2/a", b"forbidden")
                    client.publish("site/gw1/a", b"allowed")
                    assert [m.payload for m in client.sync()] == [b"allowed"]
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
