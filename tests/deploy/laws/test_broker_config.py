"""The deployment's Mosquitto configuration, run on a real Mosquitto.

The files are used as they are, except that container paths become a temporary folder, and ports
free ones.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from broker.access.__main__ import write_files
from broker.access.dynamic_security import decode_document
from broker.access.initial_accounts import Account, initial_document, kind_of
from broker.broker_launch import find_plugin
from broker.broker_testing import PATIENCE
from broker.embedded.access_rules import Access
from broker.free_ports import free_port
from tests.certificates import make_certificate

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "mosquitto"
PASSWORDS = {
    "coordinator": "c-secret",
    "gateway-a": "a-secret",
    "gateway-b": "b-secret",
    "base": "d-secret",
    "static": "s-secret",
}
ROOT = "pando/v1/house"

pytestmark = pytest.mark.broker


def find_program(name: str) -> str:
    """Return the path of a program of Mosquitto; Debian keeps the broker in /usr/sbin."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    assert found, f"{name} is not installed (.ci/run installs it)"
    return found


def place_configuration(
    folder: Path, ports: dict[int, int], *, plugin: bool = True, mutual: bool = False
) -> Path:
    """Copy the configuration with its paths below `folder` and its ports replaced.

    Without `plugin` its commented lines for fixed accounts are taken; with `mutual` those that
    make clients show a certificate.
    """
    for name in ("data", "config/conf.d", "certificates"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("mosquitto.conf", "tls.conf", "acl"):
        text = (FOLDER / name).read_text(encoding="utf-8").replace("/mosquitto/", f"{folder}/")
        for old, new in ports.items():
            text = re.sub(rf"(?m)^listener {old}\b.*$", f"listener {new} 127.0.0.1", text)
        text = text.replace("/usr/lib/mosquitto_dynamic_security.so", str(find_plugin()))
        if not plugin:
            text = re.sub(r"(?m)^plugin.*$", "", text)
            text = re.sub(r"(?m)^# (password_file|acl_file) ", r"\1 ", text)
        if mutual:
            text = re.sub(r"(?m)^# (cafile|require_certificate) ", r"\1 ", text)
        target = folder / "config" / ("conf.d/tls.conf" if name == "tls.conf" else name)
        if name != "tls.conf" or 8883 in ports:
            target.write_text(
                text + f"\nuser {os.environ.get('USER', 'root')}\n" * (name == "mosquitto.conf")
            )
    return folder / "config" / "mosquitto.conf"


def write_passwords(file: Path) -> None:
    """Write a password file as an administrator does."""
    file.touch(0o600)
    for name, word in PASSWORDS.items():
        program = find_program("mosquitto_passwd")
        subprocess.run([program, "-b", str(file), name, word], check=True, capture_output=True)


@contextmanager
def running_broker(  # noqa: PLR0913  (what a deployment decides)
    folder: Path,
    ports: dict[int, int],
    *,
    plugin: bool = True,
    mutual: bool = False,
    passwords: Mapping[str, str] = PASSWORDS,
    federation: str = "house",
) -> Iterator[None]:
    """Run `start.sh`, or without plug-in Mosquitto itself, until the block ends."""
    config = place_configuration(folder, ports, plugin=plugin, mutual=mutual)
    path = (
        f"{Path(find_program('mosquitto')).parent}:{Path(find_program('mosquitto_passwd')).parent}"
    )
    environment = {
        "PATH": f"{path}:/usr/bin:/bin",
        "PANDO_BROKER_USERS": " ".join(f"{name}:{word}" for name, word in passwords.items()),
        "PANDO_FEDERATION": federation,
    }
    accounts = folder / "data" / "dynamic-security.json"
    command = ["sh", str(FOLDER / "start.sh"), str(config), str(accounts), str(FOLDER / "roles")]
    if not plugin:
        write_passwords(folder / "data" / "passwords")
        command = [find_program("mosquitto"), "-c", str(config)]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        for port in ports.values():
            wait_for_port(port, process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=PATIENCE)
        finally:
            process.kill()


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until something listens on the port."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"no broker on port {port}: {log.read_text()}")


class Client:
    """A client that remembers what it received and how its calls ended."""

    def __init__(
        self,
        port: int,
        user: str,
        client_id: str = "",
        password: str | None = None,
        certificate: Path | None = None,
    ) -> None:
        self.received: list[tuple[str, bytes]] = []
        self.arrived = Event()
        self.connected = Event()
        self.refused: str | None = None
        self.inner = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id=client_id or user, protocol=mqtt.MQTTv5
        )
        self.inner.username_pw_set(user, password or PASSWORDS.get(user))
        if certificate is not None:
            self.inner.tls_set(
                str(certificate.with_name("ca.crt")),
                str(certificate),
                str(certificate.with_suffix(".key")),
            )
        self.inner.on_connect = self._on_connect
        self.inner.on_message = self._on_message
        self.port = port

    def _on_connect(
        self, _client: object, _data: object, _flags: object, reason: object, _properties: object
    ) -> None:
        if str(reason) != "Success":
            self.refused = str(reason)
        self.connected.set()

    def _on_message(self, _client: object, _data: object, message: mqtt.MQTTMessage) -> None:
        self.received.append((message.topic, bytes(message.payload)))
        self.arrived.set()

    def __enter__(self) -> "Client":
        self.inner.connect("127.0.0.1", self.port)
        self.inner.loop_start()
        assert self.connected.wait(PATIENCE)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.inner.disconnect()
        self.inner.loop_stop()
        # paho leaves the pipe of its loop to a finalizer, which in a cycle may come after the
        # sockets' own: they complain of not being closed, in whichever test runs then.
        self.inner._reset_sockets()

    def wait_for(self, last: str) -> list[str]:
        """Return the topics received, once a message on `last` has come."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            topics = [topic for topic, _ in self.received]
            if last in topics:
                return topics
            time.sleep(0.01)
        pytest.fail(f"no message on {last}")

    def subscribe(self, topic: str) -> None:
        """Subscribe and wait for the broker's answer."""
        answered = Event()
        self.inner.on_subscribe = lambda *_arguments: answered.set()
        self.inner.subscribe(topic, qos=1)
        assert answered.wait(PATIENCE)

    def publish(self, topic: str) -> bool:
        """Publish with QoS 1; return whether the broker took it."""
        reasons: list[str] = []
        answered = Event()

        def on_publish(_c: object, _d: object, _mid: object, reason: object, _p: object) -> None:
            reasons.append(str(reason))
            answered.set()

        self.inner.on_publish = on_publish
        self.inner.publish(topic, b"x", qos=1)
        assert answered.wait(PATIENCE)
        return reasons[0] != "Not authorized"


@pytest.fixture(scope="module", params=[True, False], ids=["plugin", "fixed"])
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Run the broker for the tests of this module: with the plug-in, and with fixed accounts."""
    number, folder = free_port(), tmp_path_factory.mktemp("mosquitto")
    with running_broker(folder, {1883: number}, plugin=request.param):
        yield number


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [
        ("gw/gateway-a/birth", True),
        ("gw/gateway-a/link/radio/mote-1/mote-2", True),
        ("q/q1/x/gateway-b/gateway-a", True),
        ("q/q1/out/gateway-a", True),
        ("gw/gateway-a/flow", True),
        ("gw/gateway-b/flow", False),
        ("gw/gateway-a/columns", True),
        ("gw/gateway-b/columns", False),
        ("dead/gateway-a", True),
        ("gw/gateway-b/cmd/resync/gateway-a", True),
        ("gw/gateway-b/cmd/forget/gateway-a", True),
        ("gw/gateway-b/cmd/packs/gateway-a", False),
        ("gw/gateway-b/cmd/published/gateway-a", True),
        ("gw/gateway-b/cmd/packs/base", False),
        ("gw/gateway-b/cmd/published/base", False),
        ("gw/gateway-b/cmd/resync/base", False),
        ("gw/gateway-b/cmd/forget/base", False),
        ("gw/gateway-b/cmd/resync", False),
        ("gw/gateway-b/state", False),
        ("gw/gateway-b/cmd/rebirth", False),
        ("q/q1/x/gateway-a/gateway-b", False),
        ("q/q1/out/gateway-b", False),
        ("q/q1/frag/gateway-a", False),
        ("host/coordinator/state", False),
    ],
)
def test_a_gateway_writes_only_in_its_own_name(port: int, topic: str, *, allowed: bool) -> None:
    with Client(port, "gateway-a") as gateway:
        assert gateway.publish(f"{ROOT}/{topic}") is allowed


@pytest.mark.parametrize(
    ("client", "topic", "allowed"),
    [
        ("gateway-a", "gw/gateway-a/birth", True),
        ("gateway-a", "gw/gateway-b/birth", False),
        ("gateway-a", "gw/gateway-b/cmd/resync/gateway-a", True),
        ("gateway-a", "gw/gateway-b/cmd/forget/base", False),
        ("gateway-a", "gw/gateway-b/cmd/flush", False),
        ("coordinator", "gw/gateway-b/cmd/flush", True),
        ("gateway-a", "source/climate", False),
        ("base", "source/climate", False),
        ("coordinator", "source/climate", True),
        ("coordinator", "gw/gateway-b/cmd/resync", True),
        ("coordinator", "gw/gateway-b/link/radio/a/b", True),
    ],
)
def test_the_embedded_broker_reads_the_same_access_list(
    client: str, topic: str, *, allowed: bool
) -> None:
    access = Access.read(None, FOLDER / "acl")
    assert access.may_publish(client, client, f"{ROOT}/{topic}") is allowed


@pytest.mark.parametrize(
    ("client", "topic", "allowed"),
    [
        ("coordinator", "building/free/d1", True),
        ("coordinator", "homeassistant/sensor/x/config", True),
        ("coordinator", "elsewhere/d1", False),
        ("gateway-a", "building/free/d1", False),
    ],
)
def test_only_the_coordinator_sends_answers_to_others_and_only_where_the_list_says(
    port: int, client: str, topic: str, *, allowed: bool
) -> None:
    with Client(port, client) as connected:
        assert connected.publish(topic) is allowed
    access = Access.read(None, FOLDER / "acl")
    assert access.may_publish(client, client, topic) is allowed


def test_another_client_id_does_not_help(port: int) -> None:
    with Client(port, "gateway-a", client_id="gateway-b") as thief:
        assert not thief.publish(f"{ROOT}/gw/gateway-b/state")
        assert thief.publish(f"{ROOT}/gw/gateway-a/state")


@pytest.mark.parametrize(
    ("user", "password"), [("gateway-a", "wrong"), ("stranger", "a-secret"), ("", "")]
)
def test_strangers_are_refused(port: int, user: str, password: str) -> None:
    with Client(port, user, client_id="someone", password=password) as client:
        assert client.refused == "Not authorized"


def test_a_gateway_reads_what_is_meant_for_it_and_nothing_else(port: int) -> None:
    with Client(port, "gateway-b") as gateway, Client(port, "coordinator") as coordinator:
        for topic in ("#", "q/+/frag/+", "gw/+/cmd/+", "q/+/frag/gateway-b"):
            gateway.subscribe(f"{ROOT}/{topic}")
        for topic in ("q/q1/frag/gateway-a", "gw/gateway-a/cmd/ping", "q/q1/frag/gateway-b"):
            assert coordinator.publish(f"{ROOT}/{topic}")
        assert gateway.arrived.wait(PATIENCE)
        assert set(gateway.received) == {(f"{ROOT}/q/q1/frag/gateway-b", b"x")}


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [
        ("gw/gateway-a/state", True),
        ("gw/gateway-a/birth", True),
        ("gw/gateway-a/link/radio/mote-1/mote-2", True),
        ("gw/gateway-a/obs/temperature", False),
        ("q/q1/out/gateway-a", False),
    ],
)
def test_the_coordinator_may_empty_what_is_retained_of_a_gateway(
    port: int, topic: str, *, allowed: bool
) -> None:
    with Client(port, "coordinator") as coordinator:
        assert coordinator.publish(f"{ROOT}/{topic}") is allowed


@pytest.mark.parametrize(
    ("reader", "topic", "allowed"),
    [
        ("gateway-b", "gw/gateway-a/state", True),
        ("gateway-b", "gw/gateway-a/obs/temperature", False),
        ("gateway-b", "gw/gateway-a/birth", False),
        ("gateway-b", "q/q1/x/gateway-b/gateway-a", True),
        ("base", "gw/gateway-a/obs/temperature", True),
        ("base", "gw/gateway-a/hist/temperature", True),
        ("base", "gw/gateway-a/birth", False),
        ("base", "q/q1/x/base/gateway-a", True),
    ],
)
def test_sites_see_states_and_only_a_base_site_sees_readings(
    port: int, reader: str, topic: str, *, allowed: bool
) -> None:
    with Client(port, reader) as site, Client(port, "gateway-a") as gateway:
        site.subscribe(f"{ROOT}/{topic}")
        site.subscribe(f"{ROOT}/host/+/state")
        assert gateway.publish(f"{ROOT}/{topic}")
        # What everybody may read marks the end, so that "nothing came" needs no waiting.
        with Client(port, "coordinator") as coordinator:
            assert coordinator.publish(f"{ROOT}/host/coordinator/state")
        expected = [f"{ROOT}/{topic}", f"{ROOT}/host/coordinator/state"]
        assert site.wait_for(expected[-1]) == (expected if allowed else expected[1:])


@pytest.mark.parametrize("reader", ["gateway-b", "base"])
def test_sites_read_definitions_that_only_the_coordinator_writes(port: int, reader: str) -> None:
    topic = f"{ROOT}/source/climate"
    with Client(port, reader) as site, Client(port, "coordinator") as coordinator:
        site.subscribe(f"{ROOT}/source/+")
        assert not site.publish(topic)
        assert coordinator.publish(topic)
        assert site.wait_for(topic) == [topic]


def test_the_coordinator_sees_every_branch(port: int) -> None:
    with Client(port, "gateway-b") as gateway, Client(port, "coordinator") as coordinator:
        coordinator.subscribe(f"{ROOT}/#")
        assert gateway.publish(f"{ROOT}/gw/gateway-b/birth")
        assert coordinator.arrived.wait(PATIENCE)
        assert coordinator.received[-1][0] == f"{ROOT}/gw/gateway-b/birth"


def start(
    folder: Path, users: str, federation: str = "house"
) -> "subprocess.CompletedProcess[str]":
    """Run `start.sh` with a broker that only says that it was started."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "mosquitto").write_text("#!/bin/sh\necho started ${PANDO_BROKER_USERS:-}\n")
    (programs / "mosquitto").chmod(0o755)
    environment = {
        "PATH": f"{programs}:/usr/sbin:/usr/bin:/bin",
        "PANDO_BROKER_USERS": users,
        "PANDO_FEDERATION": federation,
    }
    files = ("unused.conf", str(folder / "accounts.json"), str(FOLDER / "roles"))
    return subprocess.run(
        ["sh", str(FOLDER / "start.sh"), *files],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("users", "federation", "words"),
    [
        ("coordinator", "house", "expected id:password"),
        ("coordinator:", "house", "expected id:password"),
        (":secret", "house", "expected id:password"),
        ("a/b:secret", "house", "expected id:password"),
        ('x"y:secret', "house", "expected id:password"),
        ("gw-1:a gw-1:b", "house", "there twice"),
        ("gw-1:secret:b", "house", "has a colon"),
        ("", "house", "is empty"),
        ("gw-1:a", "a/b", "not an id"),
    ],
)
def test_start_refuses_what_is_no_account(
    tmp_path: Path, users: str, federation: str, words: str
) -> None:
    ended = start(tmp_path, users, federation)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "secret" not in ended.stderr
    assert not (tmp_path / "accounts.json").exists()


def test_start_makes_the_accounts_once_as_our_code_makes_them(tmp_path: Path) -> None:
    users = "coordinator:a-b base:c static:d viewer:e gw-1:f"
    ended = start(tmp_path, users)
    assert (ended.returncode, ended.stdout) == (0, "started\n"), ended.stderr
    file = tmp_path / "accounts.json"
    assert file.stat().st_mode & 0o777 == 0o600
    made = decode_document(file.read_bytes())
    passwords = {pair.partition(":")[0]: pair.partition(":")[2] for pair in users.split()}
    expected = initial_document(
        {site: Account(kind_of(site), word) for site, word in passwords.items()}, "house"
    )
    assert made.roles == expected.roles
    assert made.default == expected.default
    for client in made.clients:
        kept = client.password_hash
        assert kept is not None
        assert kept.fits(passwords[client.username].encode())
    assert {client.clientid for client in made.clients} == set(passwords)
    before = file.read_bytes()
    assert start(tmp_path, "somebody:else").returncode == 0
    assert file.read_bytes() == before


def test_the_shipped_files_are_those_that_the_rights_make(tmp_path: Path) -> None:
    """Write them anew with `python -m broker.access files deploy/mosquitto`."""
    write_files(tmp_path)
    assert (FOLDER / "acl").read_text() == (tmp_path / "acl").read_text()
    made = {path.name: path.read_bytes() for path in (tmp_path / "roles").iterdir()}
    assert made == {path.name: path.read_bytes() for path in (FOLDER / "roles").iterdir()}


def test_over_tls_a_site_is_who_its_password_says(tmp_path: Path) -> None:
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    for name, common_name in [("ca", "house"), ("broker", "broker"), ("mine", "gateway-a")]:
        make_certificate(certificates, name, common_name)
    inside, outside = free_port(), free_port()
    with (
        running_broker(tmp_path, {1883: inside, 8883: outside}, mutual=True),
        Client(outside, "gateway-a", certificate=certificates / "mine.crt") as gateway,
        Client(
            outside, "gateway-a", password="wrong", certificate=certificates / "mine.crt"
        ) as thief,
    ):
        assert thief.refused == "Not authorized"
        assert gateway.publish(f"{ROOT}/gw/gateway-a/state")
        assert not gateway.publish(f"{ROOT}/gw/gateway-b/state")
