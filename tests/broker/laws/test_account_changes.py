"""Accounts that change while a broker runs: who is cut off when, what stays, what is kept."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from broker.access.rights import Mode, Right, SiteKind, rights_of
from broker.access.security_commands import (
    Command,
    change_rights,
    create_site,
    delete_site,
    disable,
    enable,
    get_client,
    list_clients,
    set_password,
)
from broker.broker_launch import BrokerSecurity, Preference, find_mosquitto
from broker.broker_testing import PATIENCE, BrokerProcess, RawClient
from tests.broker.laws.secured import (
    CONTROL,
    FEDERATION,
    NOT_AUTHORIZED,
    ROOT,
    SITES,
    Administration,
    connect,
    connected,
    secured_broker,
    write_accounts,
)

pytestmark = pytest.mark.broker

ADMINISTRATIVE_ACTION = 0x98
REFUSED = {0x86, NOT_AUTHORIZED}
RIGHTS = rights_of(SiteKind.GATEWAY, "gw-4", FEDERATION)


@pytest.fixture(params=["embedded", "mosquitto"])
def kind(request: pytest.FixtureRequest) -> Preference:
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    return kind


@pytest.fixture
def broker(kind: Preference, tmp_path: Path) -> Iterator[BrokerProcess]:
    with secured_broker(kind, tmp_path) as process:
        yield process


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[Administration]:
    with connected(broker, "coordinator") as client:
        yield Administration(client)


def may_connect(broker: BrokerProcess, site: str, password: str | None = None) -> bool:
    client, code = connect(broker, site, password)
    with client:
        assert code == 0 or code in REFUSED
        return code == 0


@pytest.mark.parametrize(
    "commands",
    [(disable("gw-1"),), delete_site("gw-1"), (set_password("gw-1", "new"),)],
    ids=["disabled", "deleted", "password"],
)
def test_whom_a_command_refuses_is_out_within_a_second(
    broker: BrokerProcess, admin: Administration, commands: tuple[Command, ...]
) -> None:
    with connected(broker, "gw-1") as gateway, connected(broker, "gw-2") as other:
        before = time.monotonic()
        admin.do(*commands)
        assert gateway.wait_closed() == ADMINISTRATIVE_ACTION
        assert time.monotonic() - before < 1.0
        assert not may_connect(broker, "gw-1")
        assert other.publish(f"{ROOT}/gw/gw-2/state", b"{}") != NOT_AUTHORIZED


def test_the_will_of_whom_is_cut_off_is_not_published(
    broker: BrokerProcess, admin: Administration
) -> None:
    with connected(broker, "viewer") as viewer, connected(broker, "gw-2") as other:
        viewer.subscribe((f"{ROOT}/gw/+/state", 1))
        gateway = RawClient(broker.port, "gw-1", 5)
        will = (f"{ROOT}/gw/gw-1/state", b"will", 1, False)
        assert gateway.open(user="gw-1", password=b"pw-gw-1", will=will)[1] == 0
        admin.do(disable("gw-1"))
        gateway.wait_closed()
        gateway.vanish()
        other.publish(f"{ROOT}/gw/gw-2/state", b"end")
        assert [message.payload for message in viewer.wait_for(1)] == [b"end"]


def test_a_disabled_account_that_is_enabled_connects_again(
    broker: BrokerProcess, admin: Administration
) -> None:
    admin.do(disable("gw-1"))
    assert not may_connect(broker, "gw-1")
    (shown,) = admin.ask(get_client("gw-1"))
    assert shown.data["client"]["disabled"] is True
    assert "password" not in shown.data["client"]
    admin.do(enable("gw-1"))
    assert may_connect(broker, "gw-1")


def test_after_a_new_password_only_the_new_one_is_taken(
    broker: BrokerProcess, admin: Administration
) -> None:
    admin.do(set_password("gw-1", "new"))
    assert may_connect(broker, "gw-1", "new")
    assert not may_connect(broker, "gw-1")


def test_messages_wait_for_a_site_whose_password_changes(
    broker: BrokerProcess, admin: Administration
) -> None:
    keep = b"\x11" + (3600).to_bytes(4, "big")  # session expiry
    gateway = RawClient(broker.port, "gw-1", 5)
    gateway.open(user="gw-1", password=b"pw-gw-1", properties=keep)
    gateway.subscribe((f"{ROOT}/q/+/x/gw-1/+", 1))
    admin.do(set_password("gw-1", "new"))
    gateway.wait_closed()
    gateway.vanish()
    with connected(broker, "gw-2") as sender:
        for number in range(3):
            sender.publish(f"{ROOT}/q/q1/x/gw-1/gw-2", str(number).encode())
    with RawClient(broker.port, "gw-1", 5) as again:
        present, code = again.open(user="gw-1", password=b"new", clean=False, properties=keep)
        assert (present, code) == (True, 0)
        assert [message.payload for message in again.wait_for(3)] == [b"0", b"1", b"2"]


def test_a_new_site_connects_without_a_restart_and_has_its_rights(
    broker: BrokerProcess, admin: Administration
) -> None:
    assert not may_connect(broker, "gw-4", "secret")
    answers = admin.ask(*create_site("gw-4", "secret", RIGHTS, correlation="c-1"))
    assert [answer.correlation_data for answer in answers] == ["c-1", "c-1"]
    with connected(broker, "gw-4", "secret") as gateway:
        assert gateway.publish(f"{ROOT}/gw/gw-4/birth", b"{}") != NOT_AUTHORIZED
        assert gateway.publish(f"{ROOT}/gw/gw-1/birth", b"{}") == NOT_AUTHORIZED
    (listed,) = admin.ask(list_clients())
    assert set(listed.data["clients"]) == {
        "base", "coordinator", "gw-1", "gw-2", "gw-4", "lander", "static", "viewer",
    }  # fmt: skip


def test_a_narrowed_role_holds_for_subscriptions_that_are_there(
    broker: BrokerProcess, admin: Administration
) -> None:
    seen, hidden = f"{ROOT}/gw/gw-1/state", f"{ROOT}/gw/gw-1/obs/climate"
    with connected(broker, "viewer") as viewer, connected(broker, "gw-1") as gateway:
        assert viewer.subscribe((seen, 1), (hidden, 1)) == [1, 1]
        gateway.publish(hidden, b"1")
        assert [message.payload for message in viewer.wait_for(1)] == [b"1"]
        admin.do(change_rights("viewer", [Right(Mode.READ, seen)]))
        gateway.publish(hidden, b"2")
        gateway.publish(seen, b"3")
        assert [message.payload for message in viewer.wait_for(1)] == [b"3"]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (Command(command="createClient", username="gw-1"), "Client already exists"),
        (Command(command="createRole", rolename="site-gw-1"), "Role already exists"),
        (set_password("nobody", "x"), "Client not found"),
        (disable("nobody"), "Client not found"),
        (enable("nobody"), "Client not found"),
        (get_client("nobody"), "Client not found"),
        (change_rights("nobody", ()), "Role does not exist"),
        (delete_site("nobody")[0], "Client not found"),
        (delete_site("nobody")[1], "Role not found"),
        (Command(command="addClientRole", username="gw-1", rolename="x"), "Role not found"),
        (Command(command="setClientPassword", username="gw-1"), "Invalid/missing password"),
        (Command(command="createClient"), "Invalid/missing username"),
        (Command(command="createRole"), "Invalid/missing rolename"),
        (Command(command="sing"), "Unknown command"),
    ],
    ids=lambda value: value.command if isinstance(value, Command) else "",
)
def test_both_brokers_word_their_refusals_alike(
    admin: Administration, command: Command, error: str
) -> None:
    (answer,) = admin.ask(command)
    assert (answer.command, answer.error) == (command.command, error)


@pytest.mark.parametrize("payload", [b"x", b"{}", b'{"commands": 3}', b'{"commands": [3, {}]}'])
def test_what_is_no_command_is_answered_and_changes_nothing(
    admin: Administration, payload: bytes
) -> None:
    admin.client.publish(CONTROL, payload)
    answers = json.loads(admin.client.wait_for(1)[0].payload)["responses"]
    assert all(answer["error"] for answer in answers)
    (listed,) = admin.ask(list_clients())
    assert len(listed.data["clients"]) == 7


@pytest.mark.parametrize("site", ["gw-1", "base", "static", "viewer"])
def test_only_the_coordinator_changes_accounts(broker: BrokerProcess, site: str) -> None:
    with connected(broker, site) as client:
        assert client.publish(CONTROL, b"{}") == NOT_AUTHORIZED
        assert client.subscribe((f"{CONTROL}/response", 1)) == [NOT_AUTHORIZED]


def test_mosquitto_ctrl_administers_both(broker: BrokerProcess) -> None:
    program = shutil.which("mosquitto_ctrl")
    if program is None:
        pytest.skip("mosquitto_ctrl is not installed")
    connection = ["-h", "127.0.0.1", "-p", str(broker.port), "-u", "coordinator"]

    def dynsec(*words: str) -> str:
        command = [program, *connection, "-P", "pw-coordinator", "dynsec", *words]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=PATIENCE
        )
        return ended.stdout

    assert dynsec("listClients").split() == sorted(SITES)
    dynsec("addRoleACL", "site-coordinator", "publishClientSend", "lab/#", "allow")
    shown = dynsec("getRole", "site-coordinator")
    assert "lab/#" in shown
    assert "site-gw-1" in dynsec("getClient", "gw-1")
    with connected(broker, "coordinator") as coordinator:
        assert coordinator.publish("lab/free", b"1") != NOT_AUTHORIZED
    dynsec("disableClient", "gw-1")
    assert not may_connect(broker, "gw-1")


def test_changes_outlive_the_broker(kind: Preference, tmp_path: Path) -> None:
    accounts = tmp_path / "dynamic-security.json"
    write_accounts(accounts)
    broker = BrokerProcess(kind, tmp_path, BrokerSecurity(accounts))
    with broker, connected(broker, "coordinator") as client:
        admin = Administration(client)
        admin.do(
            *create_site("gw-4", "secret", RIGHTS),
            disable("gw-1"),
            set_password("base", "new"),
            *delete_site("gw-2"),
        )
    with broker:
        assert may_connect(broker, "gw-4", "secret")
        assert may_connect(broker, "base", "new")
        assert not may_connect(broker, "base")
        assert not may_connect(broker, "gw-1")
        assert not may_connect(broker, "gw-2")
    assert "secret" not in accounts.read_text()
    if kind == "embedded":  # Mosquitto takes the permissions from its umask
        assert accounts.stat().st_mode & 0o777 == 0o600


def test_each_broker_reads_what_the_other_one_has_written(tmp_path: Path) -> None:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    accounts = tmp_path / "dynamic-security.json"
    write_accounts(accounts)
    for number, kind in enumerate(("mosquitto", "embedded", "mosquitto"), start=4):
        broker = BrokerProcess(cast("Preference", kind), tmp_path, BrokerSecurity(accounts))
        with broker, connected(broker, "coordinator") as client:
            Administration(client).do(*create_site(f"gw-{number}", "secret", RIGHTS))
            for site in range(4, number + 1):
                assert may_connect(broker, f"gw-{site}", "secret")
