"""The accounts that a broker begins with, and the command that writes them."""

from pathlib import Path

import msgspec
import pytest

from broker.access.__main__ import main
from broker.access.dynamic_security import Acl, AclType, Client, decode_document
from broker.access.initial_accounts import (
    Account,
    initial_document,
    kind_of,
    new_password,
    with_accounts,
    with_rights_of_today,
)
from broker.access.rights import SiteKind
from streamsql.errors import WireError


def test_an_id_says_its_kind() -> None:
    assert [kind_of(site) for site in ("base", "viewer", "gw-1")] == [
        SiteKind.BASE,
        SiteKind.VIEWER,
        SiteKind.GATEWAY,
    ]


def test_passwords_are_long_and_need_no_quoting_in_an_address() -> None:
    made = {new_password() for _ in range(100)}
    assert len(made) == 100
    assert all(
        len(word) >= 43 and word.replace("-", "").replace("_", "").isalnum() for word in made
    )


def test_a_name_that_is_no_id_gets_no_account() -> None:
    with pytest.raises(WireError):
        initial_document({"a/b": Account(SiteKind.GATEWAY, "x")}, "house")


def test_the_command_prints_what_the_file_does_not_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "accounts.json"
    command = ["accounts", str(file), "--federation", "house", "coordinator", "hall:base", "gw-1"]
    assert main(command) == 0
    printed = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert list(printed) == ["coordinator", "hall", "gw-1"]
    document = decode_document(file.read_bytes())
    for client in document.clients:
        kept = client.password_hash
        assert kept is not None
        assert kept.fits(printed[client.username].encode())
    assert file.stat().st_mode & 0o777 == 0o600
    hall = next(role for role in document.roles if role.rolename == "site-hall")
    assert any(acl.topic == "pando/v1/house/gw/+/obs/+" for acl in hall.acls)


def test_rules_that_were_added_for_sinks_stay_and_others_are_those_of_today() -> None:
    accounts = {"coordinator": Account(SiteKind.COORDINATOR, "x")}
    document = initial_document(accounts, "house")
    (role,) = document.roles
    lab = Acl(acltype=AclType.PUBLISH, topic="lab/#", allow=True)
    outdated = Acl(acltype=AclType.PUBLISH, topic="pando/v1/house/q/+/out/+", allow=True)
    older = msgspec.structs.replace(role, acls=(role.acls[0], lab, outdated))
    (again,) = with_accounts(
        msgspec.structs.replace(document, roles=(older,)), accounts, "house"
    ).roles
    assert again.acls == (*role.acls, lab)


def test_sites_of_an_earlier_version_get_the_rights_of_today() -> None:
    sites = {"gw-9": SiteKind.GATEWAY, "hall": SiteKind.BASE, "ann": SiteKind.VIEWER}
    today = initial_document({s: Account(k, "x") for s, k in sites.items()}, "house")
    # An earlier version let them publish and read less.
    kept = ("/birth", "/cmd/packs/hall", "/state")
    older = msgspec.structs.replace(
        today,
        clients=(*today.clients, Client(username="admin")),
        roles=tuple(
            msgspec.structs.replace(
                role, acls=tuple(acl for acl in role.acls if acl.topic.endswith(kept))
            )
            for role in today.roles
        ),
    )
    made = with_rights_of_today(older, "house")
    assert made.clients == older.clients
    assert made.roles == (*today.roles[:2], older.roles[2]), "ann stays who she is"


@pytest.mark.parametrize(
    ("sites", "words"),
    [(["gw-1:king"], "none of gateway, base"), (["a/b"], "not an id")],
)
def test_the_command_refuses_what_is_no_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sites: list[str], words: str
) -> None:
    file = tmp_path / "accounts.json"
    assert main(["accounts", str(file), "--federation", "house", *sites]) == 2
    assert words in capsys.readouterr().err
    assert not file.exists()


def test_the_command_does_not_overwrite_accounts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "accounts.json"
    file.write_text("{}")
    assert main(["accounts", str(file), "--federation", "house", "gw-1"]) == 2
    assert "would be lost" in capsys.readouterr().err
    assert file.read_text() == "{}"
