"""Decisions by roles with priorities; a file that cannot be read or written."""

import json
import tracemalloc
from pathlib import Path

import pytest

from broker.access.dynamic_security import (
    Acl,
    AclType,
    Client,
    DefaultAccess,
    Document,
    PasswordHash,
    Role,
    RoleOfClient,
    encode_document,
)
from broker.access.rights import CONTROL_TOPIC
from broker.access.security_changes import Accounts
from broker.embedded.dynamic_access import DynamicAccess
from broker.embedded.embedded_broker import Broker
from broker.embedded.packets.packets import Connect, Message, WillMessage


def access(
    *roles: Role, file: Path = Path("/none/file"), default: DefaultAccess | None = None
) -> DynamicAccess:
    """Return the access of the account `ann`, who has all roles, the first with priority."""
    hashed = PasswordHash.of("secret", b"0123456789ab", 101)
    held = tuple(RoleOfClient(role.rolename, priority=-number) for number, role in enumerate(roles))
    client = Client(
        username="ann",
        clientid="ann",
        roles=held[::-1],
        password=hashed.password,
        salt=hashed.salt,
        iterations=hashed.iterations,
    )
    document = Document(
        clients=(client, Client(username="card")),
        roles=roles,
        default=default or DefaultAccess(),
    )
    return DynamicAccess(file, Accounts(document, lambda: b"salt"))


def role(name: str, *acls: tuple[AclType, str, int, bool]) -> Role:
    made = tuple(Acl(acltype=t, topic=f, priority=p, allow=a) for t, f, p, a in acls)
    return Role(rolename=name, acls=made)


def test_the_rule_of_the_highest_priority_decides() -> None:
    made = access(
        role("r", (AclType.PUBLISH, "a/#", 0, True), (AclType.PUBLISH, "a/secret", 5, False))
    )
    assert made.may_publish("ann", "ann", "a/b")
    assert not made.may_publish("ann", "ann", "a/secret")


def test_the_role_of_the_highest_priority_decides() -> None:
    no = role("no", (AclType.PUBLISH, "a", 0, False))
    yes = role("yes", (AclType.PUBLISH, "#", 9, True))
    assert not access(no, yes).may_publish("ann", "ann", "a")
    assert access(yes, no).may_publish("ann", "ann", "a")


def test_a_literal_rule_is_for_one_filter_only() -> None:
    made = access(role("r", (AclType.SUBSCRIBE_LITERAL, "a/#", 0, True)))
    assert made.may_subscribe("ann", "ann", "a/#")
    assert not made.may_subscribe("ann", "ann", "a/b")


def test_where_no_rule_fits_the_default_decides() -> None:
    everything = DefaultAccess(
        publish_client_send=True, publish_client_receive=True, subscribe=True
    )
    for made, allowed in [(access(), False), (access(default=everything), True)]:
        assert made.may_publish("ann", "ann", "a") is allowed
        assert made.may_subscribe("ann", "ann", "a/#") is allowed
        assert made.may_receive("ann", "ann", "a") is allowed
        assert made.receives_all("ann", "ann", "a/#") is allowed


def test_nobody_publishes_what_the_broker_says() -> None:
    everything = access(role("r", (AclType.PUBLISH, "$SYS/#", 0, True)))
    assert not everything.may_publish("ann", "ann", "$SYS/broker/uptime")


def test_deliveries_are_checked_unless_a_rule_covers_the_whole_filter() -> None:
    made = access(role("r", (AclType.RECEIVE, "a/+", 0, True)))
    assert made.receives_all("ann", "ann", "a/b")
    assert not made.receives_all("ann", "ann", "a/#")
    forbidden = access(
        role("r", (AclType.RECEIVE, "a/#", 0, True), (AclType.RECEIVE, "a/b", 1, False))
    )
    assert not forbidden.receives_all("ann", "ann", "a/#")
    assert not forbidden.may_receive("ann", "ann", "a/b")


def test_who_may_connect() -> None:
    made = access()
    assert made.may_connect("ann", "ann", b"secret")
    for client_id, user, password in [
        ("ann", "ann", b"Secret"),
        ("ann", "ann", None),
        ("bob", "ann", b"secret"),
        ("eve", "eve", b"secret"),
        ("", None, None),
        ("card", "card", b""),
    ]:
        assert not made.may_connect(client_id, user, password)
    assert made.client_id("chosen", "ann") == "ann"


def test_nothing_changes_when_the_file_cannot_be_written(tmp_path: Path) -> None:
    made = access(file=tmp_path / "missing" / "file.json")
    payload = {"commands": [{"command": "deleteClient", "username": "ann"}]}
    answer, changes = made.carry_out(json.dumps(payload).encode())
    assert "nothing was changed" in json.loads(answer)["responses"][0]["error"]
    assert changes.cut_off == set()
    assert made.may_connect("ann", "ann", b"secret")


def test_a_change_is_decided_by_at_once_and_saved_privately(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_bytes(encode_document(Document()))
    made = access(role("r", (AclType.PUBLISH, "a", 0, True)), file=file)
    assert made.may_publish("ann", "ann", "a")
    payload = {"commands": [{"command": "modifyRole", "rolename": "r", "acls": []}]}
    made.carry_out(json.dumps(payload).encode())
    assert not made.may_publish("ann", "ann", "a")
    assert file.stat().st_mode & 0o777 == 0o600
    assert not DynamicAccess.read(file).may_publish("ann", "ann", "a")


@pytest.mark.parametrize("content", [None, "", "[]", '{"groups": [{}]}'])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "accounts.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ValueError, match=r"accounts\.json"):
        DynamicAccess.read(file)


def test_what_was_decided_of_long_topics_is_not_kept() -> None:
    made = access(role("r", (AclType.PUBLISH, "a/#", 0, True)))
    tracemalloc.start()
    try:
        for number in range(300):
            assert not made.may_publish("ann", "ann", f"b/{number}/" + "x" * 60_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


@pytest.mark.parametrize("delay", [0, 5])
def test_a_will_is_not_published_once_its_right_is_gone(tmp_path: Path, delay: int) -> None:
    held = (AclType.PUBLISH, "a", 0, True)
    broker = Broker(access=access(role("r", held), file=tmp_path / "file.json"))
    connect = Connect(
        version=5,
        client_id="ann",
        clean=True,
        keepalive=0,
        will=WillMessage("a", b"gone", 1, retain=True, properties={}, delay=delay),
        user="ann",
        password=None,
        session_expiry=60,
        receive_maximum=100,
        max_packet_size=None,
    )
    outlet = _Outlet()
    for narrowed in (False, True):
        session, _ = broker.connect(connect, "ann", outlet, 0.0)
        if narrowed:
            change = {"command": "modifyRole", "rolename": "r", "acls": []}
            broker.administer(CONTROL_TOPIC, json.dumps({"commands": [change]}).encode(), 0.0)
        broker.lost(session, outlet, 1.0)
        broker.tick(10.0)
        kept = broker.retained.get("a")
        assert (kept is None) is narrowed
        broker.publish(Message("a", b"", 1, retain=True), 10.0)


class _Outlet:
    """A connection that takes everything."""

    version = 5
    max_packet_size: int | None = None
    writable = True

    def send(self, frame: bytes) -> None:
        """Take a packet."""

    def close(self, reason: int) -> None:
        """Take the end."""
