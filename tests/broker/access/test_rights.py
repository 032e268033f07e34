"""Rights of each kind of site: everything that its process does, and nothing in another's name."""

import pytest

from broker.access.rights import Mode, Right, SiteKind, rights_of
from host.mqtt.topic_filters import matches
from streamsql.errors import WireError

ROOT = "pando/v1/house"
SITES = {
    SiteKind.GATEWAY: "gw-1",
    SiteKind.BASE: "base",
    SiteKind.STATIC: "static",
    SiteKind.COORDINATOR: "coordinator",
    SiteKind.VIEWER: "ann",
    SiteKind.LANDER: "lander",
}


def may(kind: SiteKind, mode: Mode, topic: str) -> bool:
    """Whether some right of this kind's site matches a topic below the federation."""
    rights = rights_of(kind, SITES[kind], "house")
    return any(right.mode is mode and matches(right.topic, f"{ROOT}/{topic}") for right in rights)


@pytest.mark.parametrize(
    "kind", [SiteKind.GATEWAY, SiteKind.BASE, SiteKind.STATIC, SiteKind.LANDER]
)
@pytest.mark.parametrize(
    "topic",
    [
        "gw/gw-2/state",
        "gw/gw-2/birth",
        "gw/gw-2/obs/climate",
        "gw/gw-2/link/near/a/b",
        "gw/gw-2/settings",
        "gw/gw-2/cmd/restart",
        "gw/gw-2/cmd/resync/gw-2",
        "gw/gw-2/cmd/forget/gw-3",
        "q/q1/x/base/gw-2",
        "q/q1/out/gw-2",
        "q/q1/frag/gw-1",
        "host/coordinator/state",
        "host/static/tables",
        "source/climate",
    ],
)
def test_no_site_writes_in_another_name(kind: SiteKind, topic: str) -> None:
    assert not may(kind, Mode.WRITE, topic)


@pytest.mark.parametrize(
    ("kind", "mode", "topic", "allowed"),
    [
        (SiteKind.GATEWAY, Mode.WRITE, "gw/gw-1/link/near/a/b", True),
        (SiteKind.GATEWAY, Mode.WRITE, "gw/gw-1/settings", False),
        (SiteKind.GATEWAY, Mode.WRITE, "gw/gw-1/cmd/restart", False),
        (SiteKind.GATEWAY, Mode.WRITE, "gw/gw-1/cmd/mark", True),
        (SiteKind.GATEWAY, Mode.WRITE, "gw/gw-2/cmd/packs/gw-1", False),
        (SiteKind.BASE, Mode.WRITE, "gw/gw-2/cmd/packs/base", True),
        (SiteKind.GATEWAY, Mode.WRITE, "gw/base/cmd/published/gw-1", True),
        (SiteKind.GATEWAY, Mode.WRITE, "q/q1/x/base/gw-1", True),
        (SiteKind.GATEWAY, Mode.READ, "gw/gw-2/obs/climate", False),
        (SiteKind.GATEWAY, Mode.READ, "gw/gw-2/birth", False),
        (SiteKind.GATEWAY, Mode.READ, "q/q1/out/gw-1", False),
        (SiteKind.GATEWAY, Mode.READ, "host/static/tables", False),
        (SiteKind.BASE, Mode.READ, "gw/gw-2/obs/climate", True),
        (SiteKind.STATIC, Mode.READ, "host/static/tables", True),
        (SiteKind.STATIC, Mode.READ, "gw/gw-2/obs/climate", False),
        (SiteKind.STATIC, Mode.READ, "gw/static/settings", False),
        (SiteKind.COORDINATOR, Mode.READ, "gw/gw-2/obs/climate", True),
        (SiteKind.COORDINATOR, Mode.WRITE, "gw/gw-2/cmd/resync/base", False),
        (SiteKind.COORDINATOR, Mode.WRITE, "gw/gw-2/obs/climate", False),
        (SiteKind.LANDER, Mode.WRITE, "gw/gw-2/cmd/packs/lander", True),
        (SiteKind.LANDER, Mode.READ, "q/q1/out/base", False),
        (SiteKind.LANDER, Mode.READ, "gw/gw-2/settings", False),
        (SiteKind.VIEWER, Mode.READ, "q/q1/out/base", True),
        (SiteKind.VIEWER, Mode.READ, "gw/gw-2/cmd/clock", False),
        (SiteKind.VIEWER, Mode.READ, "gw/gw-2/settings", False),
        (SiteKind.VIEWER, Mode.READ, "source/climate", False),
        (SiteKind.VIEWER, Mode.READ, "host/static/tables", False),
    ],
)
def test_what_a_kind_may_do(kind: SiteKind, mode: Mode, topic: str, *, allowed: bool) -> None:
    assert may(kind, mode, topic) is allowed


def test_a_viewer_writes_nothing() -> None:
    assert all(right.mode is Mode.READ for right in rights_of(SiteKind.VIEWER, "ann", "house"))


@pytest.mark.parametrize("kind", list(SiteKind))
def test_nobody_but_the_coordinator_reaches_another_federation_or_the_brokers_accounts(
    kind: SiteKind,
) -> None:
    rights = rights_of(kind, SITES[kind], "house")
    outside = [right.topic for right in rights if not right.topic.startswith(f"{ROOT}/")]
    if kind is SiteKind.COORDINATOR:
        assert Right(Mode.WRITE, "$CONTROL/dynamic-security/v1") in rights
    else:
        shared = f"$share/lake/{ROOT}/"
        assert all(kind is SiteKind.LANDER and topic.startswith(shared) for topic in outside)


@pytest.mark.parametrize("name", ["", "+", "a/b", "#", "%c", "ä", "x" * 65])
def test_a_name_that_is_no_id_gets_no_rights(name: str) -> None:
    with pytest.raises(WireError):
        rights_of(SiteKind.GATEWAY, name, "house")
    with pytest.raises(WireError):
        rights_of(SiteKind.GATEWAY, "gw-1", name)
