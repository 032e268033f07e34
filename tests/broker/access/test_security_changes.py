"""Accounts and roles under commands: what changes, whom it cuts off, what is refused."""

import pytest

from broker.access.dynamic_security import Acl, AclType, Document, RoleOfClient
from broker.access.security_changes import MAX_ACLS, Accounts, Changes, CommandError
from broker.access.security_commands import Command

RULE = Acl(acltype=AclType.PUBLISH, topic="a", allow=True)


@pytest.fixture
def accounts() -> Accounts:
    accounts = Accounts(Document(), lambda: b"0123456789ab")
    for command in (
        Command(command="createRole", rolename="writer", acls=(RULE,)),
        Command(command="createRole", rolename="other"),
        Command(
            command="createClient", username="ann", password="x", roles=(RoleOfClient("writer"),)
        ),
        Command(command="createClient", username="bob"),
    ):
        accounts.carry_out(command, Changes())
    return accounts


def effects(accounts: Accounts, **fields: object) -> Changes:
    changes = Changes()
    accounts.carry_out(Command(**fields), changes)  # type: ignore[arg-type]
    return changes


@pytest.mark.parametrize(
    ("fields", "cut_off", "touched"),
    [
        ({"command": "enableClient", "username": "ann"}, set(), set()),
        ({"command": "disableClient", "username": "ann"}, {"ann"}, set()),
        ({"command": "setClientPassword", "username": "ann", "password": "y"}, {"ann"}, set()),
        ({"command": "modifyClient", "username": "ann", "textname": "Ann"}, {"ann"}, set()),
        ({"command": "addClientRole", "username": "bob", "rolename": "other"}, {"bob"}, set()),
        ({"command": "removeClientRole", "username": "ann", "rolename": "other"}, {"ann"}, set()),
        ({"command": "deleteRole", "rolename": "writer"}, {"ann"}, set()),
        ({"command": "modifyRole", "rolename": "writer", "acls": ()}, set(), {"ann"}),
        ({"command": "modifyRole", "rolename": "other", "acls": ()}, set(), set()),
    ],
    ids=lambda value: value.get("command") if isinstance(value, dict) else "",
)
def test_whom_a_change_concerns(
    accounts: Accounts, fields: dict[str, object], cut_off: set[str], touched: set[str]
) -> None:
    changes = effects(accounts, **fields)
    assert (changes.made, changes.cut_off, changes.touched) == (True, cut_off, touched)
    assert changes.deleted == set()


def test_a_deleted_account_is_cut_off_with_its_session(accounts: Accounts) -> None:
    changes = effects(accounts, command="deleteClient", username="ann")
    assert (changes.cut_off, changes.deleted) == ({"ann"}, {"ann"})
    assert set(accounts.clients) == {"bob"}


def test_a_deleted_role_is_taken_from_its_clients(accounts: Accounts) -> None:
    effects(accounts, command="deleteRole", rolename="writer")
    assert accounts.clients["ann"].roles == ()
    assert set(accounts.roles) == {"other"}


def test_single_rules_are_added_and_removed(accounts: Accounts) -> None:
    rule = {"rolename": "writer", "acltype": AclType.PUBLISH, "topic": "b/+"}
    effects(accounts, command="addRoleACL", allow=True, **rule)
    assert [acl.topic for acl in accounts.roles["writer"].acls] == ["a", "b/+"]
    with pytest.raises(CommandError, match="already exists"):
        effects(accounts, command="addRoleACL", allow=True, **rule)
    effects(accounts, command="removeRoleACL", **rule)
    assert accounts.roles["writer"].acls == (RULE,)
    with pytest.raises(CommandError, match="not found"):
        effects(accounts, command="removeRoleACL", **rule)


def test_lists_are_paged_and_hide_passwords(accounts: Accounts) -> None:
    listed = accounts.carry_out(Command(command="listClients", count=1, offset=1), Changes())
    assert listed == {"totalCount": 2, "clients": ["bob"]}
    shown = accounts.carry_out(Command(command="listClients", verbose=True), Changes())
    assert shown is not None
    assert shown["clients"][0] == {
        "username": "ann",
        "roles": ({"rolename": "writer"},),
        "groups": [],
    }
    roles = accounts.carry_out(Command(command="listRoles", verbose=True), Changes())
    assert roles is not None
    assert [role["rolename"] for role in roles["roles"]] == ["other", "writer"]


def test_a_copy_changes_alone(accounts: Accounts) -> None:
    other = accounts.copy()
    effects(other, command="deleteClient", username="ann")
    assert "ann" in accounts.clients


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"command": "createClient", "username": "x" * 201}, "username"),
        ({"command": "createClient", "username": "a\x01"}, "UTF-8"),
        (
            {"command": "createClient", "username": "eve", "roles": (RoleOfClient("none"),)},
            "Role not found",
        ),
        ({"command": "createRole", "rolename": "x", "acls": (RULE,) * (MAX_ACLS + 1)}, "max"),
        (
            {
                "command": "createRole",
                "rolename": "x",
                "acls": (Acl(acltype=AclType.PUBLISH, topic="a#", allow=True),),
            },
            "topic",
        ),
        ({"command": "addRoleACL", "rolename": "writer", "topic": "a"}, "acltype"),
        (
            {"command": "addRoleACL", "rolename": "writer", "acltype": AclType.PUBLISH},
            "topic",
        ),
        ({"command": "createGroup"}, "Unknown command"),
    ],
)
def test_what_is_refused_changes_nothing(
    accounts: Accounts, fields: dict[str, object], error: str
) -> None:
    before, changes = accounts.document(), Changes()
    with pytest.raises(CommandError, match=error):
        accounts.carry_out(Command(**fields), changes)  # type: ignore[arg-type]
    assert accounts.document() == before
    assert changes == Changes()
