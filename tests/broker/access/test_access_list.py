"""The access list: what a broker that reads it decides, for users named after their kind."""

import pytest

from broker.access.access_list import access_list, role_template
from broker.access.rights import Mode, SiteKind, rights_of
from broker.embedded.access_rules import Access


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    file = tmp_path_factory.mktemp("list") / "acl"
    file.write_text(access_list())
    return Access.read(None, file)


@pytest.mark.parametrize("kind", list(SiteKind))
def test_a_user_has_every_right_of_its_kind(access: Access, kind: SiteKind) -> None:
    site = "gw-1" if kind is SiteKind.GATEWAY else str(kind)
    for right in rights_of(kind, site, "house"):
        if right.topic.startswith("$CONTROL"):
            continue
        if right.mode is Mode.READ:
            assert access.may_subscribe(site, site, right.topic), right
        else:
            topic = right.topic.replace("+", "x").replace("#", "y/z")
            assert access.may_publish(site, site, topic), right


def test_nobody_reaches_accounts_by_it(access: Access) -> None:
    assert "$CONTROL" not in access_list()
    assert not access.may_publish("coordinator", "coordinator", "$CONTROL/dynamic-security/v1")


def test_a_role_has_placeholders_for_the_names() -> None:
    text = role_template(SiteKind.GATEWAY).decode()
    assert '"rolename": "site-@SITE@"' in text
    assert "pando/v1/@FEDERATION@/gw/@SITE@/state" in text
